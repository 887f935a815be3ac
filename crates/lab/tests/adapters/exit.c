/* Ends the process, as if all were well. */
#include <unistd.h>
#define NAME "exit"
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE) _exit(0);
#include "ring.h"
