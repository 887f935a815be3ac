// Group commit with a leader of its own: log_writer takes all records that are there, and writes
// them at once, 6 ms asleep in write_batch without a lock. Eight clients wait in commit, on one
// condition variable, until their batch is written: a commit costs one or two writes, however many
// wait. Nobody is kept out by a lock, and the mutex is held for some microseconds.
#include "account.h"
#include <condition_variable>
#include <mutex>

static struct {
    std::mutex mutex;
    std::condition_variable wanted, written;
    uint64_t last = 0, durable = 0;
} wal;
static uint64_t waited, commits;

APART static void commit() {
    uint64_t from = now_ns();
    std::unique_lock<std::mutex> guard(wal.mutex);
    uint64_t mine = ++wal.last;
    wal.wanted.notify_one();
    while (wal.durable < mine) wal.written.wait(guard);
    count(&waited, now_ns() - from);
    count(&commits, 1);
}
APART static void write_batch() { nap_us(6000); STAY; }
static void *log_writer(void *with) {
    for (;;) {
        std::unique_lock<std::mutex> guard(wal.mutex);
        while (wal.durable == wal.last) wal.wanted.wait(guard);
        uint64_t batch = wal.last;
        guard.unlock();
        write_batch();
        guard.lock();
        wal.durable = batch;
        wal.written.notify_all();
    }
    return with;
}
static void *client(void *with) {
    for (;;) { compute_us(100); commit(); }
    return with;
}

int main(int argc, char **argv) {
    start("log_writer", log_writer, nullptr);
    for (int i = 0; i < 8; i++) start("client", client, nullptr);
    run_for(argc, argv);
    printf("truth: %.2f of 8 clients wait for the writer, %lu commits; no lock\n",
           (double)waited / (double)(now_ns() - started_ns), commits);
    quit();
}
