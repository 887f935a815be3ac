// A mutex in shared memory that another process holds, ledgerd. Three threads wait for it. live:
// ledgerd computes 30 ms under it, then sleeps 1 ms; stopped: a signal has stopped ledgerd while it
// held the mutex; dead: ledgerd was killed while it held it.
#include "account.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static struct {
    pthread_mutex_t segment_lock;
    volatile int held;
} *shared;
static struct account clients = {"segment_lock (clients)", 0, 0, 0};

APART static void write_ledger(void) {
    pthread_mutex_lock(&shared->segment_lock);
    shared->held = 1;
    compute_us(30000);
    pthread_mutex_unlock(&shared->segment_lock);
    STAY;
}
APART static void read_segment(void) {
    uint64_t asked = now_ns();
    pthread_mutex_lock(&shared->segment_lock);
    uint64_t got = now_ns();
    nap_us(100);
    book(&clients, asked, got);
    pthread_mutex_unlock(&shared->segment_lock);
    STAY;
}
static void *client(void *with) {
    for (;;) { read_segment(); nap_us(1000); }
    return with;
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[2] : "live";
    pthread_mutexattr_t between;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&between);
    pthread_mutexattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->segment_lock, &between);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "ledgerd");
        for (;;) { write_ledger(); nap_us(1000); }
    }
    while (!shared->held) nap_us(100);
    // It is in its first 30 ms.
    if (!strcmp(what, "stopped")) kill(child, SIGSTOP);
    if (!strcmp(what, "dead")) { kill(child, SIGKILL); waitpid(child, NULL, 0); }
    for (int i = 0; i < 3; i++) start("client", client, NULL);
    run_for(argc, argv);
    printf("truth: segment_lock is held by process %d (ledgerd), %s\n", child, what);
    tell(&clients);
    kill(child, SIGKILL);
    quit();
}
