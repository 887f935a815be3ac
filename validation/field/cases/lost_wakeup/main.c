// A lock on a futex whose release forgets to wake (it looks at its count of waiters too early). The
// word is free, and three threads sleep on it for ever. One more thread works and never needs it.
#include "account.h"
#include <linux/futex.h>
#include <sys/syscall.h>

static uint32_t gate; // 0 free, 1 taken
static uint64_t steps;

APART static void enter_gate(void) {
    while (__atomic_exchange_n(&gate, 1, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &gate, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}
APART static void leave_gate(void) { __atomic_store_n(&gate, 0, __ATOMIC_RELEASE); STAY; }

APART static void use_gate(void) {
    enter_gate();
    nap_us(200000);
    leave_gate();
}
static void *first(void *with) { use_gate(); nap_us(60000000); return with; }
static void *later(void *with) { nap_us(50000); use_gate(); return with; }
static void *other(void *with) {
    for (;; count(&steps, 1)) { compute_us(50); nap_us(2000); }
    return with;
}

int main(int argc, char **argv) {
    start("first", first, NULL);
    for (int i = 0; i < 3; i++) start("later", later, NULL);
    start("other", other, NULL);
    run_for(argc, argv);
    printf("truth: gate is %s, and three threads sleep on it\n", gate ? "taken" : "free");
    quit();
}
