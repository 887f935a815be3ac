// page_lock is held by one that sleeps in persist, which save_page ends with: compiled as a jump,
// so save_page is not on the stack, but keep_page, which called it, is. Held 98%, queue nearly 3.
#include "account.h"
#include <poll.h>

static pthread_mutex_t page_lock = PTHREAD_MUTEX_INITIALIZER;
static struct account pages = {"page_lock", 0, 0, 0};
static int pipe_ends[2];

APART static int persist(struct pollfd *store) { return poll(store, 1, 3); }
APART static int save_page(struct pollfd *store) {
    store->events = POLLIN;
    return persist(store);
}
APART static void keep_page(void) {
    struct pollfd store = {.fd = pipe_ends[0]};
    uint64_t asked = now_ns();
    pthread_mutex_lock(&page_lock);
    uint64_t got = now_ns();
    save_page(&store);
    book(&pages, asked, got);
    pthread_mutex_unlock(&page_lock);
    STAY;
}
static void *keeper(void *with) {
    for (;;) { keep_page(); compute_us(20); }
    return with;
}

int main(int argc, char **argv) {
    if (pipe(pipe_ends)) return 1;
    for (int i = 0; i < 4; i++) start("keeper", keeper, NULL);
    run_for(argc, argv);
    tell(&pages);
    quit();
}
