/* For the benchmarks of this folder, which measure a queue without the tool: threads, time, and
 * the figures that `threadtoll queue ask-reply` and `threadtoll queue stream` print.
 *
 *   PROGRAM ask-reply|stream CPU_A CPU_B MICROSECONDS [CAPACITY]
 *
 * Blocks last so many microseconds. The sender runs on the first CPU, the receiver on the second.
 * In `ask-reply` a message goes over and its echo comes back before the next one leaves; `time_ns`
 * is the mean time of a round trip in a block. In `stream` messages go one way as fast as they can;
 * `time_ns` is the time per message.
 * Every message is verified. The first blocks warm up and are not printed. Before, between and
 * after the others, the threads hand an atomic number to each other, and `hand_off_ns` is the
 * median time: blocks of two runs are comparable if a hand-off takes as long in both.
 *
 * Each operation is a call through a pointer, with the message in memory, as through an adapter:
 * in a stream such calls may take longer than the queue. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Each benchmark defines these for two queues, 0 and 1; true if a message was taken. */
static void make(size_t capacity);
static int try_push(int queue, const uint64_t *message);
static int try_pop(int queue, uint64_t *message);

static int (*volatile call_push)(int, const uint64_t *) = try_push;
static int (*volatile call_pop)(int, uint64_t *) = try_pop;

/* Waits for room. */
static inline void push(int queue, uint64_t message)
{
    while (!call_push(queue, &message)) {
    }
}

/* Waits for a message. */
static inline uint64_t pop(int queue)
{
    uint64_t message;
    while (!call_pop(queue, &message)) {
    }
    return message;
}

enum { PER_STRETCH = 32, PER_CHECK = 256, WARM_UP = 20, BLOCKS = 200, HAND_OFF_NS = 1000000 };

/* No message of a measurement has this value. */
static const uint64_t END = UINT64_MAX;

struct setting {
    int asks;
    long cpu[2];
    long capacity, microseconds;
};
static struct setting setting;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void pin(long cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
        fail("a thread cannot run on that CPU");
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Values that are added one by one. */
struct values {
    double *at;
    size_t count, room;
};

static void add(struct values *values, double value)
{
    if (values->count == values->room) {
        values->room = values->room ? 2 * values->room : 1 << 16;
        values->at = (double *)realloc(values->at, values->room * sizeof *values->at);
        if (values->at == NULL) fail("out of memory");
    }
    values->at[values->count++] = value;
}

/* Two numbers, each in a line of its own. */
static struct { uint64_t at; char rest[120]; } numbers[2] __attribute__((aligned(128)));

/* Echoes numbers until END. */
static void reflect(void)
{
    for (uint64_t next = 1, number = 0; number != END; ++next) {
        do {
            number = __atomic_load_n(&numbers[0].at, __ATOMIC_ACQUIRE);
        } while (number != next && number != END);
        __atomic_store_n(&numbers[1].at, number, __ATOMIC_RELEASE);
    }
}

/* The median time of an atomic number from one CPU to the other, which reflects. */
static double hand_off(void)
{
    struct values stretches = {NULL, 0, 0};
    int64_t begin = now_ns(), until = begin + HAND_OFF_NS;
    uint64_t next = 1;
    while (begin < until) {
        for (int trip = 0; trip < PER_STRETCH; ++trip, ++next) {
            __atomic_store_n(&numbers[0].at, next, __ATOMIC_RELEASE);
            while (__atomic_load_n(&numbers[1].at, __ATOMIC_ACQUIRE) != next) {
            }
        }
        int64_t end = now_ns();
        add(&stretches, (double)(end - begin) / PER_STRETCH / 2);
        begin = end;
    }
    __atomic_store_n(&numbers[0].at, END, __ATOMIC_RELEASE);
    while (__atomic_load_n(&numbers[1].at, __ATOMIC_ACQUIRE) != END) {
    }
    __atomic_store_n(&numbers[0].at, 0, __ATOMIC_RELEASE);
    double found = median(stretches.at, stretches.count);
    free(stretches.at);
    return found;
}

static void echo(void)
{
    for (uint64_t message = 0; message != END;) {
        message = pop(0);
        push(1, message);
    }
}

/* The mean time of a round trip in a block. */
static double ask(void)
{
    uint64_t next = 0;
    int64_t begin = now_ns(), end = begin, until = begin + setting.microseconds * 1000;
    while (end < until) {
        for (int trip = 0; trip < PER_STRETCH; ++trip) {
            push(0, next);
            if (pop(1) != next) fail("another message came back");
            ++next;
        }
        end = now_ns();
    }
    push(0, END);
    (void)pop(1);
    return (double)(end - begin) / (double)next;
}

static int stop;

static void feed(void)
{
    uint64_t next = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        for (int count = 0; count < PER_CHECK; ++count) push(0, next++);
    push(0, END);
}

/* The mean time per message in a block. */
static double drink(void)
{
    uint64_t next = 0;
    int64_t begin = now_ns(), end = begin, until = begin + setting.microseconds * 1000;
    while (end < until) {
        for (int count = 0; count < PER_CHECK; ++count)
            if (pop(0) != next++) fail("another message came");
        end = now_ns();
    }
    double found = (double)(end - begin) / (double)next;
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (uint64_t message; (message = pop(0)) != END; ++next)
        if (message != next) fail("another message came");
    __atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
    return found;
}

/* The end that does not measure: after each hand-off it works for a block. */
static void *other(void *unused)
{
    pin(setting.cpu[setting.asks]);
    for (long block = 0; block < WARM_UP + BLOCKS; ++block) {
        reflect();
        if (setting.asks) echo(); else feed();
    }
    reflect();
    return unused;
}

static void measure(void)
{
    pin(setting.cpu[!setting.asks]);
    for (long block = 0; block < WARM_UP + BLOCKS; ++block) {
        double took = hand_off(), time = setting.asks ? ask() : drink();
        if (block >= WARM_UP) printf("hand_off_ns %.1f\ntime_ns %.3f\n", took, time);
    }
    printf("hand_off_ns %.1f\n", hand_off());
}

/* A number from `least`, or the program ends. */
static long number(const char *text, long least)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || *text == '\0' || *end != '\0' || value < least) {
        fprintf(stderr, "`%s` is not a number from %ld\n", text, least);
        exit(2);
    }
    return value;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    if (count < 5 || count > 6
        || (strcmp(arguments[1], "ask-reply") != 0 && strcmp(arguments[1], "stream") != 0)) {
        fprintf(stderr,
                "usage: %s ask-reply|stream CPU_A CPU_B MICROSECONDS [CAPACITY]\n", arguments[0]);
        return 2;
    }
    setting.asks = strcmp(arguments[1], "ask-reply") == 0;
    setting.cpu[0] = number(arguments[2], 0);
    setting.cpu[1] = number(arguments[3], 0);
    setting.microseconds = number(arguments[4], 1);
    setting.capacity = count > 5 ? number(arguments[5], 1) : 1024;
    if (setting.cpu[0] == setting.cpu[1]) fail("two different CPUs are needed");
    make((size_t)setting.capacity);
    if (pthread_create(&thread, NULL, other, NULL) != 0) fail("no thread can be made");
    measure();
    if (pthread_join(thread, NULL) != 0) fail("a thread does not end");
    return 0;
}
