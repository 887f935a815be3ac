/* A small adapter: a ring for one sender and one receiver, polled, of messages of 8 bytes. It is
 * correct. The files of this folder include it and, except for good.c, make it misbehave: they
 * define NAME, and may define
 *
 *   DESCRIPTION            in place of a correct one
 *   ON_SEND(ring, sent)    before the message with this number, from 0, is put into the ring
 *   LENGTH                 the answer of tt_try_recv, in place of `len`
 *   ON_DESCRIBE            before the adapter describes itself
 *   ON_CREATE              before a queue is made
 *
 *   cc -O2 -fPIC -shared -I peers -o NAME.so NAME.c */

#include "adapter.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The message at which things go wrong: late enough for the tool to have begun. */
#define LATE 5000

#ifndef ON_SEND
#define ON_SEND(ring, sent)
#endif
#ifndef ON_DESCRIBE
#define ON_DESCRIBE
#endif
#ifndef ON_CREATE
#define ON_CREATE
#endif
#ifndef LENGTH
#define LENGTH ((long)len)
#endif
#ifndef DESCRIPTION
#define DESCRIPTION                                                                                \
    "{\"adapter\":1,\"language\":\"c\",\"compiler\":\"cc\",\"flags\":\"\",\"queues\":["            \
    "{\"name\":\"" NAME "\",\"version\":\"1\",\"sentence\":\"a ring\",\"senders\":\"one\","        \
    "\"receivers\":\"one\",\"capacity\":\"bounded\",\"slot_bytes\":8,\"power_of_two\":false,"      \
    "\"waits\":[\"poll\"],\"batches\":false,\"claims\":false,\"message_bytes\":[8]}]}"
#endif

struct ring {
    _Alignas(128) atomic_size_t sent;
    _Alignas(128) atomic_size_t taken;
    size_t capacity;
    int done; /* what is done once for each ring */
    uint64_t slots[];
};

const char *tt_describe(void)
{
    ON_DESCRIBE
    return DESCRIPTION;
}

void *tt_create(const char *name, size_t capacity)
{
    ON_CREATE
    if (strcmp(name, NAME) != 0 || capacity == 0 || capacity > 1 << 24) return NULL;
    size_t bytes = (sizeof(struct ring) + capacity * 8 + 127) / 128 * 128;
    struct ring *ring = aligned_alloc(128, bytes);
    if (ring == NULL) return NULL;
    memset(ring, 0, bytes);
    ring->capacity = capacity;
    return ring;
}

void tt_destroy(void *queue) { free(queue); }

static int put(struct ring *ring, uint64_t message)
{
    size_t sent = atomic_load_explicit(&ring->sent, memory_order_relaxed);
    if (sent - atomic_load_explicit(&ring->taken, memory_order_acquire) == ring->capacity)
        return TT_FULL;
    ring->slots[sent % ring->capacity] = message;
    atomic_store_explicit(&ring->sent, sent + 1, memory_order_release);
    return TT_TAKEN;
}

int tt_send(void *queue, const void *message, size_t len)
{
    struct ring *ring = queue;
    size_t sent = atomic_load_explicit(&ring->sent, memory_order_relaxed);
    uint64_t word;
    (void)len;
    (void)sent;
    memcpy(&word, message, sizeof word);
    ON_SEND(ring, sent)
    return put(ring, word);
}

long tt_try_recv(void *queue, void *message, size_t len)
{
    struct ring *ring = queue;
    size_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    if (taken == atomic_load_explicit(&ring->sent, memory_order_acquire)) return TT_NOTHING;
    memcpy(message, &ring->slots[taken % ring->capacity], 8);
    atomic_store_explicit(&ring->taken, taken + 1, memory_order_release);
    (void)len;
    return LENGTH;
}
