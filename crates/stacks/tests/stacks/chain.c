/* Threads that go to sleep at the end of call chains which they write down first.
 *
 * Arguments: number of threads, seed. Prints, for each thread, its number and the functions of
 * its chain, innermost first, and then "ready". Compiled as C and as C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <alloca.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef LOCAL
#define LOCAL static
#endif
#define NOINLINE __attribute__((noinline))
/* Keeps a call from becoming a jump. */
#define AFTER __asm__ volatile("" ::: "memory")

struct chain {
    uint64_t random;
    int depth;
    int length;
    const char *names[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t waited = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;
static sem_t none;
static int nothing[2];
static uint32_t word;

static unsigned draw(struct chain *c, unsigned below) {
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(c->random >> 33) % below;
}

typedef long (*step)(struct chain *, long);

LOCAL long next(struct chain *c, long x);

#define ENTER (c->names[c->length++] = __func__)

NOINLINE LOCAL void leave(struct chain *c) {
    pthread_mutex_lock(&printing);
    printf("%ld", (long)syscall(SYS_gettid));
    for (int i = c->length - 1; i >= 0; i--)
        printf(" %s", c->names[i]);
    printf("\n");
    fflush(stdout);
    pthread_mutex_unlock(&printing);
}

NOINLINE LOCAL long step_sleep(struct chain *c, long x) {
    ENTER, leave(c);
    sleep(100000);
    AFTER;
    return x;
}

NOINLINE LOCAL long step_usleep(struct chain *c, long x) {
    char page[300];
    ENTER, leave(c);
    memset(page, (int)x, sizeof page);
    for (;;)
        usleep(900000000);
    return page[x & 7];
}

NOINLINE LOCAL long step_nanosleep(struct chain *c, long x) {
    struct timespec t = {100000, 0};
    ENTER, leave(c);
    nanosleep(&t, NULL);
    AFTER;
    return x + t.tv_sec;
}

NOINLINE LOCAL long step_lock(struct chain *c, long x) {
    ENTER, leave(c);
    pthread_mutex_lock(&lock);
    AFTER;
    return x;
}

NOINLINE LOCAL long step_read_lock(struct chain *c, long x) {
    ENTER, leave(c);
    pthread_rwlock_rdlock(&readers);
    AFTER;
    return x;
}

NOINLINE LOCAL long step_condition(struct chain *c, long x) {
    ENTER, leave(c);
    pthread_mutex_lock(&waited);
    for (;;)
        pthread_cond_wait(&never, &waited);
    return x;
}

NOINLINE LOCAL long step_semaphore(struct chain *c, long x) {
    ENTER, leave(c);
    sem_wait(&none);
    AFTER;
    return x;
}

NOINLINE LOCAL long step_read(struct chain *c, long x) {
    char buffer[128];
    ENTER, leave(c);
    long got = read(nothing[0], buffer, sizeof buffer);
    return x + got + buffer[0];
}

NOINLINE LOCAL long step_poll(struct chain *c, long x) {
    struct pollfd p = {nothing[0], POLLIN, 0};
    ENTER, leave(c);
    poll(&p, 1, -1);
    return x + p.revents;
}

NOINLINE LOCAL long step_select(struct chain *c, long x) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(nothing[0], &set);
    ENTER, leave(c);
    return x + select(nothing[0] + 1, &set, NULL, NULL, NULL);
}

NOINLINE LOCAL long step_futex(struct chain *c, long x) {
    ENTER, leave(c);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    AFTER;
    return x;
}

/* Leaves return addresses below, where later frames will lie. */
NOINLINE LOCAL long dig(long x) {
    volatile char hole[400];
    hole[x & 63] = (char)x;
    if (x > 6)
        return hole[x & 63];
    return dig(x + 1) + hole[x & 63];
}

NOINLINE LOCAL long step_plain(struct chain *c, long x) {
    ENTER;
    x = next(c, x + 1);
    AFTER;
    return x + 1;
}

NOINLINE LOCAL long step_array(struct chain *c, long x) {
    char room[700];
    ENTER;
    dig(0);
    memset(room, (int)x, 1 + (x & 3));
    x = next(c, x) + room[0];
    AFTER;
    return x;
}

NOINLINE LOCAL long step_page(struct chain *c, long x) {
    volatile char room[9000];
    ENTER;
    room[x & 1023] = 1;
    x = next(c, x) + room[x & 1023];
    AFTER;
    return x;
}

NOINLINE LOCAL long step_alloca(struct chain *c, long x) {
    ENTER;
    size_t size = 16 + draw(c, 500);
    volatile char *room = (volatile char *)alloca(size);
    room[0] = (char)x;
    x = next(c, x) + room[0];
    AFTER;
    return x;
}

NOINLINE LOCAL long step_aligned(struct chain *c, long x) {
    volatile char room[64] __attribute__((aligned(64)));
    ENTER;
    room[x & 7] = (char)x;
    x = next(c, x) + room[x & 7];
    AFTER;
    return x;
}

NOINLINE LOCAL long step_busy(struct chain *c, long x) {
    long a = x * 3, b = x ^ 5, d = x + 7, e = x * x, f = x >> 1, g = x - 9;
    ENTER;
    for (int i = 0; i < 3; i++) {
        a += dig(5) * b, b ^= a + d, d += e, e -= f, f ^= g, g += a;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(d), "+r"(e), "+r"(f), "+r"(g));
    }
    x = next(c, x);
    AFTER;
    return x + a + b + d + e + f + g;
}

NOINLINE LOCAL long many(struct chain *c, long x, long a, long b, long d, long e, long f, long g,
                          long h) {
    ENTER;
    x = next(c, x + a);
    AFTER;
    return x + b + d + e + f + g + h;
}

NOINLINE LOCAL long step_arguments(struct chain *c, long x) {
    ENTER;
    x = many(c, x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7);
    AFTER;
    return x;
}

NOINLINE LOCAL long step_pointer(struct chain *c, long x) {
    step volatile through = step_plain;
    ENTER;
    x = through(c, x);
    AFTER;
    return x;
}

NOINLINE LOCAL long step_early(struct chain *c, long x) {
    if (x == -77)
        return 3;
    double d = (double)x * 1.5;
    ENTER;
    x = next(c, x);
    AFTER;
    return x + (long)d;
}

LOCAL int compare(const void *a, const void *b) {
    struct chain *c = *(struct chain *const *)a;
    (void)b;
    c->names[c->length++] = __func__;
    long x = next(c, 1);
    AFTER;
    return (int)x;
}

/* Called back by the C library. */
NOINLINE LOCAL long step_sort(struct chain *c, long x) {
    struct chain *both[2] = {c, c};
    ENTER;
    qsort(both, 2, sizeof both[0], compare);
    AFTER;
    return x;
}

#ifndef EXTRA_ENDS
#define EXTRA_ENDS
#define EXTRA_STEPS
#endif

static step const ends[] = {
    EXTRA_ENDS
    step_sleep,     step_usleep, step_nanosleep, step_lock,   step_read_lock, step_condition,
    step_semaphore, step_read,   step_poll,      step_select, step_futex,
};

static step const steps[] = {
    EXTRA_STEPS
    step_plain, step_array,     step_page,    step_alloca, step_aligned,
    step_busy,  step_arguments, step_pointer, step_early,  step_sort,
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

NOINLINE LOCAL long next(struct chain *c, long x) {
    ENTER;
    if (c->length >= c->depth) {
        x = ends[draw(c, COUNT(ends))](c, x);
    } else {
        /* Some calls by name, which are direct, the others by pointer. */
        switch (draw(c, 14)) {
        case 0: x = step_plain(c, x); break;
        case 1: x = step_array(c, x); break;
        case 2: x = step_busy(c, x); break;
        case 3: x = step_early(c, x); break;
        default: x = steps[draw(c, COUNT(steps))](c, x); break;
        }
    }
    AFTER;
    return x;
}

LOCAL void *start(void *argument) {
    struct chain *c = (struct chain *)argument;
    ENTER;
    next(c, 0);
    AFTER;
    return NULL;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    struct chain *chains = (struct chain *)calloc((size_t)threads + 1, sizeof *chains);
    if (pipe(nothing) || sem_init(&none, 0, 0))
        return 1;
    pthread_mutex_lock(&lock);
    pthread_rwlock_wrlock(&readers);
    for (int i = 0; i <= threads; i++) {
        chains[i].random = seed * 0x9e3779b97f4a7c15u + (uint64_t)i * 7919;
        draw(&chains[i], 2);
        chains[i].depth = 2 + (int)draw(&chains[i], 24);
    }
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, start, &chains[i]))
            return 1;
        pthread_detach(thread);
    }
    chains[threads].names[chains[threads].length++] = __func__;
    next(&chains[threads], 0);
    AFTER;
    return 0;
}
