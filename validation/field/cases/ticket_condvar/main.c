// A fair lock of a mutex and a condition variable: fair_lock hands out tickets, and waits until its
// own is served. Held 98%, asleep in transmit; 4 of 5 threads wait on the condition variable, for a
// lock.
#include "account.h"

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t served;
    unsigned long next, serving;
} radio = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
static struct account account = {"radio", 0, 0, 0};

APART static void fair_lock(void) {
    pthread_mutex_lock(&radio.mutex);
    for (unsigned long mine = radio.next++; radio.serving != mine;)
        pthread_cond_wait(&radio.served, &radio.mutex);
    pthread_mutex_unlock(&radio.mutex);
    STAY;
}
APART static void fair_unlock(void) {
    pthread_mutex_lock(&radio.mutex);
    radio.serving++;
    pthread_cond_broadcast(&radio.served);
    pthread_mutex_unlock(&radio.mutex);
    STAY;
}
APART static void transmit(void) {
    uint64_t asked = now_ns();
    fair_lock();
    uint64_t got = now_ns();
    nap_us(4000);
    book(&account, asked, got);
    fair_unlock();
    STAY;
}
static void *sender(void *with) {
    for (;;) transmit();
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 5; i++) start("sender", sender, NULL);
    run_for(argc, argv);
    tell(&account);
    quit();
}
