// Six readers of prices (std::shared_mutex, which prefers readers) sleep 20 ms under it in quote, and
// overlap: it is never free for the writer, reprice, who waits for seconds. Readers do not wait.
#include "account.h"
#include <shared_mutex>

static std::shared_mutex prices;
static uint64_t reads, writes, waited;

APART static void quote() {
    std::shared_lock<std::shared_mutex> guard(prices);
    nap_us(20000);
    count(&reads, 1);
}
APART static void reprice() {
    uint64_t asked = now_ns();
    std::unique_lock<std::shared_mutex> guard(prices);
    count(&waited, now_ns() - asked);
    count(&writes, 1);
}
static void *reader(void *with) {
    for (;;) { quote(); nap_us(1000); }
    return with;
}
static void *writer(void *with) {
    nap_us(50000);
    for (;;) { reprice(); nap_us(1000); }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 6; i++) start("reader", reader, nullptr);
    start("writer", writer, nullptr);
    run_for(argc, argv);
    printf("truth: %lu reads; the writer got it %lu times, after %.1f s of waiting\n", reads, writes,
           (double)waited / 1e9);
    quit();
}
