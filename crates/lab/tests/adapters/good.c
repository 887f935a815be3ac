/* Does what it should. */
#define NAME "good"
#include "ring.h"
