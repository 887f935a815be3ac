/* Reads from address 0 in tt_create. */
#include <stddef.h>
#define NAME "crash-create"
#define ON_CREATE (void)*(volatile int *volatile)NULL;
#include "ring.h"
