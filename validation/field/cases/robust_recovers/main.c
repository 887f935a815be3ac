// Workers take a robust mutex and end now and then without a release; the next one gets EOWNERDEAD,
// makes it consistent and goes on. Nothing is stuck: held about 97%, asleep in work_on, queue 3.
#include "account.h"
#include <errno.h>

static pthread_mutex_t table_lock;
static struct account table = {"table_lock", 0, 0, 0};
static uint64_t deaths;

APART static int work_on(void) {
    uint64_t asked = now_ns();
    if (pthread_mutex_lock(&table_lock) == EOWNERDEAD) {
        count(&deaths, 1);
        pthread_mutex_consistent(&table_lock);
    }
    uint64_t got = now_ns();
    nap_us(3000);
    book(&table, asked, got);
    if (table.times % 50 == 0) return 0;
    pthread_mutex_unlock(&table_lock);
    return 1;
}
static void *worker(void *with) {
    while (work_on()) nap_us(100);
    start("worker", worker, with); // its successor
    return with;
}

int main(int argc, char **argv) {
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&table_lock, &robust);
    for (int i = 0; i < 4; i++) start("worker", worker, NULL);
    run_for(argc, argv);
    tell(&table);
    printf("truth: %lu threads ended while they held it, and others went on\n", deaths);
    quit();
}
