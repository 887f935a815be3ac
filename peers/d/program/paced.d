/// `open-loop` and `burst`: messages that are sent when they are due.
module paced;

import std.algorithm : max;
import std.array : Appender;
import std.exception : enforce;
import std.format : format, formattedWrite;

import arrivals : Pattern;
import clock : cpuTime, now;
import crew : Part;
import deliveries : append, Delivery, medianNs;
import figures : median;
import generator : Generator;
import memory : Padding, touched;
import message : end, wrongMessage;
import receiving_part : ReceivingPart;
import scenario : Block, Scenario;

class Paced(Channel) : Scenario
{
    private Pattern asked, pattern;
    private Delivery[] deliveries;
    protected Generator!Channel generator;
    protected Receiver receiver;

    this(Channel channel, Pattern pattern)
    {
        this(channel, channel, pattern);
    }

    /// For messages that are sent to the one channel and received from the other.
    protected this(Channel first, Channel last, Pattern pattern)
    {
        asked = pattern;
        generator = new Generator!Channel(first);
        receiver = new Receiver(last);
    }

    override Part[] parts()
    {
        return [generator, receiver];
    }

    override void begin(Block block)
    {
        pattern = block.warmUp ? Pattern.dense : asked;
        generator.begin(pattern, block.lengthNs, block.seed);
        receiver.received = touched(receiver.received, generator.due.length);
    }

    override string finish()
    {
        immutable made = generator.made;
        enforce(receiver.wrong == 0, wrongMessage);
        enforce(made == receiver.count, format("%d of %d messages arrived", receiver.count, made));
        deliveries = generator.deliveries(receiver.received);
        Appender!string text;
        append(text, deliveries, generator.lead, busyNs, made);
        further(text);
        text.formattedWrite("checked %d\n", made);
        return text[];
    }

    protected long busyNs()
    {
        return generator.busyNs + receiver.cpuNs;
    }

    /// Appends further lines.
    protected void further(ref Appender!string text)
    {
        if (pattern.burst > 0)
            bursts(text);
    }

    private void bursts(ref Appender!string text)
    {
        double[] first, last, drain;
        size_t foundEmpty;
        immutable size = pattern.burst;
        for (auto start = generator.lead; start + size <= generator.made; start += size)
        {
            immutable end = start + size - 1;
            first ~= deliveries[start].tookNs;
            last ~= deliveries[end].tookNs;
            drain ~= max(0, deliveries[end].received - generator.after[end]);
            foundEmpty += deliveries[start - 1].received <= deliveries[start].due;
        }
        text.formattedWrite("first_ns %.1f\nlast_ns %.1f\ndrain_ns %.1f\n",
            median(first), median(last), median(drain));
        text.formattedWrite("bursts %d\nfound_empty %d\n", first.length, foundEmpty);
    }

    override double figure()
    {
        return medianNs(deliveries[generator.lead .. $]);
    }

    protected static final class Receiver : ReceivingPart!Channel
    {
        long[] received;
        size_t count;
        ulong wrong;
        long cpuNs;
        private Padding behind;

        this(Channel channel)
        {
            super(channel);
        }

        override void work()
        {
            auto channel = this.channel;
            auto received = this.received;
            size_t count;
            ulong wrong;
            immutable cpu = cpuTime();
            for (;;)
            {
                immutable message = channel.receive();
                immutable time = now();
                if (message == end)
                    break;
                if (count == received.length)
                {
                    wrong = ulong.max;
                    continue;
                }
                received[count++] = time;
                wrong |= message ^ count;
            }
            cpuNs = cpuTime() - cpu;
            this.count = count;
            this.wrong |= wrong;
        }
    }
}
