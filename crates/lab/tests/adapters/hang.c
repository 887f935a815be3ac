/* Never returns from tt_send. */
#include <unistd.h>
#define NAME "hang"
#define ON_SEND(ring, sent)                                                                        \
    while (sent == LATE) sleep(1000);
#include "ring.h"
