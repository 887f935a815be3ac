// Four threads draw numbers with random(), which takes a lock of the C library for each; drand48_r
// needs none and is many times as fast (second argument "apart"). main only sleeps.
#include "account.h"

static uint64_t draws;
static int apart;

APART static long draw_some(struct drand48_data *own) {
    long sum = 0, one;
    for (int i = 0; i < 1000; i++) {
        if (apart) lrand48_r(own, &one); else one = random();
        sum += one;
    }
    count(&draws, 1000);
    return sum;
}
static void *player(void *with) {
    struct drand48_data own;
    volatile long sum = 0;
    srand48_r((long)with, &own);
    for (;;) sum += draw_some(&own);
    return with;
}

int main(int argc, char **argv) {
    apart = argc > 2;
    for (long i = 0; i < 4; i++) start("player", player, (void *)i);
    run_for(argc, argv);
    printf("truth: %.1f million draws/s%s\n",
           (double)draws / 1e6 / ((double)(now_ns() - started_ns) / 1e9), apart ? " apart" : "");
    quit();
}
