// One program for each cause of waiting that a profile can name.
//
//     causes CAUSE --truth FOLDER
//     causes slept-holding --work sleep|fsync|read; all but herd and starved-writer: --lock KIND
//
// In most of them a thread called `principal` holds the lock longer than the three others together.
#include "locks.h"
#include "options.h"
#include "work.h"

static struct lock table_lock;
static int principal_id;
static enum work holding;
static double principal_hold = 2e6, principal_think = 1.5e6, other_hold = 0.5e6, other_think = 6e6;
static int generation;

NOINLINE void rebuild_table(double ns) { HOLD(&table_lock, work_for(holding, ns)); }
NOINLINE void read_table(double ns) { HOLD_SHARED(&table_lock, work_for(holding, ns)); }

static void *principal(void *unused) {
    principal_id = (int)syscall(SYS_gettid);
    while (!stopping) {
        rebuild_table(principal_hold);
        if (principal_think > 0) sleep_for(principal_think);
    }
    return unused;
}

static void *other(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument + 1;
    while (!stopping) {
        sleep_for(exponential(&state, other_think));
        rebuild_table(other_hold);
    }
    return NULL;
}

static void *reader(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument + 1;
    while (!stopping) {
        read_table(exponential(&state, 3e6));
        sleep_for(0.3e6);
    }
    return NULL;
}

static void *spinner(void *unused) {
    while (!stopping) compute_for(1e6);
    return unused;
}

// Waits for the next generation, then works under the lock that it was woken with.
static void *woken(void *unused) {
    struct record *record = ask(table_lock.id, EXCLUSIVE);
    take(&table_lock);
    got(record);
    for (int seen = generation; !stopping; seen = generation) {
        while (generation == seen && !stopping) {
            leave(record);
            wait_for(&table_lock);
            record = reacquired(table_lock.id);
        }
        work_for(COMPUTE, 150e3);
    }
    leave(record);
    let_go(&table_lock);
    return unused;
}

static void *announcer(void *unused) {
    int last;
    do {
        sleep_for(4e6);
        last = stopping;
        struct record *record = ask(table_lock.id, EXCLUSIVE);
        take(&table_lock);
        got(record);
        generation++;
        wake_all(&table_lock);
        leave(record);
        let_go(&table_lock);
    } while (!last);
    return unused;
}

static pthread_t started[256];
static int start_count;

static void start(const char *name, void *(*run)(void *), int copies) {
    for (int i = 0; i < copies; i++, start_count++)
        started[start_count] = start_thread(name, run, (void *)(intptr_t)start_count);
}

int main(int count, char **words) {
    option_count = count, option_words = words;
    const char *cause = count > 1 ? words[1] : "";
    const char *also = "-";
    start_account(option("truth", NULL));
    calibrate();
    account_cpu = 1;
    enum kind kind = kind_named(option("lock", "mutex"));
    int spinners = 0, writers = 1, others = 3, readers = 0, many = 0;
    holding = COMPUTE;
    if (!strcmp(cause, "slept-holding")) {
        holding = work_named(option("work", "sleep"));
    } else if (!strcmp(cause, "computing")) {
    } else if (!strcmp(cause, "preempted")) {
        spinners = 4 * (int)sysconf(_SC_NPROCESSORS_ONLN);
        also = "computing";
    } else if (!strcmp(cause, "throttled")) {
        also = "computing,preempted";
    } else if (!strcmp(cause, "convoy")) {
        prctl(PR_SET_TIMERSLACK, 1);
        writers = 0, others = 8, other_hold = 5e3, other_think = 60e3;
        also = "computing";
        account_cpu = 0;
    } else if (!strcmp(cause, "herd")) {
        writers = 0, others = 0, many = 8;
        also = "computing";
    } else if (!strcmp(cause, "hog")) {
        principal_hold = 100e3, principal_think = 0, other_hold = 20e3, other_think = 1e6;
        also = "computing";
    } else if (!strcmp(cause, "starved-writer")) {
        kind = RWLOCK;
        holding = SLEEP;
        principal_hold = 0.1e6, principal_think = 5e6, others = 0, readers = 4;
        also = "slept-holding";
    } else {
        fprintf(stderr, "no such cause: %s\n", cause);
        return 2;
    }
    set_up(&table_lock, 0, kind, "table_lock");
    print_lock(&table_lock, 1);
    start("principal", principal, writers);
    start("other", other, others);
    start("reader", reader, readers);
    start("spinner", spinner, spinners);
    start("woken", woken, many);
    if (many) start("announcer", announcer, 1);
    while (writers && !__atomic_load_n(&principal_id, __ATOMIC_RELAXED)) sleep_for(1e6);
    printf("cause %s %u %d %s %s\n", cause, table_lock.id, readers ? 0 : principal_id, also,
           call_of(holding));
    run_until_told();
    for (int i = 0; i < start_count; i++) pthread_join(started[i], NULL);
    if (kind != RWLOCK && !many) print_gaps(table_lock.id, &table_lock.gaps);
    return 0;
}
