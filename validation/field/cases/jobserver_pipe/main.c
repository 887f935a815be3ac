// A pipe with one byte is a lock, as make's job server has it: 4 of 5 threads wait in read for the
// token, the fifth sleeps 5 ms in run_job and writes it back. No disk, no network.
#include "account.h"

static int tokens[2];
static struct account token = {"token", 0, 0, 0};

APART static void take_token(void) {
    char byte;
    if (read(tokens[0], &byte, 1) != 1) abort();
    STAY;
}
APART static void give_token(void) {
    if (write(tokens[1], "+", 1) != 1) abort();
    STAY;
}
APART static void run_job(void) {
    uint64_t asked = now_ns();
    take_token();
    uint64_t got = now_ns();
    nap_us(5000);
    book(&token, asked, got);
    give_token();
    STAY;
}
static void *worker(void *with) {
    for (;;) run_job();
    return with;
}

int main(int argc, char **argv) {
    if (pipe(tokens)) return 1;
    give_token();
    for (int i = 0; i < 5; i++) start("worker", worker, NULL);
    run_for(argc, argv);
    tell(&token);
    quit();
}
