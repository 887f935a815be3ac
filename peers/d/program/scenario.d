/// What the loops that measure a queue have in common.
///
/// A channel is a class with `this(size_t capacity)`, `enterReceiver`, called once on the
/// receiver's thread before the first message, `send` and `receive`.
module scenario;

import crew : Part;

/// Messages that a sender sends between two looks at a flag or a clock.
enum round = 64;
/// Time from the moment at which a sender is ready to its first message, in which the receiver
/// begins to wait.
enum aheadNs = 100_000;

struct Block
{
    long lengthNs;
    ulong seed;
    /// Its figures do not count, so it may be quicker than what was asked for.
    bool warmUp;
}

/// Which thread has a CPU to itself, if there are two or more.
enum Seating
{
    /// The receiver has the second one. It is the last part.
    receiverAlone,
    /// The sender has the first one. It is the first part.
    senderAlone,
    /// None: threads take the CPUs in turn.
    inTurn
}

/// A way to use a queue, and its figures.
abstract class Scenario
{
    /// Work of each thread.
    abstract Part[] parts();

    Seating seating() const
    {
        return Seating.receiverAlone;
    }

    /// Called before the parts work.
    abstract void begin(Block block);
    /// Called after the parts have worked; returns the lines of the answer, without `end`.
    abstract string finish();
    /// The figure that levels off in a warm-up: a time per message of the last block.
    abstract double figure();
}
