// The first of 6 decoders initialises tables_ready (pthread_once): it computes in build_tables for
// as long as the program runs, less one second. The five others wait for it in decode_frame, for
// an initialiser and not for work; then all decode, and nobody waits.
#include "account.h"

static pthread_once_t tables_ready = PTHREAD_ONCE_INIT;
static uint64_t built_by_ns, built, waited;

APART static void build_tables(void) {
    uint64_t from = now_ns();
    while (now_ns() < built_by_ns) STAY;
    built = now_ns() - from;
    STAY;
}
APART static void decode_frame(void) {
    pthread_once(&tables_ready, build_tables);
    compute_us(10);
    STAY;
}
static void *decoder(void *with) {
    for (;;) {
        uint64_t from = now_ns();
        decode_frame();
        count(&waited, now_ns() - from);
        nap_us(2000);
    }
    return with;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 7;
    built_by_ns = started_ns + (uint64_t)((seconds - 1) * 1e9);
    for (int i = 0; i < 6; i++) start("decoder", decoder, NULL);
    run_for(argc, argv);
    printf("truth: one built tables for %.1f s, the others waited %.1f s for it in all\n",
           (double)built / 1e9, (double)(waited - built) / 1e9);
    quit();
}
