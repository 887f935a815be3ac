// Locks under one set of names: those of glibc, or with -DSTD those of the C++ standard library.
// Programs take kinds by name, so that each source serves both languages.
#ifndef LOCKS_H
#define LOCKS_H

#include "account.h"
#include <pthread.h>

#ifdef STD
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#endif

enum kind { MUTEX, RWLOCK, ADAPTIVE, ATOMIC };

#ifdef STD

struct lock {
    uint32_t id;
    enum kind kind;
    const char *name;
    struct gaps gaps;
    std::mutex mutex;
    std::shared_mutex rwlock;
    std::atomic<int> word;  // 0 free, 1 taken, 2 taken and somebody sleeps
    std::condition_variable condition;
};

static inline enum kind kind_named(const char *name) {
    if (!strcmp(name, "mutex")) return MUTEX;
    if (!strcmp(name, "rwlock")) return RWLOCK;
    if (!strcmp(name, "atomic")) return ATOMIC;
    fprintf(stderr, "no such lock in C++: %s\n", name);
    exit(2);
}

static inline void take(struct lock *lock) {
    switch (lock->kind) {
        case RWLOCK: lock->rwlock.lock(); break;
        case ATOMIC: {
            int free = 0;
            if (lock->word.compare_exchange_strong(free, 1)) break;
            while (lock->word.exchange(2) != 0) lock->word.wait(2);
            break;
        }
        default: lock->mutex.lock();
    }
}

static inline void let_go(struct lock *lock) {
    switch (lock->kind) {
        case RWLOCK: lock->rwlock.unlock(); break;
        case ATOMIC:
            if (lock->word.exchange(0) == 2) lock->word.notify_one();
            break;
        default: lock->mutex.unlock();
    }
}

static inline void take_shared(struct lock *lock) { lock->rwlock.lock_shared(); }
static inline void let_go_shared(struct lock *lock) { lock->rwlock.unlock_shared(); }

static inline void wait_for(struct lock *lock) {
    std::unique_lock<std::mutex> held(lock->mutex, std::adopt_lock);
    lock->condition.wait(held);
    held.release();
}

static inline void wake_one(struct lock *lock) { lock->condition.notify_one(); }
static inline void wake_all(struct lock *lock) { lock->condition.notify_all(); }

#else

struct lock {
    uint32_t id;
    enum kind kind;
    const char *name;
    struct gaps gaps;
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_cond_t condition;
};

static inline enum kind kind_named(const char *name) {
    if (!strcmp(name, "mutex")) return MUTEX;
    if (!strcmp(name, "rwlock")) return RWLOCK;
    if (!strcmp(name, "adaptive")) return ADAPTIVE;
    fprintf(stderr, "no such lock in C: %s\n", name);
    exit(2);
}

static inline void take(struct lock *lock) {
    if (lock->kind == RWLOCK)
        pthread_rwlock_wrlock(&lock->rwlock);
    else
        pthread_mutex_lock(&lock->mutex);
}

static inline void let_go(struct lock *lock) {
    if (lock->kind == RWLOCK)
        pthread_rwlock_unlock(&lock->rwlock);
    else
        pthread_mutex_unlock(&lock->mutex);
}

static inline void take_shared(struct lock *lock) { pthread_rwlock_rdlock(&lock->rwlock); }
static inline void let_go_shared(struct lock *lock) { pthread_rwlock_unlock(&lock->rwlock); }
static inline void wait_for(struct lock *lock) {
    pthread_cond_wait(&lock->condition, &lock->mutex);
}
static inline void wake_one(struct lock *lock) { pthread_cond_signal(&lock->condition); }
static inline void wake_all(struct lock *lock) { pthread_cond_broadcast(&lock->condition); }

#endif

static inline void *address_of(struct lock *lock, size_t *size) {
    switch (lock->kind) {
        case RWLOCK: *size = sizeof lock->rwlock; return &lock->rwlock;
#ifdef STD
        case ATOMIC: *size = sizeof lock->word; return &lock->word;
#endif
        default: *size = sizeof lock->mutex; return &lock->mutex;
    }
}

// Makes a lock, zeroed before, ready for use.
static inline void set_up(struct lock *lock, uint32_t id, enum kind kind, const char *name) {
    lock->id = id, lock->kind = kind, lock->name = name;
#ifndef STD
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (kind == ADAPTIVE) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&lock->mutex, &attributes);
    pthread_rwlock_init(&lock->rwlock, NULL);
    pthread_cond_init(&lock->condition, NULL);
#endif
}

static inline void print_lock(struct lock *lock, int judged) {
    static const char *const names[] = {"mutex", "rwlock", "adaptive", "atomic"};
    size_t size;
    void *address = address_of(lock, &size);
    printf("%slock %u %s %p %zu %s\n", judged ? "" : "side ", lock->id, names[lock->kind], address,
           size, lock->name);
}

// A hold for itself: waits, takes, works, lets go, and writes it all down.
#define HOLD(lock, ...)                                      \
    do {                                                     \
        struct record *record_ = ask((lock)->id, EXCLUSIVE); \
        take(lock);                                          \
        got(record_);                                        \
        close_gap(&(lock)->gaps, record_);                   \
        __VA_ARGS__;                                         \
        leave(record_);                                      \
        open_gap(&(lock)->gaps, record_);                    \
        let_go(lock);                                        \
    } while (0)

#define HOLD_SHARED(lock, ...)                            \
    do {                                                  \
        struct record *record_ = ask((lock)->id, SHARED); \
        take_shared(lock);                                \
        got(record_);                                     \
        __VA_ARGS__;                                      \
        leave(record_);                                   \
        let_go_shared(lock);                              \
    } while (0)

#endif
