// Group commit: the first of those who wait writes for all, 4 ms asleep in write_log; the others
// wait, each on a condition variable of its own, until it has. 5 to 6 of 6 threads are in commit;
// those who wait have work. log_mutex itself is hardly held.
#include "account.h"
#include <condition_variable>
#include <deque>
#include <mutex>

struct Waiter {
    std::condition_variable turn;
    bool done = false;
};
static std::mutex log_mutex;
static std::deque<Waiter *> waiters;
static uint64_t waited, commits;

APART static void write_log() { nap_us(4000); STAY; }
APART static void commit() {
    uint64_t from = now_ns();
    Waiter me;
    std::unique_lock<std::mutex> guard(log_mutex);
    waiters.push_back(&me);
    while (!me.done && waiters.front() != &me) me.turn.wait(guard);
    if (me.done) {
        count(&waited, now_ns() - from);
    } else {
        auto group = waiters;
        guard.unlock();
        write_log();
        guard.lock();
        for (Waiter *one : group) {
            waiters.pop_front();
            one->done = true;
            if (one != &me) one->turn.notify_one();
        }
        if (!waiters.empty()) waiters.front()->turn.notify_one();
    }
    count(&commits, 1);
}
static void *client(void *with) {
    for (;;) { commit(); compute_us(50); }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 6; i++) start("client", client, nullptr);
    run_for(argc, argv);
    printf("truth: %lu commits, %.2f of 6 clients wait for a leader\n", commits,
           (double)waited / (double)(now_ns() - started_ns));
    quit();
}
