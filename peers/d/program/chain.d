/// `chain`: an open loop through channels in a row, each between two other threads.
module chain;

import std.algorithm : map, max, sum;
import std.array : Appender, array;
import std.range : iota;

import arrivals : Pattern;
import clock : cpuTime, now;
import crew : Part;
import figures : histogram;
import memory : Padding, touched;
import message : end;
import paced : Paced;
import receiving_part : ReceivingPart;
import scenario : Block, Seating;

/// A hop lasts from the stamp of one thread until that of the next.
final class Chain(Channel) : Paced!Channel
{
    private Relay[] relays;

    this(Channel[] channels, Pattern pattern)
    {
        super(channels[0], channels[$ - 1], pattern);
        foreach (i, channel; channels[1 .. $])
            relays ~= new Relay(channels[i], channel);
    }

    override Part[] parts()
    {
        return generator ~ cast(Part[]) relays ~ receiver;
    }

    override Seating seating() const
    {
        return Seating.inTurn;
    }

    override void begin(Block block)
    {
        super.begin(block);
        foreach (relay; relays)
            relay.received = touched(relay.received, generator.due.length);
    }

    protected override long busyNs()
    {
        return super.busyNs + relays.map!(relay => relay.cpuNs).sum;
    }

    protected override void further(ref Appender!string text)
    {
        auto stamps = generator.sent ~ relays.map!(relay => relay.received).array
            ~ receiver.received;
        foreach (i; 1 .. stamps.length)
        {
            auto hops = iota(generator.lead, generator.made)
                .map!(at => max(0, stamps[i][at] - stamps[i - 1][at]));
            histogram(text, "hop", hops.array);
        }
    }

    private static final class Relay : ReceivingPart!Channel
    {
        private Channel to;
        long[] received;
        long cpuNs;
        private Padding behind;

        this(Channel from, Channel to)
        {
            super(from);
            this.to = to;
        }

        override void work()
        {
            auto from = channel, to = this.to;
            auto received = this.received;
            immutable cpu = cpuTime();
            for (size_t count;; count++)
            {
                immutable message = from.receive();
                immutable time = now();
                to.send(message);
                if (message == end)
                    break;
                // The last thread notices if there are too many, or if one is wrong.
                if (count < received.length)
                    received[count] = time;
            }
            cpuNs = cpuTime() - cpu;
        }
    }
}
