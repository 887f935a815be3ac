// Four editors add to a text in a fixed order, by a number of the next and a condition variable for
// all. Each first prepares for 0 to 16 ms, and then adds for 2 ms, both asleep; those who are ready
// wait in await_turn, often for one who is still preparing. No lock keeps them out: the mutex is
// held for some microseconds, and the order is part of the work.
#include "account.h"

enum { EDITORS = 4 };
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t passed;
    int next;
} turn = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static uint64_t waited, preparing, pieces;

APART static void await_turn(int me) {
    uint64_t from = now_ns();
    pthread_mutex_lock(&turn.mutex);
    while (turn.next != me) pthread_cond_wait(&turn.passed, &turn.mutex);
    pthread_mutex_unlock(&turn.mutex);
    count(&waited, now_ns() - from);
}
APART static void pass_turn(int me) {
    pthread_mutex_lock(&turn.mutex);
    turn.next = (me + 1) % EDITORS;
    pthread_cond_broadcast(&turn.passed);
    pthread_mutex_unlock(&turn.mutex);
    STAY;
}
APART static void prepare(unsigned *seed) {
    uint64_t from = now_ns();
    nap_us((uint64_t)rand_r(seed) % 16000);
    count(&preparing, now_ns() - from);
}
APART static void add_piece(void) { nap_us(2000); count(&pieces, 1); }
static void *editor(void *with) {
    int me = *(int *)with;
    for (unsigned seed = (unsigned)me + 1;;) {
        prepare(&seed);
        await_turn(me);
        add_piece();
        pass_turn(me);
    }
    return with;
}

int main(int argc, char **argv) {
    static int numbers[EDITORS] = {0, 1, 2, 3};
    for (int i = 0; i < EDITORS; i++) start("editor", editor, &numbers[i]);
    run_for(argc, argv);
    double all = (double)(now_ns() - started_ns);
    printf("truth: of 4 editors %.2f wait for their turn, %.2f prepare, %.2f add; no lock\n",
           (double)waited / all, (double)preparing / all, (double)pieces * 2e6 / all);
    quit();
}
