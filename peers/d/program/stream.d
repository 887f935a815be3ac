/// `stream`: messages sent as fast as the queue takes them.
module stream;

import core.atomic : atomicLoad, atomicStore, MemoryOrder;
import std.algorithm : clamp;
import std.exception : enforce;
import std.format : format;

import clock : now;
import crew : Part;
import scenario : end, Padding, Scenario, wrongMessage;

/// When the time is up the receiver raises a flag, and the sender ends with a message without a
/// number.
final class Stream(Channel) : Scenario
{
    /// Number of messages before the first stamp of a block.
    private enum settling = 256;
    /// Number of messages that the sender sends between two checks of the flag.
    private enum round = 64;
    private enum stretchNs = 50_000.0;

    private Flag flag;
    private Sender sender;
    private Receiver receiver;

    this(Channel channel)
    {
        flag = new Flag;
        sender = new Sender(channel, flag);
        receiver = new Receiver(channel, flag);
    }

    override Part[] parts()
    {
        return [sender, receiver];
    }

    override void begin(long lengthNs)
    {
        atomicStore(flag.raised, false);
        receiver.lengthNs = lengthNs;
    }

    override string finish()
    {
        immutable sent = sender.sent, received = receiver.received;
        enforce(receiver.wrong == 0, wrongMessage);
        enforce(sent == received, format("%d of %d messages arrived", received, sent));
        return format("count %d\nrate_per_s %f\nchecked %d\n", sent, receiver.ratePerS, sent);
    }

    override double figure()
    {
        return 1e9 / receiver.ratePerS;
    }

    private static final class Flag
    {
        private Padding before;
        shared bool raised;
        private Padding after;
    }

    private static final class Sender : Part
    {
        private Padding before;
        private Channel channel;
        private Flag flag;
        private ulong next = 1;
        ulong sent;
        private Padding after;

        this(Channel channel, Flag flag)
        {
            this.channel = channel;
            this.flag = flag;
        }

        override void work()
        {
            auto channel = this.channel;
            auto next = this.next;
            while (!atomicLoad!(MemoryOrder.raw)(flag.raised))
                foreach (_; 0 .. round)
                    channel.send(next++);
            channel.send(end);
            sent = next - this.next;
            this.next = next;
        }
    }

    private static final class Receiver : Part
    {
        private Padding before;
        private Channel channel;
        private Flag flag;
        private ulong number;
        private long perStretch = 16;
        long lengthNs;
        ulong wrong, received;
        double ratePerS;
        private Padding after;

        this(Channel channel, Flag flag)
        {
            this.channel = channel;
            this.flag = flag;
        }

        override void enter()
        {
            channel.enterReceiver();
        }

        override void work()
        {
            auto channel = this.channel;
            auto number = this.number;
            ulong wrong;
            void take(long messages)
            {
                // Copies: captured variables live in memory.
                auto from = channel;
                auto last = number, odd = wrong;
                foreach (_; 0 .. messages)
                    odd |= from.receive() ^ ++last;
                number = last;
                wrong = odd;
            }

            measure(&take);
            for (ulong message; (message = channel.receive()) != end;)
                wrong |= message ^ ++number;
            received = number - this.number;
            this.number = number;
            this.wrong |= wrong;
        }

        /// Takes stretches of messages until the time is up.
        private void measure(scope void delegate(long) take)
        {
            take(settling);
            immutable begun = now();
            for (long messages = perStretch;; messages += perStretch)
            {
                take(perStretch);
                immutable time = now() - begun;
                if (time >= lengthNs)
                {
                    atomicStore(flag.raised, true);
                    ratePerS = messages * 1e9 / time;
                    perStretch = cast(long) clamp(ratePerS * stretchNs / 1e9, 1, 4096);
                    return;
                }
            }
        }
    }
}
