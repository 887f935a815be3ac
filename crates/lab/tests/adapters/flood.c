/* Prints 64 MiB on standard output, and as much on standard error. */
#include <string.h>
#include <unistd.h>
#define NAME "flood"
static void flood(void)
{
    static char text[1 << 16];
    memset(text, 'x', sizeof text);
    for (int count = 0; count < 1 << 10; ++count)
        if (write(1, text, sizeof text) < 0 || write(2, text, sizeof text) < 0) return;
}
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE) flood();
#include "ring.h"
