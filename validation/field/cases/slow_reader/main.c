// Three threads write to peers that read slowly, and wait in poll until a socket takes more
// (POLLOUT). The peers are threads of a child process. No lock, and nobody waits for work.
#include "account.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>

static uint64_t sent;

APART static void push_frames(int to) {
    char frame[4096] = "frame";
    for (;;) {
        if (write(to, frame, sizeof frame) > 0) { count(&sent, 1); continue; }
        if (errno != EAGAIN) return;
        struct pollfd ready = {to, POLLOUT, 0};
        poll(&ready, 1, -1);
    }
}
static void *sender(void *with) { push_frames((int)(long)with); return with; }
static void *slow_peer(void *with) {
    char buffer[4096];
    for (;;) {
        nap_us(3000);
        if (read((int)(long)with, buffer, sizeof buffer) <= 0) return with;
    }
}

int main(int argc, char **argv) {
    int ends[3][2];
    for (int i = 0; i < 3; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i])) return 1;
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 3; i++) {
            close(ends[i][0]);
            start("peer", slow_peer, (void *)(long)ends[i][1]);
        }
        for (;;) pause();
    }
    for (int i = 0; i < 3; i++) {
        close(ends[i][1]);
        fcntl(ends[i][0], F_SETFL, O_NONBLOCK);
        start("sender", sender, (void *)(long)ends[i][0]);
    }
    run_for(argc, argv);
    printf("truth: %lu frames, no lock\n", sent);
    quit();
}
