/* Answers with a length that no message has. */
#define NAME "miscount"
#define LENGTH ((long)len + (taken >= LATE))
#include "ring.h"
