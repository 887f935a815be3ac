// The memory allocator of a game engine, as Jeff Preshing describes it in "Locks Aren't Slow; Lock
// Contention Is": three busy threads share one lock, which they take 15,000 times a second in play
// and 100,000 times a second while a level loads, and which is held for about 2% of the time.
//
//     allocator --rate N (a second, of all threads) --held S --threads N --truth FOLDER
#include "locks.h"
#include "options.h"
#include "work.h"

static struct lock heap_lock;
static double hold, period;
static volatile uint64_t allocated;

NOINLINE void allocate(void) {
    HOLD(&heap_lock, {
        uint64_t until = record_->acquired + (uint64_t)hold;
        do allocated = allocated + 1;
        while (now() < until);
    });
}

static void *engine(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument + 1;
    double next = (double)now();
    while (!stopping) {
        next += exponential(&state, period);
        while ((double)now() < next) {
        }
        // A thread that had to wait for a CPU does not make up for it.
        if ((double)now() - next > 1e6) next = (double)now();
        allocate();
    }
    return NULL;
}

int main(int count, char **words) {
    option_count = count, option_words = words;
    int threads = number("threads", "3");
    double rate = atof(option("rate", "15000"));
    hold = atof(option("held", "0.02")) / rate * 1e9;
    period = 1e9 * threads / rate;
    if (threads > 64 || rate <= 0) return 2;
    start_account(option("truth", NULL));
    set_up(&heap_lock, 0, MUTEX, "heap_lock");
    print_lock(&heap_lock, 1);
    pthread_t started[64];
    for (int i = 0; i < threads; i++)
        started[i] = start_thread("engine", engine, (void *)(intptr_t)i);
    run_until_told();
    for (int i = 0; i < threads; i++) pthread_join(started[i], NULL);
    print_gaps(heap_lock.id, &heap_lock.gaps);
    return 0;
}
