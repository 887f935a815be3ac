/* wfcqueue of liburcu without adapter and tool, a node from malloc for each message; see pair.h.
 * The capacity does not matter.
 *
 *   gcc -std=gnu11 -O3 -march=native -DNDEBUG -pthread -o wfcqueue wfcqueue.c -lurcu-common */

#include "pair.h"

#define _LGPL_SOURCE
#include <urcu/wfcqueue.h>

struct message {
    struct cds_wfcq_node node;
    uint64_t value;
};

static struct {
    _Alignas(128) struct __cds_wfcq_head head;
    _Alignas(128) struct cds_wfcq_tail tail;
} queues[2];

static void make(size_t capacity)
{
    (void)capacity;
    for (int queue = 0; queue < 2; ++queue)
        __cds_wfcq_init(&queues[queue].head, &queues[queue].tail);
}

static int try_push(int queue, const uint64_t *value)
{
    struct message *message = malloc(sizeof *message);
    if (message == NULL) abort();
    cds_wfcq_node_init(&message->node);
    message->value = *value;
    cds_wfcq_enqueue(&queues[queue].head, &queues[queue].tail, &message->node);
    return 1;
}

static int try_pop(int queue, uint64_t *value)
{
    struct cds_wfcq_node *node;
    struct message *message;
    node = __cds_wfcq_dequeue_nonblocking(&queues[queue].head, &queues[queue].tail);
    if (node == NULL || node == CDS_WFCQ_WOULDBLOCK) return 0;
    message = caa_container_of(node, struct message, node);
    *value = message->value;
    free(message);
    return 1;
}
