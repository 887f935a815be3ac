// An eventfd in semaphore mode is a lock: 3 of 4 threads wait in read for it, the fourth sleeps 4
// ms in use_device and writes 1. Nobody waits for work, a disk or a network.
#include "account.h"
#include <sys/eventfd.h>

static int permit;
static struct account account = {"permit", 0, 0, 0};

APART static void use_device(void) {
    uint64_t one = 1, asked = now_ns();
    if (read(permit, &one, sizeof one) != sizeof one) abort();
    uint64_t got = now_ns();
    nap_us(4000);
    book(&account, asked, got);
    one = 1;
    if (write(permit, &one, sizeof one) != sizeof one) abort();
    STAY;
}
static void *user(void *with) {
    for (;;) { use_device(); compute_us(30); }
    return with;
}

int main(int argc, char **argv) {
    permit = eventfd(1, EFD_SEMAPHORE);
    for (int i = 0; i < 4; i++) start("user", user, NULL);
    run_for(argc, argv);
    tell(&account);
    quit();
}
