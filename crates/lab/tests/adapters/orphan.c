/* Starts processes in sessions of their own, out of the reach of signals to the group, by `fork` and
 * by `posix_spawn`, which no handler of forks sees. Then it hangs. */
#define _GNU_SOURCE
#include <spawn.h>
#include <unistd.h>
#define NAME "orphan"
static void start(void)
{
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    char *words[] = {"sleep", "60", NULL};
    pid_t pid;
    posix_spawnp(&pid, "sleep", NULL, &attributes, words, environ);
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
