/* Describes nothing that anybody could read. */
#define NAME "rubbish"
#define DESCRIPTION "{\"adapter\":1,\"queues\":[{\"name\":\"rub\x01\xff"
#include "ring.h"
