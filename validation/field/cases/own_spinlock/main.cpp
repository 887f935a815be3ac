// A spin lock of the program's own, inlined: four threads compute 20 us under it and 5 us outside.
// Most of the CPU time goes into spinning for it.
#include "account.h"
#include <atomic>

static std::atomic_flag counter_flag = ATOMIC_FLAG_INIT;
static uint64_t counter;
APART static void add_up() {
    while (counter_flag.test_and_set(std::memory_order_acquire)) {}
    compute_us(20);
    counter++;
    counter_flag.clear(std::memory_order_release);
}
static void *adder(void *with) { for (;;) { add_up(); compute_us(5); } return with; }
int main(int argc, char **argv) {
    for (int i = 0; i < 4; i++) start("adder", adder, nullptr);
    run_for(argc, argv);
    printf("truth: %lu, spinning\n", counter);
    quit();
}
