/* Describes itself at too great a length. */
#include <string.h>
#define NAME "huge"
static char huge[1 << 20];
#define ON_DESCRIBE memset(huge, ' ', sizeof huge - 1);
#define DESCRIPTION huge
#include "ring.h"
