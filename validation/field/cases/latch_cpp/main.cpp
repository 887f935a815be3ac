// Rounds of five threads: four wait for a std::latch that the fifth counts down 20 ms later. They
// wait for another thread nearly all the time. No lock.
#include "account.h"
#include <barrier>
#include <latch>
#include <memory>

static std::barrier<> next_round(5);
static std::shared_ptr<std::latch> ready = std::make_shared<std::latch>(1);
static uint64_t waited, rounds;

APART static void await_start() {
    auto latch = ready;
    uint64_t from = now_ns();
    latch->wait();
    count(&waited, now_ns() - from);
    next_round.arrive_and_wait();
    next_round.arrive_and_wait();
}
APART static void prepare() {
    nap_us(20000);
    ready->count_down();
    next_round.arrive_and_wait();
    ready = std::make_shared<std::latch>(1);
    count(&rounds, 1);
    next_round.arrive_and_wait();
}
static void *runner(void *with) {
    for (;;) await_start();
    return with;
}
static void *starter(void *with) {
    for (;;) prepare();
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 4; i++) start("runner", runner, nullptr);
    start("starter", starter, nullptr);
    run_for(argc, argv);
    printf("truth: %.2f of 4 runners wait at the latch, %lu rounds; no lock\n",
           (double)waited / (double)(now_ns() - started_ns), rounds);
    quit();
}
