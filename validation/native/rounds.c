// Rounds of a fixed amount of work, to measure what being watched costs: in each round all threads
// together compute for a fixed CPU time, a tenth of it under one lock. Each thread takes the next
// piece that is left, as threads of a pool do, or has a fixed share of them, so that the slowest
// thread decides when a round ends. A round is written down as an acquisition of lock 1: from
// `acquired` to `released`, with the CPU time of the whole process.
//
//     rounds --threads N --round D (CPU time) --pieces next|fixed --truth FOLDER
#include "locks.h"
#include "options.h"
#include "work.h"

static struct lock table_lock;
static pthread_barrier_t begin, end;
static int pieces, fixed_pieces;
static int pieces_left;
static volatile int finished;

NOINLINE void update_table(void) {
    take(&table_lock);
    compute_for(10e3);
    let_go(&table_lock);
}

static int has_piece(int done) {
    if (fixed_pieces) return done < fixed_pieces;
    return __atomic_fetch_sub(&pieces_left, 1, __ATOMIC_RELAXED) > 0;
}

static void *worker(void *unused) {
    for (;;) {
        pthread_barrier_wait(&begin);
        if (finished) return unused;
        for (int done = 0; has_piece(done); done++) {
            compute_for(90e3);
            update_table();
        }
        pthread_barrier_wait(&end);
    }
}

static void *leader(void *unused) {
    while (!finished) {
        struct record *record = ask(1, EXCLUSIVE);
        record->acquired = record->asked;
        __atomic_store_n(&pieces_left, pieces, __ATOMIC_RELAXED);
        record->cpu = (uint64_t)0 - clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        record->cpu += clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        record->released = now();
        finished = stopping;
    }
    pthread_barrier_wait(&begin);
    return unused;
}

enum { MAX_THREADS = 4096 };

int main(int count, char **words) {
    option_count = count, option_words = words;
    int threads = number("threads", "2");
    if (threads < 1 || threads > MAX_THREADS) return 2;
    start_account(option("truth", NULL));
    calibrate();
    pieces = (int)(duration_ns("round", "80ms") / 100e3);
    if (pieces < threads) pieces = threads;
    if (strcmp(option("pieces", "next"), "fixed") == 0) fixed_pieces = pieces / threads;
    pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
    set_up(&table_lock, 0, MUTEX, "table_lock");
    print_lock(&table_lock, 0);
    static pthread_t started[MAX_THREADS + 1];
    for (int i = 0; i < threads; i++) started[i] = start_thread("worker", worker, NULL);
    started[threads] = start_thread("leader", leader, NULL);
    run_until_told();
    for (int i = 0; i <= threads; i++) pthread_join(started[i], NULL);
    return 0;
}
