/* Closes all files of the process. */
#include <unistd.h>
#define NAME "close"
static void close_all(void)
{
    for (int file = 0; file < 1024; ++file) close(file);
}
#define ON_SEND(ring, sent)                                                                        \
    if (sent == LATE) close_all();
#include "ring.h"
