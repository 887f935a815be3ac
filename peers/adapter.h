/* Interface of an adapter: a shared library that lets threadtoll measure queues of another
 * language. `threadtoll queue SCENARIO --peers DIR` loads every file of DIR that ends in `.so`.
 *
 * Queues carry messages of a fixed number of bytes, chosen when a queue is made. All messages of
 * a queue have that length. Messages are at addresses divisible by 8, their lengths are multiples
 * of 8, and they may have any contents. The interface has no times: the caller measures.
 *
 * Threads. tt_describe, tt_create and tt_create_sized are called on any thread, one at a time.
 * After that, a queue has senders (tt_send, tt_send_wait, tt_send_many, tt_claim, tt_publish) and
 * receivers (tt_try_recv, tt_recv, tt_recv_many): one thread each, or many if the description says
 * so. Each of them calls tt_enter before its first message. A thread may send to one queue and
 * receive from another. tt_destroy is called when no thread uses the queue any more, on any thread;
 * messages may still be in it.
 *
 * Order. A receiver gets the messages of each sender in the order in which they were sent, each of
 * them once. Messages of different senders may arrive in any order.
 *
 * Functions return their failures: no exception, signal, exit or longjmp may leave them. They print
 * nothing, and they do not fork.
 *
 * A function marked optional may be missing. If the library has it, but not for each of its queues,
 * the description says for which ones; it is not called on the others. */

#ifndef THREADTOLL_ADAPTER_H
#define THREADTOLL_ADAPTER_H

#include <stddef.h>

#ifdef __cplusplus
#define TT_NOEXCEPT noexcept
extern "C" {
#else
#define TT_NOEXCEPT
#endif

#define TT_EXPORT __attribute__((visibility("default")))

/* Version of this interface, member `adapter` of the description. */
#define TT_ADAPTER 1

/* Answers of tt_send, tt_send_wait, tt_try_recv and tt_recv. */
#define TT_TAKEN 0   /* the message is in the queue */
#define TT_FULL 1    /* tt_send: the queue is full, and has not got the message */
#define TT_NOTHING 0 /* tt_try_recv: the queue is empty */
#define TT_CLOSED -1 /* the queue is closed or broken: the message is not in it, or none came */

/* Returns JSON on one line, in UTF-8 and static memory:
 *
 *   {"adapter":1,"language":"c++","compiler":"g++ 12.2.0","flags":"-O3 …","queues":[
 *     {"name":"boost-spsc",         letters, digits and hyphens; unique among all peers
 *      "version":"1.74.0",          of the library
 *      "sentence":"…",              one line: the type and anything that a reader must know
 *      "senders":"one",             or "many"
 *      "receivers":"one",           or "many"
 *      "capacity":"bounded",        or "unbounded": tt_send never answers TT_FULL
 *      "slot_bytes":8,              bounded: memory per message of 8 bytes
 *      "power_of_two":false,        bounded: true if it takes only such capacities
 *      "waits":["poll","block"],    "poll": the caller repeats tt_send and tt_try_recv, with or
 *                                   without a pause; "block": tt_recv, and tt_send_wait if bounded
 *      "batches":true,              tt_send_many and tt_recv_many
 *      "claims":false,              tt_claim and tt_publish
 *      "message_bytes":[8,64]}]}    8, and those that tt_create_sized takes
 *
 * A queue whose receiver may give up its CPU while it waits has only the wait "block". */
TT_EXPORT const char *tt_describe(void) TT_NOEXCEPT;

/* Makes a queue of messages of 8 bytes. `capacity` is the number of messages that it holds, and 0
 * for an unbounded queue, which may take it as a hint. All memory of a bounded queue is allocated
 * and touched here.
 *
 * Returns NULL if there is no queue of this name, if it cannot have exactly this capacity, or if
 * memory does not suffice. */
TT_EXPORT void *tt_create(const char *name, size_t capacity) TT_NOEXCEPT;

/* Optional: tt_create for messages of another size. Returns NULL if the queue cannot have
 * messages of that size. */
TT_EXPORT void *tt_create_sized(const char *name, size_t capacity, size_t message_bytes)
    TT_NOEXCEPT;

/* Destroys a queue and the messages in it. */
TT_EXPORT void tt_destroy(void *queue) TT_NOEXCEPT;

/* Optional. A thread calls it once for each queue and each end that it uses, before its first
 * message: as a sender with its number, from 0, as a receiver with -1. */
TT_EXPORT void tt_enter(void *queue, int sender) TT_NOEXCEPT;

/* Sends a message without waiting for room: TT_TAKEN, TT_FULL or TT_CLOSED. */
TT_EXPORT int tt_send(void *queue, const void *message, size_t len) TT_NOEXCEPT;

/* Receives a message without waiting for one. Returns its length, TT_NOTHING or TT_CLOSED. */
TT_EXPORT long tt_try_recv(void *queue, void *message, size_t len) TT_NOEXCEPT;

/* Optional. Waits while the queue is full: TT_TAKEN or TT_CLOSED. */
TT_EXPORT int tt_send_wait(void *queue, const void *message, size_t len) TT_NOEXCEPT;

/* Optional. Waits while the queue is empty, in the queue's own way. Returns the length of the
 * message, or TT_CLOSED. */
TT_EXPORT long tt_recv(void *queue, void *message, size_t len) TT_NOEXCEPT;

/* Optional. Sends the first of `count` adjacent messages, as many as there is room for, and returns
 * their number. Never waits. */
TT_EXPORT size_t tt_send_many(void *queue, const void *messages, size_t len, size_t count)
    TT_NOEXCEPT;

/* Optional. Receives at most `most` messages into adjacent places and returns their number. Never
 * waits: a receiver that blocks waits for one message by tt_recv and takes the others
 * by tt_recv_many. */
TT_EXPORT size_t tt_recv_many(void *queue, void *messages, size_t len, size_t most) TT_NOEXCEPT;

/* Optional. Returns the place of a message that is to be sent, or NULL if the queue is full. The
 * sender writes all of it and then publishes it. A thread has at most one claim at a time. */
TT_EXPORT void *tt_claim(void *queue, size_t len) TT_NOEXCEPT;

/* Optional. Sends the message that the thread has claimed. */
TT_EXPORT void tt_publish(void *queue) TT_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
