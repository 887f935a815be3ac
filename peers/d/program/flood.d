/// `flood`: one sender dumps messages as fast as it can, another one sends a line now and then.
module flood;

import core.atomic : atomicLoad, atomicStore, MemoryOrder;
import core.thread : Thread;
import core.time : nsecs;
import std.algorithm : map, max;
import std.array : Appender, array;
import std.exception : enforce;
import std.format : format, formattedWrite;

import arrivals : Pattern;
import clock : now, spinUntil;
import crew : Part;
import figures : histogram, median;
import memory : Flag, Padding, touched;
import message : end, endOf, senderOf, wrongMessage;
import receiving_part : ReceivingPart;
import scenario : aheadNs, Block, round, Scenario;

/// The receiver is slower than the dump. What counts is the time of the writer's send calls.
final class Flood(Channel) : Scenario
{
    /// Messages of a dump.
    private enum dump = 1 << 20;
    /// Time for which the receiver computes after each message, so that the dump lasts for a block.
    private enum computesNs = 100;
    /// Shorter waits of the writer are spent spinning.
    private enum napNs = 20_000;

    private Pattern lines;
    /// All lines have been sent, and all of the dump.
    private Flag written, dumped;
    private Dumper dumper;
    private Writer writer;
    private Receiver receiver;

    this(Channel channel, Pattern lines)
    {
        this.lines = lines;
        written = new Flag;
        dumped = new Flag;
        dumper = new Dumper(channel, written, dumped);
        writer = new Writer(channel, written, dumped);
        receiver = new Receiver(channel);
    }

    override Part[] parts()
    {
        return [dumper, writer, receiver];
    }

    override void begin(Block block)
    {
        atomicStore(written.raised, false);
        atomicStore(dumped.raised, false);
        writer.due = (block.warmUp ? Pattern.dense : lines).draw(block.lengthNs, block.seed).due;
        writer.begun = touched(writer.begun, writer.due.length);
        writer.after = touched(writer.after, writer.due.length);
    }

    override string finish()
    {
        immutable lines = writer.due.length, sent = dumper.sent + lines;
        immutable received = receiver.received;
        enforce(receiver.wrong == 0, wrongMessage);
        enforce(received == [dumper.sent, lines],
            format("%d of %d messages arrived", received[0] + received[1], sent));
        Appender!string text;
        histogram(text, "count", writer.calls);
        text.formattedWrite("elapsed_ns %d\nsent %d\nchecked %d\n",
            writer.after[lines - 1] - writer.begun[0], sent, received[0] + received[1]);
        return text[];
    }

    override double figure()
    {
        return median(writer.calls.map!(call => double(call)).array);
    }

    private static final class Dumper : Part
    {
        private Padding before;
        private Channel channel;
        private Flag written, dumped;
        ulong sent;
        private Padding after;

        this(Channel channel, Flag written, Flag dumped)
        {
            this.channel = channel;
            this.written = written;
            this.dumped = dumped;
        }

        override void work()
        {
            auto channel = this.channel;
            ulong sent;
            spinUntil(now() + aheadNs);
            while (sent < dump && !atomicLoad!(MemoryOrder.raw)(written.raised))
                foreach (_; 0 .. round)
                    channel.send(++sent);
            this.sent = sent;
            // Pairs with the writer, whose end comes after all messages.
            atomicStore!(MemoryOrder.rel)(dumped.raised, true);
        }
    }

    private static final class Writer : Part
    {
        private Padding before;
        private Channel channel;
        private Flag written, dumped;
        long[] due, begun, after;
        private Padding behind;

        this(Channel channel, Flag written, Flag dumped)
        {
            this.channel = channel;
            this.written = written;
            this.dumped = dumped;
        }

        override void work()
        {
            // After the dump has begun.
            immutable begin = now() + 2 * aheadNs;
            foreach (i, time; due)
            {
                waitUntil(begin + time);
                begun[i] = now();
                channel.send(endOf(1) + i + 1);
                after[i] = now();
            }
            atomicStore(written.raised, true);
            while (!atomicLoad!(MemoryOrder.acq)(dumped.raised))
                Thread.sleep(nsecs(napNs));
            channel.send(end);
        }

        private static void waitUntil(long time)
        {
            for (long left; (left = time - now()) > 0;)
                if (left > napNs)
                    Thread.sleep(nsecs(left));
        }

        /// Times of its send calls.
        long[] calls()
        {
            auto took = new long[](due.length);
            foreach (i, ref time; took)
                time = max(0, after[i] - begun[i]);
            return took;
        }
    }

    private static final class Receiver : ReceivingPart!Channel
    {
        /// Messages of the dumper and of the writer.
        ulong[2] received;
        ulong wrong;
        private Padding after;

        this(Channel channel)
        {
            super(channel);
        }

        override void work()
        {
            auto channel = this.channel;
            ulong[2] received;
            ulong wrong;
            for (ulong message; (message = channel.receive()) != end;)
            {
                immutable sender = senderOf(message);
                if (sender < received.length)
                    wrong |= message ^ (endOf(sender) + ++received[sender]);
                else
                    wrong = ulong.max;
                spinUntil(now() + computesNs);
            }
            this.received = received;
            this.wrong |= wrong;
        }
    }
}
