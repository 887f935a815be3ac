// A lock in two bits of a word that carries more: bit 0 is held, bit 1 says that threads sleep, and
// each release counts up bits 8 to 31. They sleep by FUTEX_WAIT_BITSET. Held 97 to 99% by one that
// computes 0.8 ms in solve_setpoints; about 3.5 of 5 threads wait in claim.
#include "account.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { CLAIMED = 1, SLEEPERS = 2, REVISION = 0x100 };
static const uint32_t channel = 4;
static struct {
    _Atomic uint32_t control;
    double setpoints[32];
} turbine;
static struct account account = {"turbine.control", 0, 0, 0};

APART static void claim(void) {
    uint32_t slept = 0, seen = atomic_load(&turbine.control);
    for (;;) {
        if (!(seen & CLAIMED)) {
            uint32_t mine = seen | CLAIMED | slept;
            if (atomic_compare_exchange_weak(&turbine.control, &seen, mine)) return;
            continue;
        }
        uint32_t sleeping = seen | SLEEPERS;
        if (seen != sleeping && !atomic_compare_exchange_weak(&turbine.control, &seen, sleeping))
            continue;
        syscall(SYS_futex, &turbine.control, FUTEX_WAIT_BITSET_PRIVATE, sleeping, NULL, NULL,
                channel);
        slept = SLEEPERS;
        seen = atomic_load(&turbine.control);
    }
}
APART static void release(void) {
    uint32_t seen = atomic_load(&turbine.control), next;
    do next = (seen & ~(uint32_t)(CLAIMED | SLEEPERS)) + REVISION;
    while (!atomic_compare_exchange_weak(&turbine.control, &seen, next));
    if (seen & SLEEPERS)
        syscall(SYS_futex, &turbine.control, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, channel);
    STAY;
}
APART static void solve_setpoints(void) {
    turbine.setpoints[0] += 1;
    compute_us(800);
    STAY;
}
static void *regulator(void *with) {
    for (;;) {
        uint64_t asked = now_ns();
        claim();
        uint64_t got = now_ns();
        solve_setpoints();
        book(&account, asked, got);
        release();
        nap_us(350);
    }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 5; i++) start("regulator", regulator, NULL);
    run_for(argc, argv);
    tell(&account);
    quit();
}
