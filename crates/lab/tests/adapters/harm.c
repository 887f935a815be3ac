/* Delivers a message with a wrong bit. */
#define NAME "harm"
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE) word ^= 1;
#include "ring.h"
