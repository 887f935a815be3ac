/* Ends the process while it describes itself, as if all were well. */
#include <unistd.h>
#define NAME "exit-early"
#define ON_DESCRIBE _exit(0);
#include "ring.h"
