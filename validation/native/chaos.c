// A program that is hard to look at: locks in memory that is unmapped, threads that come and go
// with names that contain control characters, and a new program image on SIGUSR1. It checks
// itself: a counter that each lock guards must come out right, and nobody may trace it.
//
//     chaos --seed N      ends with 0 on SIGTERM, if all was right
#include "locks.h"
#include "options.h"
#include "work.h"

enum { USERS = 4, TURNS = 40 };

struct page {
    struct lock lock;
    long count;
};

static char **own_words;

static void *user(void *argument) {
    struct page *page = (struct page *)argument;
    prctl(PR_SET_NAME, "\033[31m\n\t\"\\\001");
    for (int i = 0; i < TURNS; i++) {
        take(&page->lock);
        page->count++;
        if (i % 8 == 0) sleep_for(200e3);
        let_go(&page->lock);
    }
    return NULL;
}

static void *life(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument;
    while (!stopping) {
        size_t size = 4096 * (1 + random_bits(&state) % 8);
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) fail("mmap");
        struct page *page = (struct page *)memory;
        set_up(&page->lock, 0, MUTEX, "unmapped");
        pthread_t users[USERS];
        for (int i = 0; i < USERS; i++) users[i] = start_thread("user", user, page);
        for (int i = 0; i < USERS; i++) pthread_join(users[i], NULL);
        if (page->count != USERS * TURNS) _exit(3);
        munmap(memory, size);
    }
    return NULL;
}

static void become_new(int signal) {
    (void)signal;
    execv("/proc/self/exe", own_words);
    _exit(4);
}

static int is_traced(void) {
    char line[256];
    int tracer = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "TracerPid: %d", &tracer);
    if (status) fclose(status);
    return tracer;
}

int main(int count, char **words) {
    option_count = count, option_words = own_words = words;
    start_account(NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &set, NULL);  // a signal handler's mask survives exec
    signal(SIGUSR1, become_new);
    pthread_t lives[2];
    for (int i = 0; i < 2; i++)
        lives[i] = start_thread("life", life, (void *)(intptr_t)(number("seed", "1") + i));
    run_until_told();
    for (int i = 0; i < 2; i++) pthread_join(lives[i], NULL);
    return is_traced() ? 5 : 0;
}
