// Four clients ask a worker, which computes 500 us and sleeps 4 ms for each answer. Each client
// waits in epoll_wait with nothing but an eventfd, which the worker writes: they wait for another
// thread nearly all the time; they have work. No lock.
#include "account.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { CLIENTS = 4 };
static int questions, answers[CLIENTS];
static uint64_t asked[CLIENTS], rounds, waited;

APART static void await_answer(int poll, int answer) {
    struct epoll_event event;
    uint64_t from = now_ns(), value;
    epoll_wait(poll, &event, 1, -1);
    count(&waited, now_ns() - from);
    if (read(answer, &value, sizeof value) < 0) abort();
    STAY;
}
static void *client(void *with) {
    long me = (long)with;
    uint64_t one = 1;
    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poll, EPOLL_CTL_ADD, answers[me], &event);
    for (;;) {
        __atomic_store_n(&asked[me], 1, __ATOMIC_RELEASE);
        if (write(questions, &one, sizeof one) < 0) abort();
        await_answer(poll, answers[me]);
        compute_us(100);
    }
    return with;
}
APART static void solve(long client) {
    uint64_t one = 1;
    compute_us(500);
    nap_us(4000);
    if (write(answers[client], &one, sizeof one) < 0) abort();
    count(&rounds, 1);
    STAY;
}
static void *worker(void *with) {
    uint64_t many;
    for (;;) {
        if (read(questions, &many, sizeof many) < 0) abort();
        for (long i = 0; i < CLIENTS; i++)
            if (__atomic_exchange_n(&asked[i], 0, __ATOMIC_ACQUIRE)) solve(i);
    }
    return with;
}

int main(int argc, char **argv) {
    questions = eventfd(0, 0);
    for (long i = 0; i < CLIENTS; i++) answers[i] = eventfd(0, 0);
    start("worker", worker, NULL);
    for (long i = 0; i < CLIENTS; i++) start("client", client, (void *)i);
    run_for(argc, argv);
    printf("truth: %.2f of 4 clients wait for the worker, %lu answers; no lock\n",
           (double)waited / (double)(now_ns() - started_ns), rounds);
    quit();
}
