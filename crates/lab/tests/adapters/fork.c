/* Starts a process that lives for a minute and holds all files open. */
#include <unistd.h>
#define NAME "fork"
static void start(void)
{
    if (fork() == 0) {
        sleep(60);
        _exit(0);
    }
}
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE) start();
#include "ring.h"
