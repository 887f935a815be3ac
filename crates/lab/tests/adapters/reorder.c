/* Delivers a message before the one that was sent earlier, whenever there are two. */
#define NAME "reorder"
#define ON_RECV(ring, taken)                                                                       \
    if (taken >= LATE && atomic_load(&ring->sent) - taken >= 2) {                                  \
        uint64_t first = ring->slots[taken % ring->capacity];                                      \
        ring->slots[taken % ring->capacity] = ring->slots[(taken + 1) % ring->capacity];           \
        ring->slots[(taken + 1) % ring->capacity] = first;                                         \
    }
#include "ring.h"
