// A lock of tickets whose holder computes 3 ms in slice_ham. It does not hold the mutex inside the
// lock meanwhile; the other customers wait for their numbers on one condition variable. Held all
// the time; 5 of 6 threads wait.
#include "account.h"

static struct {
    pthread_mutex_t guard;
    pthread_cond_t board;
    unsigned next_ticket, now_serving;
} counter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
static struct account account = {"counter", 0, 0, 0};

APART static void take_ticket(void) {
    pthread_mutex_lock(&counter.guard);
    for (unsigned mine = counter.next_ticket++; mine != counter.now_serving;)
        pthread_cond_wait(&counter.board, &counter.guard);
    pthread_mutex_unlock(&counter.guard);
    STAY;
}
APART static void call_next(void) {
    pthread_mutex_lock(&counter.guard);
    counter.now_serving++;
    pthread_cond_broadcast(&counter.board);
    pthread_mutex_unlock(&counter.guard);
    STAY;
}
APART static void slice_ham(void) { compute_us(3000); STAY; }
static void *customer(void *with) {
    for (;;) {
        uint64_t asked = now_ns();
        take_ticket();
        uint64_t got = now_ns();
        slice_ham();
        book(&account, asked, got);
        call_next();
        nap_us(300);
    }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 6; i++) start("customer", customer, NULL);
    run_for(argc, argv);
    tell(&account);
    quit();
}
