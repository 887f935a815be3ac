/// `workers`: one sender, as fast as it can, and receivers that share its messages.
module workers;

import std.algorithm : map, maxElement, sum;
import std.array : Appender;
import std.exception : enforce;
import std.format : format, formattedWrite;

import clock : now, spinUntil;
import crew : Part;
import memory : Padding;
import message : end, wrongMessage;
import receiving_part : ReceivingPart;
import scenario : aheadNs, Block, round, Scenario, Seating;

/// Each receiver has a channel of its own, and the sender deals out its messages in turn: no
/// channel here has several receivers.
final class Workers(Channel) : Scenario
{
    private Sender sender;
    private Receiver[] receivers;

    this(Channel[] channels)
    {
        sender = new Sender(channels);
        foreach (channel; channels)
            receivers ~= new Receiver(channel);
    }

    override Part[] parts()
    {
        return sender ~ cast(Part[]) receivers;
    }

    override Seating seating() const
    {
        return Seating.senderAlone;
    }

    override void begin(Block block)
    {
        sender.lengthNs = block.lengthNs;
    }

    override string finish()
    {
        immutable sent = sender.sent;
        immutable received = receivers.map!(receiver => receiver.count).sum;
        enforce(received == sent, format("%d of %d messages arrived", received, sent));
        enforce(receivers.map!(receiver => receiver.sum).sum == sent * (sent + 1) / 2,
            wrongMessage);
        foreach (receiver; receivers)
            enforce(!receiver.wrong, wrongMessage);
        Appender!string text;
        text.formattedWrite("count %d\nelapsed_ns %d\nshared 0\n", sent, elapsedNs);
        foreach (receiver; receivers)
            text.formattedWrite("received %d\n", receiver.count);
        text.formattedWrite("checked %d\n", received);
        return text[];
    }

    override double figure()
    {
        return double(elapsedNs) / sender.sent;
    }

    private long elapsedNs()
    {
        return receivers.map!(receiver => receiver.ended).maxElement - sender.begun;
    }

    private static final class Sender : Part
    {
        private Padding before;
        private Channel[] channels;
        long lengthNs, begun;
        ulong sent;
        private Padding after;

        this(Channel[] channels)
        {
            this.channels = channels;
        }

        override void work()
        {
            auto channels = this.channels;
            auto first = channels[0];
            ulong sent;
            size_t next;
            spinUntil(now() + aheadNs);
            begun = now();
            immutable until = begun + lengthNs;
            do
            {
                // Nothing is dealt out to a single receiver.
                if (channels.length == 1)
                    foreach (_; 0 .. round)
                        first.send(++sent);
                else
                    foreach (_; 0 .. round)
                    {
                        channels[next].send(++sent);
                        if (++next == channels.length)
                            next = 0;
                    }
            }
            while (now() < until);
            foreach (channel; channels)
                channel.send(end);
            this.sent = sent;
        }
    }

    private static final class Receiver : ReceivingPart!Channel
    {
        ulong count, sum;
        long ended;
        bool wrong;
        private Padding after;

        this(Channel channel)
        {
            super(channel);
        }

        override void work()
        {
            auto channel = this.channel;
            ulong count, sum, last;
            bool wrong;
            for (ulong message; (message = channel.receive()) != end; last = message)
            {
                wrong |= message <= last;
                count++;
                sum += message;
            }
            ended = now();
            this.count = count;
            this.sum = sum;
            this.wrong = wrong;
        }
    }
}
