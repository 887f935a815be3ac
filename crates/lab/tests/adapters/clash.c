/* Has a queue of a name that is taken, and two of one name. */
#define NAME "pipe"
#define QUEUE(name)                                                                                \
    "{\"name\":\"" name "\",\"version\":\"1\",\"sentence\":\"a ring\",\"senders\":\"one\","           \
    "\"receivers\":\"one\",\"capacity\":\"bounded\",\"slot_bytes\":8,\"power_of_two\":false,"        \
    "\"waits\":[\"poll\"],\"batches\":false,\"claims\":false,\"message_bytes\":[8]}"
#define DESCRIPTION                                                                                \
    "{\"adapter\":1,\"language\":\"c\",\"compiler\":\"cc\",\"flags\":\"\",\"queues\":["            \
    QUEUE("pipe") "," QUEUE("twice") "," QUEUE("twice") "]}"
#include "ring.h"
