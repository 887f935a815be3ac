/// What the loops that measure a queue have in common.
///
/// A channel is a class with `this(size_t capacity)`, `enterReceiver`, called once on the
/// receiver's thread before the first message, `send` and `receive`.
module scenario;

import crew : Part;

/// The number of the message that ends a block; others are numbered from 1.
enum ulong end = 0;

enum wrongMessage = "a message was wrong, lost, repeated or out of order";

/// Keeps what one thread writes off the cache lines of others.
struct Padding
{
    private ubyte[128] bytes;
}

/// A way to use a queue, and its figures.
abstract class Scenario
{
    /// Work of each thread.
    abstract Part[] parts();
    /// Called before the parts work.
    abstract void begin(long lengthNs);
    /// Called after the parts have worked; returns the lines of the answer, without `end`.
    abstract string finish();
    /// The figure that levels off in a warm-up: a time per message of the last block.
    abstract double figure();
}
