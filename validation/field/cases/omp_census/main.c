// A critical section of GCC's OpenMP, `tally`, is held 99% by one that sleeps 2 ms in
// publish_tally: 3.75 of 5 threads wait for it. Another one, `rejects`, is entered once in 500
// rounds, for some nanoseconds, and costs nothing.
#include "account.h"

static struct account account = {"critical(tally)", 0, 0, 0};
static long rejected;

APART static void code_household(void) { compute_us(500); STAY; }
APART static void publish_tally(uint64_t asked) {
    uint64_t got = now_ns();
    nap_us(2000);
    book(&account, asked, got);
    STAY;
}

int main(int argc, char **argv) {
    uint64_t end = started_ns + (uint64_t)(1e9 * (argc > 1 ? atof(argv[1]) : 7));
#pragma omp parallel num_threads(5)
    for (int round = 1; now_ns() < end; round++) {
        code_household();
        uint64_t asked = now_ns();
#pragma omp critical(tally)
        publish_tally(asked);
        if (round % 500 == 0) {
#pragma omp critical(rejects)
            rejected++;
        }
    }
    tell(&account);
    quit();
}
