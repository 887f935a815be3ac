/* Starts a process that lives for a minute while it describes itself. */
#include <unistd.h>
#define NAME "fork-early"
#define ON_DESCRIBE                                                                                \
    if (fork() == 0) {                                                                             \
        sleep(60);                                                                                 \
        _exit(0);                                                                                  \
    }
#include "ring.h"
