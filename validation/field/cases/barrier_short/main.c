// A barrier for five, to which four threads come: they wait for ever, and main for their end.
#include "account.h"

static pthread_barrier_t phase_barrier;
APART static void finish_phase(void) { pthread_barrier_wait(&phase_barrier); STAY; }
static void *worker(void *with) { compute_us(200); finish_phase(); return with; }

int main(void) {
    pthread_t threads[4];
    alarm(7);
    pthread_barrier_init(&phase_barrier, NULL, 5);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
