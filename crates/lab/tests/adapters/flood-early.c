/* Prints 64 MiB while it describes itself. */
#include <string.h>
#include <unistd.h>
#define NAME "flood-early"
static void flood(void)
{
    static char text[1 << 16];
    memset(text, 'x', sizeof text);
    for (int count = 0; count < 1 << 10; ++count)
        if (write(1, text, sizeof text) < 0) return;
}
#define ON_DESCRIBE flood();
#include "ring.h"
