// Six threads allocate and free blocks of 2 to 30 KiB, too large for thread caches, in malloc's
// only arena (MALLOC_ARENA_MAX=1): they contend for its lock, with short holds. On two CPUs more
// arenas are no faster. main only sleeps.
#include "account.h"
#include <random>
#include <vector>

static uint64_t blocks;

APART static void rebuild_scene(std::minstd_rand &random) {
    thread_local std::vector<char *> parts(100, nullptr);
    for (int i = 0; i < 100; i++) {
        char *&part = parts[random() % parts.size()];
        delete[] part;
        part = new char[2048 + random() % 28672];
        part[0] = 1;
    }
    count(&blocks, 100);
}
static void *builder(void *with) {
    std::minstd_rand random((unsigned long)with + 1);
    for (;;) rebuild_scene(random);
    return with;
}

int main(int argc, char **argv) {
    for (long i = 0; i < 6; i++) start("builder", builder, (void *)i);
    run_for(argc, argv);
    printf("truth: %.1f million blocks/s through one arena\n",
           (double)blocks / 1e6 / ((double)(now_ns() - started_ns) / 1e9));
    quit();
}
