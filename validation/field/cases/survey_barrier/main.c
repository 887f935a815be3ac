// Five threads meet at season_barrier each round. Their work takes 4 to 20 ms, asleep in measure,
// and those who are early wait in end_round for the latest: 2 of 5 on average. No lock.
#include "account.h"

static pthread_barrier_t season_barrier;
static uint64_t waited, rounds;

APART static void measure(uint64_t units) { nap_us(4000 * units); STAY; }
APART static void end_round(void) {
    uint64_t from = now_ns();
    if (pthread_barrier_wait(&season_barrier)) count(&rounds, 1);
    count(&waited, now_ns() - from);
}
static void *surveyor(void *with) {
    for (;;) { measure(*(uint64_t *)with); end_round(); }
    return with;
}

int main(int argc, char **argv) {
    static uint64_t units[5] = {1, 2, 3, 4, 5};
    pthread_barrier_init(&season_barrier, NULL, 5);
    for (int i = 0; i < 5; i++) start("surveyor", surveyor, &units[i]);
    run_for(argc, argv);
    printf("truth: %.2f of 5 surveyors wait at the barrier, %lu rounds; no lock\n",
           (double)waited / (double)(now_ns() - started_ns), rounds);
    quit();
}
