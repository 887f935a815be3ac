// A critical section of LLVM's OpenMP (clang -fopenmp), `harvest`, is held 99% by one that sleeps
// 4 ms in weigh_grain. The other three of 4 threads wait for it: LLVM's library does not let them
// sleep, but spins and yields their CPUs.
#include "account.h"

static struct account account = {"critical(harvest)", 0, 0, 0};

APART static void thresh(void) { nap_us(200); STAY; }
APART static void weigh_grain(uint64_t asked) {
    uint64_t got = now_ns();
    nap_us(4000);
    book(&account, asked, got);
    STAY;
}

int main(int argc, char **argv) {
    uint64_t end = started_ns + (uint64_t)(1e9 * (argc > 1 ? atof(argv[1]) : 7));
#pragma omp parallel num_threads(4)
    while (now_ns() < end) {
        thresh();
        uint64_t asked = now_ns();
#pragma omp critical(harvest)
        weigh_grain(asked);
    }
    tell(&account);
    quit();
}
