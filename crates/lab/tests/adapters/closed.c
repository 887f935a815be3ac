/* Answers that the queue is closed. */
#define NAME "closed"
#define ON_SEND(ring, sent)                                                                        \
    if (sent >= LATE) return TT_CLOSED;
#include "ring.h"
