/* Reads from address 0. */
#include <stddef.h>
#define NAME "crash"
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE) word = *(volatile uint64_t *)NULL;
#include "ring.h"
