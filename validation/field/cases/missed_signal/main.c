// A consumer waits for a signal that was given before it came, without looking at the state. The
// producer waits for the answer. Both wait for ever, and main for their end.
#include "account.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t request = PTHREAD_COND_INITIALIZER, reply = PTHREAD_COND_INITIALIZER;

APART static void ask(void) {
    pthread_mutex_lock(&m);
    pthread_cond_signal(&request);
    pthread_cond_wait(&reply, &m);
    pthread_mutex_unlock(&m);
}
APART static void answer(void) {
    pthread_mutex_lock(&m);
    pthread_cond_wait(&request, &m);
    pthread_cond_signal(&reply);
    pthread_mutex_unlock(&m);
}
static void *producer(void *with) { ask(); return with; }
static void *consumer(void *with) { nap_us(30000); answer(); return with; }

int main(void) {
    pthread_t one, other;
    alarm(7);
    pthread_create(&one, NULL, producer, NULL);
    pthread_create(&other, NULL, consumer, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
