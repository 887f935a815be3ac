// A launched program goes on in the background (fork, setsid) and its first process ends at once.
// The daemon contends for queue_lock; a profile of the first process has to mention it.
#include "account.h"

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct account queue = {"queue_lock", 0, 0, 0};

APART static void take_job(void) {
    uint64_t asked = now_ns();
    pthread_mutex_lock(&queue_lock);
    uint64_t got = now_ns();
    nap_us(3000);
    book(&queue, asked, got);
    pthread_mutex_unlock(&queue_lock);
    STAY;
}
static void *worker(void *with) {
    for (;;) take_job();
    return with;
}

int main(int argc, char **argv) {
    if (fork()) _exit(0);
    setsid();
    fclose(stdin);
    if (!freopen("daemon.log", "w", stdout) || !freopen("/dev/null", "w", stderr)) return 1;
    for (int i = 0; i < 3; i++) start("worker", worker, NULL);
    run_for(argc, argv);
    tell(&queue);
    quit();
}
