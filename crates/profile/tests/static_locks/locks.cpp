// Static locks, all of them locked.
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <unistd.h>

struct guarded {
    long value[3];
    std::mutex lock;
};

static std::mutex plain;
std::shared_mutex readers;
static guarded cache;
static guarded shards[4];

int main() {
    plain.lock();
    readers.lock();
    cache.lock.lock();
    for (auto &shard : shards)
        shard.lock.lock();
    std::puts("ready");
    std::fflush(stdout);
    for (;;)
        pause();
}
