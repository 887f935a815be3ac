// Two threads take turns: strings compute 3 ms, then brass 1 ms, by a condition variable. One waits
// for the other at any time. Neither is kept out by a lock: the mutex is held for some
// microseconds, and the order is part of the work.
#include "account.h"
#include <condition_variable>
#include <mutex>

enum Section { strings, brass };
static struct {
    std::mutex mutex;
    std::condition_variable baton;
    Section turn = strings;
} podium;
static uint64_t waited, bars;

APART static void await_turn(Section me) {
    uint64_t from = now_ns();
    std::unique_lock<std::mutex> guard(podium.mutex);
    while (podium.turn != me) podium.baton.wait(guard);
    count(&waited, now_ns() - from);
}
APART static void play_bar(Section me) { compute_us(me == strings ? 3000 : 1000); STAY; }
static void *section(void *with) {
    Section me = with ? brass : strings;
    for (;; count(&bars, 1)) {
        await_turn(me);
        play_bar(me);
        std::lock_guard<std::mutex> guard(podium.mutex);
        podium.turn = me == strings ? brass : strings;
        podium.baton.notify_one();
    }
    return with;
}

int main(int argc, char **argv) {
    start("strings", section, nullptr);
    start("brass", section, &podium);
    run_for(argc, argv);
    printf("truth: %.2f of 2 sections wait for their turn, %lu bars; no lock\n",
           (double)waited / (double)(now_ns() - started_ns), bars);
    quit();
}
