// Leader and followers: one thread waits for events under leader_mutex, five wait for the mutex. An
// event comes every 30 ms. An idle pool: the mutex costs nothing.
#include "account.h"
#include <sys/epoll.h>
#include <sys/timerfd.h>

static pthread_mutex_t leader_mutex = PTHREAD_MUTEX_INITIALIZER;
static int set, timer;
static uint64_t events;

APART static void lead(void) {
    struct epoll_event event;
    uint64_t times;
    pthread_mutex_lock(&leader_mutex);
    epoll_wait(set, &event, 1, -1);
    if (read(timer, &times, sizeof times) < 0) abort();
    pthread_mutex_unlock(&leader_mutex);
    compute_us(300);
    count(&events, 1);
}
static void *worker(void *with) { for (;;) lead(); return with; }

int main(int argc, char **argv) {
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec every = {{0, 30000000}, {0, 30000000}};
    timerfd_settime(timer, 0, &every, NULL);
    set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, timer, &event);
    for (int i = 0; i < 6; i++) start("worker", worker, NULL);
    run_for(argc, argv);
    printf("truth: %lu events, an idle pool\n", events);
    quit();
}
