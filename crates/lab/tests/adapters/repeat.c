/* Delivers a message twice. */
#define NAME "repeat"
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE) put(ring, word);
#include "ring.h"
