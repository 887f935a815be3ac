/* Static locks, all of them locked. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct guarded {
    long value[3];
    pthread_mutex_t lock;
};

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static struct guarded cache = {{1}, PTHREAD_MUTEX_INITIALIZER};
static struct guarded shards[4];

int main(void) {
    pthread_mutex_lock(&plain);
    pthread_rwlock_wrlock(&readers);
    pthread_mutex_lock(&cache.lock);
    for (int i = 0; i < 4; i++)
        pthread_mutex_lock(&shards[i].lock);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
