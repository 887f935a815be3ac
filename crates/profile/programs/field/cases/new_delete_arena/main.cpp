// Six threads allocate and free blocks of 2 to 30 KiB, too large for thread caches, in malloc's only
// arena (MALLOC_ARENA_MAX=1): they contend for its lock, with short holds. main only sleeps.
#include "account.h"
#include <random>

static uint64_t blocks;

APART static void rebuild_scene(std::minstd_rand &random) {
    char *parts[64];
    for (auto &part : parts) {
        part = new char[2048 + random() % 28672];
        part[0] = 1;
    }
    for (auto &part : parts) delete[] part;
    count(&blocks, 64);
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
