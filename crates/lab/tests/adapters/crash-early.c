/* Reads from address 0 while it is loaded. */
#define NAME "crash-early"
#include "ring.h"
__attribute__((constructor)) static void crash(void)
{
    volatile int *volatile nowhere = NULL;
    (void)*nowhere;
}
