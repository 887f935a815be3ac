/// `depth`: the cost of send and receive calls while the queue holds many messages.
module depth;

import core.atomic : atomicLoad, atomicOp, atomicStore, MemoryOrder, pause;
import core.memory : GC;
import core.thread : Thread;
import std.algorithm : min;
import std.exception : enforce;
import std.format : format;

import clock : now;
import crew : Part;
import figures : median;
import memory : Padding;
import message : wrongMessage;
import scenario : Block, Scenario;

/// The two ends take turns, so that neither meets the other in the queue. Each block has a channel
/// of its own.
final class Depth(Channel) : Scenario
{
    /// Stretches of calls in a block, at each end.
    private enum stretches = 128;
    /// Most calls of a stretch.
    private enum mostCalls = 128;
    /// For a warm-up, which would take minutes with deep queues.
    private enum shallow = 1024;

    private size_t capacity, depth;
    private Turn turn;
    private Sender sender;
    private Receiver receiver;

    this(size_t capacity, size_t depth)
    {
        immutable needed = depth + min(depth, mostCalls);
        enforce(capacity == 0 || capacity >= needed,
            format("capacity=%d is too small for depth=%d: use %d", capacity, depth, needed));
        this.capacity = capacity;
        this.depth = depth;
        turn = new Turn;
        sender = new Sender(turn);
        receiver = new Receiver(turn);
    }

    override Part[] parts()
    {
        return [sender, receiver];
    }

    override void begin(Block block)
    {
        auto channel = new Channel(block.warmUp ? min(capacity, 2 * shallow) : capacity);
        immutable depth = block.warmUp ? min(this.depth, shallow) : this.depth;
        // Of the block before, whose list may be long.
        GC.collect();
        turn.restart();
        sender.begin(channel, depth);
        receiver.begin(channel, depth);
    }

    override string finish()
    {
        // Else the collector would keep it through the next block.
        sender.channel = receiver.channel = null;
        enforce(receiver.wrong == 0, wrongMessage);
        return format("count %d\nsend_ns %f\nreceive_ns %f\nelapsed_ns %d\nchecked %d\n",
            stretches * sender.calls, median(sender.perCallNs), median(receiver.perCallNs),
            receiver.drained - sender.begun, receiver.number);
    }

    override double figure()
    {
        return median(sender.perCallNs) + median(receiver.perCallNs);
    }

    /// A number that two threads count up, each in its turn.
    private static final class Turn
    {
        private Padding before;
        private shared size_t number;
        private Padding after;

        void restart()
        {
            atomicStore(number, size_t(0));
        }

        void waitFor(size_t turn)
        {
            for (uint looks = 1; atomicLoad!(MemoryOrder.acq)(number) < turn; looks++)
            {
                if (looks % 256 == 0)
                    Thread.yield();
                else
                    pause();
            }
        }

        void end()
        {
            atomicOp!"+="(number, 1);
        }
    }

    private abstract static class End : Part
    {
        private Padding before;
        protected Channel channel;
        protected Turn turn;
        protected size_t depth;
        size_t calls;
        ulong number;
        double[] perCallNs;
        private Padding after;

        this(Turn turn)
        {
            this.turn = turn;
            perCallNs = new double[](stretches);
        }

        /// Called before it works.
        void begin(Channel channel, size_t depth)
        {
            this.channel = channel;
            this.depth = depth;
            calls = min(depth, mostCalls);
            number = 0;
        }

        protected abstract void pass(size_t messages);

        /// Passes messages in every other turn from this one on.
        protected final void passInTurns(size_t first)
        {
            foreach (i, ref time; perCallNs)
            {
                turn.waitFor(first + 2 * i);
                immutable begun = now();
                pass(calls);
                time = double(now() - begun) / calls;
                turn.end();
            }
        }
    }

    private static final class Sender : End
    {
        long begun;
        private Padding behind;

        this(Turn turn)
        {
            super(turn);
        }

        override void work()
        {
            turn.waitFor(1);
            begun = now();
            pass(depth);
            passInTurns(1);
        }

        protected override void pass(size_t messages)
        {
            auto channel = this.channel;
            auto number = this.number;
            foreach (_; 0 .. messages)
                channel.send(++number);
            this.number = number;
        }
    }

    private static final class Receiver : End
    {
        ulong wrong;
        long drained;
        private Padding behind;

        this(Turn turn)
        {
            super(turn);
        }

        override void work()
        {
            channel.enterReceiver();
            turn.end();
            passInTurns(2);
            pass(depth);
            drained = now();
        }

        protected override void pass(size_t messages)
        {
            auto channel = this.channel;
            auto number = this.number;
            ulong wrong;
            foreach (_; 0 .. messages)
                wrong |= channel.receive() ^ ++number;
            this.number = number;
            this.wrong |= wrong;
        }
    }
}
