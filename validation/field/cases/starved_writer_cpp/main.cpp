// Six readers of prices (std::shared_mutex, which prefers readers) sleep 20 to 30 ms under it in
// quote, and overlap: it is never free for the writer, reprice, who waits for seconds. Readers do
// not wait.
#include "account.h"
#include <mutex>
#include <shared_mutex>

static std::shared_mutex prices;
static uint64_t reads, writes, waits_since;

APART static void quote(uint64_t us) {
    std::shared_lock<std::shared_mutex> guard(prices);
    nap_us(us);
    count(&reads, 1);
}
APART static void reprice() {
    waits_since = now_ns();
    std::unique_lock<std::shared_mutex> guard(prices);
    count(&writes, 1);
}
static void *reader(void *with) {
    for (;;) { quote(20000 + 1900 * (uint64_t)with); nap_us(1000); }
    return with;
}
static void *writer(void *with) {
    nap_us(50000);
    for (;;) { reprice(); nap_us(1000); }
    return with;
}

int main(int argc, char **argv) {
    for (long i = 0; i < 6; i++) start("reader", reader, (void *)i);
    start("writer", writer, nullptr);
    run_for(argc, argv);
    printf("truth: %lu reads; the writer got it %lu times, and has waited for %.1f s\n", reads,
           writes, (double)(now_ns() - waits_since) / 1e9);
    quit();
}
