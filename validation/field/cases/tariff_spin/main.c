// Two threads take a pthread_spin_lock: held nearly all the time by one that computes 150 us in
// revise_matrix, while the other spins for it, a third of its time. 50 us are computed without it.
#include "account.h"

static pthread_spinlock_t matrix_spin;
static struct account account = {"matrix_spin", 0, 0, 0};
static uint64_t matrix[256];

APART static void revise_matrix(void) {
    for (int i = 0; i < 256; i++) matrix[i]++;
    compute_us(150);
    STAY;
}
APART static void prepare_quote(void) { compute_us(50); STAY; }
static void *underwriter(void *with) {
    for (;;) {
        prepare_quote();
        uint64_t asked = now_ns();
        pthread_spin_lock(&matrix_spin);
        uint64_t got = now_ns();
        revise_matrix();
        book(&account, asked, got);
        pthread_spin_unlock(&matrix_spin);
    }
    return with;
}

int main(int argc, char **argv) {
    pthread_spin_init(&matrix_spin, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 2; i++) start("underwriter", underwriter, NULL);
    run_for(argc, argv);
    tell(&account);
    quit();
}
