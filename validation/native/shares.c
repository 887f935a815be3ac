// Threads that use locks with holds and thinks of given lengths, beside a pool that waits for jobs
// and threads that wait for ever. The program for comparing held shares and queues.
//
//     --threads N --locks KIND,KIND,... --copies N (of each lock)
//     --hold D --think D --shape fixed|exponential
//     --work compute|sleep|fsync|read --think-work compute|sleep|fsync|read
//     --read-share S (of rwlocks) --pool N --idle N --seed N --truth FOLDER
#include "locks.h"
#include "options.h"
#include "work.h"

enum { MOST_LOCKS = 20000, MOST_THREADS = 2048 };

static struct lock cache_lock;  // the first lock has a name of its own, the others are on the heap
static struct lock *locks[MOST_LOCKS];
static int lock_count;
static double hold, think, read_share;
static enum work holding, thinking;
static int fixed;
static uint64_t seed;

static struct lock job_lock, idle_lock;
static int jobs, closed;

static double some(uint64_t *state, double mean) { return fixed ? mean : exponential(state, mean); }

NOINLINE void update_cache(struct lock *lock, double ns) {
    HOLD(lock, work_for(holding, ns));
}

NOINLINE void look_up(struct lock *lock, double ns) {
    HOLD_SHARED(lock, work_for(holding, ns));
}

static void *user(void *argument) {
    uint64_t state = seed * 1000003 + (uint64_t)(uintptr_t)argument;
    while (!stopping) {
        work_for(thinking, some(&state, think));
        struct lock *lock = locks[random_bits(&state) % (uint64_t)lock_count];
        double ns = some(&state, hold);
        if (lock->kind == RWLOCK && random_share(&state) <= read_share)
            look_up(lock, ns);
        else
            update_cache(lock, ns);
    }
    return NULL;
}

static void *pool_worker(void *unused) {
    (void)unused;
    struct record *record = ask(job_lock.id, EXCLUSIVE);
    take(&job_lock);
    got(record);
    for (;;) {
        while (jobs == 0 && !closed) {
            leave(record);
            wait_for(&job_lock);
            record = reacquired(job_lock.id);
        }
        if (closed) break;
        jobs--;
        leave(record);
        let_go(&job_lock);
        compute_for(50e3);
        record = ask(job_lock.id, EXCLUSIVE);
        take(&job_lock);
        got(record);
    }
    leave(record);
    let_go(&job_lock);
    return unused;
}

static void *poster(void *unused) {
    uint64_t state = seed ^ 0x706f7374;
    while (!stopping) {
        sleep_for(exponential(&state, 5e6));
        struct record *record = ask(job_lock.id, EXCLUSIVE);
        take(&job_lock);
        got(record);
        jobs++;
        wake_one(&job_lock);
        leave(record);
        let_go(&job_lock);
    }
    return unused;
}

static void *idler(void *unused) {
    take(&idle_lock);
    while (!closed) wait_for(&idle_lock);
    let_go(&idle_lock);
    return unused;
}

static void add_lock(enum kind kind) {
#ifdef STD
    struct lock *lock = lock_count == 0 ? &cache_lock : new struct lock();
#else
    struct lock *lock = lock_count == 0 ? &cache_lock : (struct lock *)calloc(1, sizeof *lock);
#endif
    set_up(lock, (uint32_t)lock_count, kind, lock_count ? "-" : "cache_lock");
    print_lock(lock, 1);
    locks[lock_count++] = lock;
}

int main(int count, char **words) {
    option_count = count, option_words = words;
    int threads = number("threads", "8"), pool = number("pool", "0"), idle = number("idle", "0");
    if (threads + pool + idle + 1 > MOST_THREADS) return 2;
    hold = duration_ns("hold", "1ms");
    think = duration_ns("think", "7ms");
    read_share = atof(option("read-share", "0.8"));
    holding = work_named(option("work", "sleep"));
    thinking = work_named(option("think-work", "sleep"));
    fixed = !strcmp(option("shape", "exponential"), "fixed");
    seed = (uint64_t)number("seed", "1");
    start_account(option("truth", NULL));
    calibrate();

    char kinds[256];
    snprintf(kinds, sizeof kinds, "%s", option("locks", "mutex"));
    int copies = number("copies", "1");
    for (char *kind = strtok(kinds, ","); kind; kind = strtok(NULL, ","))
        for (int i = 0; i < copies && lock_count < MOST_LOCKS; i++) add_lock(kind_named(kind));
    set_up(&job_lock, MOST_LOCKS, MUTEX, "job_lock");
    set_up(&idle_lock, MOST_LOCKS + 1, MUTEX, "idle_lock");
    if (pool) print_lock(&job_lock, 0);

    static pthread_t started[MOST_THREADS];
    int n = 0;
    for (int i = 0; i < threads; i++)
        started[n++] = start_thread("user", user, (void *)(intptr_t)i);
    int users = n;
    for (int i = 0; i < pool; i++) started[n++] = start_thread("pool", pool_worker, NULL);
    for (int i = 0; i < idle; i++) started[n++] = start_thread("idle", idler, NULL);
    pthread_t posting = pool ? start_thread("poster", poster, NULL) : 0;
    run_until_told();
    for (int i = 0; i < users; i++) pthread_join(started[i], NULL);
    if (pool) pthread_join(posting, NULL);
    struct lock *waited_on[] = {&job_lock, &idle_lock};
    for (int i = 0; i < 2; i++) {
        take(waited_on[i]);
        closed = 1;
        wake_all(waited_on[i]);
        let_go(waited_on[i]);
    }
    for (int i = users; i < n; i++) pthread_join(started[i], NULL);
    for (int i = 0; i < lock_count; i++)
        if (locks[i]->kind != RWLOCK) print_gaps(locks[i]->id, &locks[i]->gaps);
    return 0;
}
