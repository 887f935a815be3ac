// Deadlock of three: reserve holds stock and waits for bills, invoice holds bills and waits for
// ledger, settle holds ledger and waits for stock. Two more wait for ledger, one is idle.
#include "account.h"

static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER, bills = PTHREAD_MUTEX_INITIALIZER,
                       ledger = PTHREAD_MUTEX_INITIALIZER, mail = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t mail_came = PTHREAD_COND_INITIALIZER;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    nap_us(100000);
    pthread_mutex_lock(second);
    puts("not reached");
}
APART static void reserve(void) { both(&stock, &bills); STAY; }
APART static void invoice(void) { both(&bills, &ledger); STAY; }
APART static void settle(void) { both(&ledger, &stock); STAY; }
APART static void print_ledger(void) { nap_us(300000); pthread_mutex_lock(&ledger); STAY; }

static void *warehouse(void *with) { reserve(); return with; }
static void *billing(void *with) { invoice(); return with; }
static void *bank(void *with) { settle(); return with; }
static void *printer(void *with) { print_ledger(); return with; }
static void *reader(void *with) {
    pthread_mutex_lock(&mail);
    for (;;) pthread_cond_wait(&mail_came, &mail);
    return with;
}

int main(int argc, char **argv) {
    start("warehouse", warehouse, NULL);
    start("billing", billing, NULL);
    start("bank", bank, NULL);
    start("printer", printer, NULL);
    start("printer", printer, NULL);
    start("reader", reader, NULL);
    run_for(argc, argv);
    puts("truth: warehouse, billing and bank are deadlocked");
    quit();
}
