// A program's own account of its locks, and what small programs need. Include it first.
#ifndef ACCOUNT_H
#define ACCOUNT_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// A function that stays on the stack under its name, for as long as `STAY` ends it.
#define APART __attribute__((noinline)) __attribute__((unused))
#define STAY __asm__ volatile("")

struct account {
    const char *name;
    uint64_t waited_ns, held_ns, times;
};

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void nap_us(uint64_t us) {
    struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    nanosleep(&t, NULL);
}

static inline void compute_us(uint64_t us) {
    for (uint64_t end = now_ns() + us * 1000; now_ns() < end;) STAY;
}

static inline void count(uint64_t *sum, uint64_t more) {
    __atomic_fetch_add(sum, more, __ATOMIC_RELAXED);
}

// Called just before the release.
static inline void book(struct account *account, uint64_t asked, uint64_t got) {
    count(&account->waited_ns, got - asked);
    count(&account->held_ns, now_ns() - got);
    count(&account->times, 1);
}

static uint64_t started_ns;
__attribute__((constructor)) static void begin(void) { started_ns = now_ns(); }

static inline void tell(const struct account *account) {
    double all = (double)(now_ns() - started_ns);
    double times = account->times ? (double)account->times : 1;
    printf("truth: %s held %.1f%%, queue %.2f, %.0f/s, hold %.1f us, wait %.1f us\n", account->name,
           100 * (double)account->held_ns / all, (double)account->waited_ns / all,
           (double)account->times / (all / 1e9), (double)account->held_ns / times / 1e3,
           (double)account->waited_ns / times / 1e3);
}

static inline void start(const char *name, void *(*code)(void *), void *with) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, code, with)) exit(1);
    pthread_setname_np(thread, name);
    pthread_detach(thread);
}

// Lets the threads go on for as many seconds as the first argument says.
static inline void run_for(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 7;
    nap_us((uint64_t)(seconds * 1e6));
}

// Ends all threads, whatever they wait for.
static inline void quit(void) {
    fflush(stdout);
    _exit(0);
}
#endif
