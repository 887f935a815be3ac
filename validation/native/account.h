// The account that a program keeps of its own locks, so that a profile can be compared with it.
//
// Each thread writes into a file of its own, DIR/TID, a record for each acquisition. The fields are
// written as they happen: a thread that waits or holds has a record whose later fields are still 0,
// and the file can be read at any time. `released` is stamped before the unlock. An acquisition
// costs three reads of the clock and one cache line.
//
// Standard output has one line per fact, in the order in which the facts become known:
//
//     lock ID KIND ADDRESS SIZE NAME   a lock; `side` before the line if it is not to be judged
//     cause NAME LOCK TID ALSO CALL    a cause: the thread that holds most (0: none in particular),
//                                      causes that are true besides, call that the holder sleeps in
//     ready                            all threads have started
//     free ID FROM TO NANOSECONDS      at the end: how long nobody held it, counted under the lock
#ifndef ACCOUNT_H
#define ACCOUNT_H

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum mode { EXCLUSIVE = 0, SHARED = 1, REACQUIRED = 2 };  // REACQUIRED: after a condition variable

struct record {
    uint64_t asked;  // 0 if REACQUIRED: only the condition variable knows when
    uint64_t acquired;
    uint64_t released;
    uint64_t cpu;  // CPU time used between the two, if the program records it
    uint32_t lock;
    uint32_t mode;
};

static const size_t LOG_BYTES = 64 << 20;  // sparse: only what is written takes memory
static const char *account_folder;         // NULL: keep no account
static int account_cpu;                    // record CPU time of holds
static __thread struct record *next_record, *last_record;

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }

static inline void fail(const char *what) {
    perror(what);
    _exit(1);
}

static inline void open_log(void) {
    static __thread struct record unread[2];
    next_record = unread, last_record = unread + 1;
    if (!account_folder) return;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%d", account_folder, (int)syscall(SYS_gettid));
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)LOG_BYTES)) fail(path);
    void *log = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (log == MAP_FAILED) fail("mmap");
    close(file);
    next_record = (struct record *)log;
    last_record = next_record + LOG_BYTES / sizeof(struct record) - 1;
}

static inline struct record *begin_record(uint32_t lock, uint32_t mode) {
    if (!next_record) open_log();
    struct record *record = next_record;
    if (account_folder && ++next_record > last_record) {
        fprintf(stderr, "the account is full\n");
        _exit(1);
    }
    record->lock = lock;
    record->mode = mode;
    return record;
}

// Call before the lock is asked for.
static inline struct record *ask(uint32_t lock, uint32_t mode) {
    struct record *record = begin_record(lock, mode);
    record->asked = now();
    return record;
}

// Call when the lock has been acquired.
static inline void got(struct record *record) {
    if (account_cpu) record->cpu = (uint64_t)0 - clock_ns(CLOCK_THREAD_CPUTIME_ID);
    record->acquired = now();
}

// Call before the lock is released.
static inline void leave(struct record *record) {
    if (account_cpu) record->cpu += clock_ns(CLOCK_THREAD_CPUTIME_ID);
    record->released = now();
}

// Call after a wait on a condition variable has returned with the lock held.
static inline struct record *reacquired(uint32_t lock) {
    struct record *record = begin_record(lock, REACQUIRED);
    got(record);
    return record;
}

// A second count, by another way, for a lock that excludes: the time that nobody holds it.
struct gaps {
    uint64_t first, last, free;
};

// Call under the lock, after `got`.
static inline void close_gap(struct gaps *gaps, const struct record *record) {
    if (gaps->last)
        gaps->free += record->acquired - gaps->last;
    else
        gaps->first = record->acquired;
}

// Call under the lock, after `leave`.
static inline void open_gap(struct gaps *gaps, const struct record *record) {
    gaps->last = record->released;
}

static inline void print_gaps(uint32_t lock, const struct gaps *gaps) {
    printf("free %u %llu %llu %llu\n", lock, (unsigned long long)gaps->first,
           (unsigned long long)gaps->last, (unsigned long long)gaps->free);
}

static volatile int stopping;

// Call before any thread starts: SIGTERM is kept for `run_until_told`, and the program ends with
// whoever started it.
static inline void start_account(const char *folder) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    account_folder = folder;
}

// Waits for SIGTERM, then tells all threads to finish.
static inline void run_until_told(void) {
    printf("ready\n");
    fflush(stdout);
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigwait(&set, &signal);
    stopping = 1;
}

#endif
