/* Loses a message: says that it is in the queue, but it is not. */
#define NAME "lose"
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE && !ring->done) {                                                             \
        ring->done = 1;                                                                            \
        return TT_TAKEN;                                                                           \
    }
#include "ring.h"
