/* Never returns from tt_create. */
#include <unistd.h>
#define NAME "hang-create"
#define ON_CREATE for (;;) sleep(1000);
#include "ring.h"
