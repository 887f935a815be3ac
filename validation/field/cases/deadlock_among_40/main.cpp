// Two of 40 threads are deadlocked (copy holds source_side and waits for target_side, restore the
// other way round); the others go on, and take progress_lock for 100 us of sleep each 20 ms: it is
// held a third of the time, and 38 threads wait for it now and then: queue about 0.5.
#include "account.h"
#include <mutex>

static std::mutex source_side, target_side, progress_lock;
static account progress{"progress_lock", 0, 0, 0};

APART static void copy() {
    std::lock_guard<std::mutex> first(source_side);
    nap_us(100000);
    std::lock_guard<std::mutex> second(target_side);
    puts("not reached");
}
APART static void restore() {
    std::lock_guard<std::mutex> first(target_side);
    nap_us(100000);
    std::lock_guard<std::mutex> second(source_side);
    puts("not reached");
}
APART static void note_progress() {
    uint64_t asked = now_ns();
    std::lock_guard<std::mutex> guard(progress_lock);
    uint64_t got = now_ns();
    nap_us(100);
    book(&progress, asked, got);
}

static void *copier(void *with) { copy(); return with; }
static void *restorer(void *with) { restore(); return with; }
static void *worker(void *with) {
    for (;;) {
        note_progress();
        nap_us(20000);
    }
    return with;
}

int main(int argc, char **argv) {
    start("copier", copier, nullptr);
    start("restorer", restorer, nullptr);
    for (int i = 0; i < 38; i++) start("worker", worker, nullptr);
    run_for(argc, argv);
    puts("truth: copier and restorer are deadlocked; the others go on");
    tell(&progress);
    quit();
}
