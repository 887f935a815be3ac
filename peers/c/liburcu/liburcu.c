/* wfcqueue of liburcu: wait-free senders, one receiver, nodes that belong to the program.
 *
 * As in the library's examples and tests, a message is a node from malloc, which its receiver
 * frees. Both ends are inlined, as the library offers to programs whose licence is compatible with
 * the LGPL. Its functions that wait do so only for a sender between its two stores; none waits for
 * a message. */

#define _LGPL_SOURCE
#include <urcu/wfcqueue.h>

#include "../../adapter.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Two lines, because processors prefetch pairs of them. */
#define APART 128

struct message {
    struct cds_wfcq_node node;
    _Alignas(8) unsigned char bytes[];
};

struct queue {
    _Alignas(APART) struct __cds_wfcq_head head;
    /* Messages that the receiver has spliced and not yet returned. */
    struct __cds_wfcq_head batch_head;
    struct cds_wfcq_tail batch_tail;
    _Alignas(APART) struct cds_wfcq_tail tail;
};

/* The claim of a thread. */
static _Thread_local struct message *claimed;

static const char *const description =
    "{\"adapter\":1,\"language\":\"c\",\"compiler\":\"" TT_COMPILER "\",\"flags\":\"" TT_FLAGS
    "\",\"queues\":[{\"name\":\"wfcqueue\",\"version\":\"" TT_LIBRARY_VERSION
    "\",\"sentence\":\"wfcqueue of liburcu, a node from malloc for each message\","
    "\"senders\":\"many\",\"receivers\":\"one\",\"capacity\":\"unbounded\",\"waits\":[\"poll\"],"
    "\"batches\":true,\"claims\":true,\"message_bytes\":[8,64,512,4096,65536]}]}";

const char *tt_describe(void) { return description; }

static struct message *new_message(size_t bytes)
{
    struct message *message = malloc(sizeof *message + bytes);
    if (message != NULL) cds_wfcq_node_init(&message->node);
    return message;
}

static struct message *message_of(struct cds_wfcq_node *node)
{
    return caa_container_of(node, struct message, node);
}

/* Returns null as well while a sender is between its two stores. */
static struct message *dequeue(struct __cds_wfcq_head *head, struct cds_wfcq_tail *tail)
{
    struct cds_wfcq_node *node = __cds_wfcq_dequeue_nonblocking(head, tail);
    return node == NULL || node == CDS_WFCQ_WOULDBLOCK ? NULL : message_of(node);
}

static struct message *next(struct queue *queue)
{
    if (!cds_wfcq_empty(&queue->batch_head, &queue->batch_tail))
        return dequeue(&queue->batch_head, &queue->batch_tail);
    return dequeue(&queue->head, &queue->tail);
}

/* Makes malloc obtain memory for some messages, which are freed at once. */
static bool rehearse(size_t message_bytes)
{
    enum { BYTES = 256 << 10, MOST = 4096 };
    struct message *messages[MOST];
    size_t count = BYTES / message_bytes < MOST ? BYTES / message_bytes : MOST;
    size_t made = 0;
    while (made < count && (messages[made] = new_message(message_bytes)) != NULL) {
        memset(messages[made]->bytes, 0, message_bytes);
        ++made;
    }
    for (size_t index = 0; index < made; ++index) free(messages[index]);
    return made == count;
}

void *tt_create_sized(const char *name, size_t capacity, size_t message_bytes)
{
    (void)capacity;
    if (strcmp(name, "wfcqueue") != 0) return NULL;
    switch (message_bytes) {
    case 8: case 64: case 512: case 4096: case 65536: break;
    default: return NULL;
    }
    if (!rehearse(message_bytes)) return NULL;
    struct queue *queue = aligned_alloc(APART, sizeof *queue);
    if (queue == NULL) return NULL;
    __cds_wfcq_init(&queue->head, &queue->tail);
    __cds_wfcq_init(&queue->batch_head, &queue->batch_tail);
    return queue;
}

void *tt_create(const char *name, size_t capacity) { return tt_create_sized(name, capacity, 8); }

void tt_destroy(void *at)
{
    struct queue *queue = at;
    struct message *message;
    while ((message = next(queue)) != NULL) free(message);
    free(queue);
}

int tt_send(void *at, const void *bytes, size_t len)
{
    struct queue *queue = at;
    struct message *message = new_message(len);
    if (message == NULL) return TT_CLOSED;
    memcpy(message->bytes, bytes, len);
    cds_wfcq_enqueue(&queue->head, &queue->tail, &message->node);
    return TT_TAKEN;
}

long tt_try_recv(void *at, void *bytes, size_t len)
{
    struct message *message = next(at);
    if (message == NULL) return TT_NOTHING;
    memcpy(bytes, message->bytes, len);
    free(message);
    return (long)len;
}

/* Chains the messages, and appends all of them by one exchange. */
size_t tt_send_many(void *at, const void *bytes, size_t len, size_t count)
{
    struct queue *queue = at;
    struct __cds_wfcq_head head;
    struct cds_wfcq_tail tail;
    __cds_wfcq_init(&head, &tail);
    size_t sent = 0;
    for (; sent < count; ++sent) {
        struct message *message = new_message(len);
        if (message == NULL) break;
        memcpy(message->bytes, (const unsigned char *)bytes + sent * len, len);
        cds_wfcq_enqueue(&head, &tail, &message->node);
    }
    if (sent > 0) __cds_wfcq_splice_blocking(&queue->head, &queue->tail, &head, &tail);
    return sent;
}

/* Takes the whole queue by two exchanges, and keeps for later what is more than `most`. */
size_t tt_recv_many(void *at, void *bytes, size_t len, size_t most)
{
    struct queue *queue = at;
    if (cds_wfcq_empty(&queue->batch_head, &queue->batch_tail))
        (void)__cds_wfcq_splice_nonblocking(&queue->batch_head, &queue->batch_tail, &queue->head,
                                            &queue->tail);
    size_t received = 0;
    for (; received < most; ++received) {
        struct message *message = dequeue(&queue->batch_head, &queue->batch_tail);
        if (message == NULL) break;
        memcpy((unsigned char *)bytes + received * len, message->bytes, len);
        free(message);
    }
    return received;
}

void *tt_claim(void *at, size_t len)
{
    (void)at;
    claimed = new_message(len);
    return claimed == NULL ? NULL : claimed->bytes;
}

void tt_publish(void *at)
{
    struct queue *queue = at;
    cds_wfcq_enqueue(&queue->head, &queue->tail, &claimed->node);
}
