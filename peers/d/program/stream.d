/// `stream`: as many messages as the queue takes.
module stream;

import core.atomic : atomicLoad, atomicStore, MemoryOrder;
import std.algorithm : clamp, map, sum;
import std.exception : enforce;
import std.format : format;

import clock : now;
import crew : Part;
import memory : Flag, Padding;
import message : end, endOf, isEnd, senderOf, wrongMessage;
import receiving_part : ReceivingPart;
import scenario : Block, round, Scenario;

/// When the time is up the receiver raises a flag, and each sender ends with a message without a
/// number.
final class Stream(Channel) : Scenario
{
    /// Messages before the first stamp of a block.
    private enum settling = 256;
    private enum stretchNs = 50_000.0;

    private Flag flag;
    private Sender[] senders;
    private Receiver receiver;

    this(Channel channel, size_t count)
    {
        flag = new Flag;
        foreach (i; 0 .. count)
            senders ~= new Sender(channel, flag, endOf(i));
        receiver = new Receiver(channel, flag, count);
    }

    override Part[] parts()
    {
        return cast(Part[]) senders ~ receiver;
    }

    override void begin(Block block)
    {
        atomicStore(flag.raised, false);
        receiver.lengthNs = block.lengthNs;
    }

    override string finish()
    {
        immutable sent = senders.map!(sender => sender.sent).sum;
        enforce(receiver.wrong == 0, wrongMessage);
        enforce(sent == receiver.received,
            format("%d of %d messages arrived", receiver.received, sent));
        return format("count %d\nrate_per_s %f\nchecked %d\n", sent, receiver.ratePerS, sent);
    }

    override double figure()
    {
        return 1e9 / receiver.ratePerS;
    }

    private static final class Sender : Part
    {
        private Padding before;
        private Channel channel;
        private Flag flag;
        private ulong last, next;
        ulong sent;
        private Padding after;

        this(Channel channel, Flag flag, ulong last)
        {
            this.channel = channel;
            this.flag = flag;
            this.last = last;
            next = last + 1;
        }

        override void work()
        {
            auto channel = this.channel;
            auto next = this.next;
            while (!atomicLoad!(MemoryOrder.raw)(flag.raised))
                foreach (_; 0 .. round)
                    channel.send(next++);
            channel.send(last);
            sent = next - this.next;
            this.next = next;
        }
    }

    private static final class Receiver : ReceivingPart!Channel
    {
        private Flag flag;
        private ulong[] numbers;
        private long perStretch = 16;
        long lengthNs;
        ulong wrong, received;
        double ratePerS;
        private Padding after;

        this(Channel channel, Flag flag, size_t senders)
        {
            super(channel);
            this.flag = flag;
            foreach (i; 0 .. senders)
                numbers ~= endOf(i);
        }

        override void work()
        {
            received = 0;
            if (numbers.length == 1)
                fromOne();
            else
                fromMany();
        }

        private void fromOne()
        {
            auto channel = this.channel;
            auto number = numbers[0];
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
            received = number - numbers[0];
            numbers[0] = number;
            this.wrong |= wrong;
        }

        private void fromMany()
        {
            size_t ended;
            void one()
            {
                immutable message = channel.receive();
                immutable sender = senderOf(message);
                if (sender >= numbers.length)
                    wrong = ulong.max;
                else if (isEnd(message))
                    ended++;
                else
                {
                    wrong |= message ^ ++numbers[sender];
                    received++;
                }
            }

            void take(long messages)
            {
                foreach (_; 0 .. messages)
                    one();
            }

            measure(&take);
            while (ended < numbers.length)
                one();
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
