/* Starts a process in a session of its own, out of the reach of signals to the group, and hangs. */
#include <unistd.h>
#define NAME "orphan"
static void start(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) sleep(60);
        sleep(60);
        _exit(0);
    }
    for (;;) sleep(1000);
}
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE) start();
#include "ring.h"
