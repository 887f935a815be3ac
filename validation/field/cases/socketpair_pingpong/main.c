// Two threads pass a message to and fro over a socketpair, each computing 300 us in between: one of
// them waits for the other, half of the time. No lock.
#include "account.h"
#include <sys/socket.h>

static int ends[2];
static uint64_t rounds;

APART static void answer(int end) {
    char message[64];
    if (recv(end, message, sizeof message, 0) <= 0) abort();
    compute_us(300);
    if (send(end, message, sizeof message, 0) <= 0) abort();
    count(&rounds, 1);
    STAY;
}
static void *player(void *with) {
    for (;;) answer(ends[(long)with]);
    return with;
}

int main(int argc, char **argv) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) return 1;
    start("ping", player, (void *)0);
    start("pong", player, (void *)1);
    if (send(ends[0], "start", 6, 0) < 0) return 1;
    run_for(argc, argv);
    printf("truth: %lu messages, no lock\n", rounds);
    quit();
}
