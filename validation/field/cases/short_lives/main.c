// Eight threads are in flight at any time; each takes request_lock once, sleeps in handle_request
// for an eighth of its life (5, 20 or 50 ms), and ends: held 98%, queue nearly 7.
#include "account.h"
#include <semaphore.h>

static pthread_mutex_t request_lock = PTHREAD_MUTEX_INITIALIZER;
static struct account requests = {"request_lock", 0, 0, 0};
static sem_t room;
static uint64_t hold_us, lived_ns;

APART static void handle_request(void) {
    uint64_t asked = now_ns();
    pthread_mutex_lock(&request_lock);
    uint64_t got = now_ns();
    nap_us(hold_us);
    book(&requests, asked, got);
    pthread_mutex_unlock(&request_lock);
    STAY;
}
static void *request(void *with) {
    uint64_t born = now_ns();
    handle_request();
    count(&lived_ns, now_ns() - born);
    sem_post(&room);
    return with;
}
static void *acceptor(void *with) {
    for (;;) {
        sem_wait(&room);
        start("request", request, with);
    }
    return with;
}

int main(int argc, char **argv) {
    hold_us = (uint64_t)(argc > 2 ? atof(argv[2]) : 20) * 1000 / 8;
    sem_init(&room, 0, 8);
    start("acceptor", acceptor, NULL);
    run_for(argc, argv);
    tell(&requests);
    printf("truth: threads live for %.1f ms\n", (double)lived_ns / (double)requests.times / 1e6);
    quit();
}
