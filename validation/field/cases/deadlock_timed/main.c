// debit holds checking and waits for savings, credit the other way round, each for at most 30 s
// (pthread_mutex_timedlock): a circle that ends, though not while anybody looks.
#include "account.h"

static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER, savings = PTHREAD_MUTEX_INITIALIZER;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
    struct timespec end;
    pthread_mutex_lock(first);
    nap_us(100000);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 30;
    pthread_mutex_timedlock(second, &end);
    puts("not reached");
}
APART static void debit(void) { both(&checking, &savings); STAY; }
APART static void credit(void) { both(&savings, &checking); STAY; }
static void *payer(void *with) { debit(); return with; }
static void *payee(void *with) { credit(); return with; }

int main(int argc, char **argv) {
    start("payer", payer, NULL);
    start("payee", payee, NULL);
    run_for(argc, argv);
    puts("truth: payer and payee wait for each other, for 30 s at most");
    quit();
}
