/* Never describes itself. */
#include <unistd.h>
#define NAME "hang-early"
#define ON_DESCRIBE for (;;) sleep(1000);
#include "ring.h"
