// What threads do, inside a lock and outside: compute, sleep, write and fsync, or read.
#ifndef WORK_H
#define WORK_H

#include "account.h"
#include <pthread.h>
#include <sys/timerfd.h>

// Functions of their own, so that stacks name them.
#define NOINLINE static __attribute__((noinline, unused))

enum work { COMPUTE, SLEEP, FSYNC, READ };

static double steps_per_ns;

NOINLINE void compute_steps(uint64_t steps) {
    static __thread volatile uint64_t sink;
    uint64_t value = sink | 1;
    for (uint64_t i = 0; i < steps; i++)
        value = value * 6364136223846793005u + 1442695040888963407u;
    sink = value;
}

// The best of many tries: a try that another thread interrupted took longer.
static inline void calibrate(void) {
    for (int i = 0; i < 50; i++) {
        uint64_t started = now();
        compute_steps(200000);
        double rate = 200000 / (double)(now() - started);
        if (rate > steps_per_ns) steps_per_ns = rate;
    }
}

// A fixed amount of work: it takes longer if the thread has to wait for a CPU.
NOINLINE void compute_for(double ns) {
    compute_steps((uint64_t)(ns * steps_per_ns));
}

NOINLINE void sleep_for(double ns) {
    struct timespec time = {(time_t)(ns / 1e9), (long)ns % 1000000000};
    nanosleep(&time, NULL);
}

// Writes and waits for the disk until the time is over.
NOINLINE void write_for(double ns) {
    static __thread int file;
    uint64_t started = now();
    if (!file) {
        char path[] = "/var/tmp/threadtoll-XXXXXX";
        if ((file = mkstemp(path)) < 0) fail(path);
        unlink(path);
    }
    do {
        char block[4096] = {1};
        if (pwrite(file, block, sizeof block, 0) != sizeof block || fsync(file)) fail("write");
    } while (now() - started < ns);
}

// Reads from a descriptor that has something to read when the time is over.
NOINLINE void read_for(double ns) {
    static __thread int timer;
    if (!timer && (timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) < 0) fail("timerfd");
    struct itimerspec at = {{0, 0}, {(time_t)(ns / 1e9), (long)ns % 1000000000 | 1}};
    timerfd_settime(timer, 0, &at, NULL);
    uint64_t expirations;
    if (read(timer, &expirations, sizeof expirations) < 0) fail("read");
}

static inline void work_for(enum work work, double ns) {
    switch (work) {
        case COMPUTE: compute_for(ns); break;
        case SLEEP: sleep_for(ns); break;
        case FSYNC: write_for(ns); break;
        case READ: read_for(ns); break;
    }
}

static inline enum work work_named(const char *name) {
    if (!strcmp(name, "compute")) return COMPUTE;
    if (!strcmp(name, "sleep")) return SLEEP;
    if (!strcmp(name, "fsync")) return FSYNC;
    if (!strcmp(name, "read")) return READ;
    fprintf(stderr, "no such work: %s\n", name);
    exit(2);
}

static inline const char *call_of(enum work work) {
    switch (work) {
        case SLEEP: return "clock_nanosleep";
        case FSYNC: return "fsync";
        case READ: return "read";
        default: return "-";
    }
}

static inline pthread_t start_thread(const char *name, void *(*run)(void *), void *argument) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    if (pthread_create(&thread, &attributes, run, argument)) fail("pthread_create");
    pthread_setname_np(thread, name);
    return thread;
}

#endif
