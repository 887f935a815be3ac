/* Makes no queue: it does not have the one that it describes. */
#define NAME "refuse"
#define DESCRIPTION                                                                                \
    "{\"adapter\":1,\"language\":\"c\",\"compiler\":\"cc\",\"flags\":\"\",\"queues\":["            \
    "{\"name\":\"refused\",\"version\":\"1\",\"sentence\":\"a ring\",\"senders\":\"one\","         \
    "\"receivers\":\"one\",\"capacity\":\"bounded\",\"slot_bytes\":8,\"power_of_two\":false,"      \
    "\"waits\":[\"poll\"],\"batches\":false,\"claims\":false,\"message_bytes\":[8]}]}"
#include "ring.h"
