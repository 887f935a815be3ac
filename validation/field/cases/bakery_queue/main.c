// A bounded queue that is full: five kneaders have loaves for the oven, and wait in put_loaf until
// it takes one. The oven computes 4 ms a loaf in bake, without the mutex, which is held for some
// microseconds. They wait for the oven, not for a lock, and not for work.
#include "account.h"

enum { TRAYS = 8 };
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t room, bread;
    int used;
} shelf = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static uint64_t waited, baked;

APART static void put_loaf(void) {
    uint64_t from = now_ns();
    pthread_mutex_lock(&shelf.mutex);
    while (shelf.used == TRAYS) pthread_cond_wait(&shelf.room, &shelf.mutex);
    shelf.used++;
    pthread_cond_signal(&shelf.bread);
    pthread_mutex_unlock(&shelf.mutex);
    count(&waited, now_ns() - from);
}
APART static void take_loaf(void) {
    pthread_mutex_lock(&shelf.mutex);
    while (shelf.used == 0) pthread_cond_wait(&shelf.bread, &shelf.mutex);
    shelf.used--;
    pthread_cond_signal(&shelf.room);
    pthread_mutex_unlock(&shelf.mutex);
    STAY;
}
APART static void bake(void) { compute_us(4000); count(&baked, 1); }
static void *oven(void *with) {
    for (;;) { take_loaf(); bake(); }
    return with;
}
static void *kneader(void *with) {
    for (;;) { compute_us(20); put_loaf(); }
    return with;
}

int main(int argc, char **argv) {
    start("oven", oven, NULL);
    for (int i = 0; i < 5; i++) start("kneader", kneader, NULL);
    run_for(argc, argv);
    printf("truth: %.2f of 5 kneaders wait for room, %lu loaves; no lock\n",
           (double)waited / (double)(now_ns() - started_ns), baked);
    quit();
}
