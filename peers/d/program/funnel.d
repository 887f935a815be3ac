/// `funnel`: rare important messages among those of chatty senders, in one channel.
module funnel;

import std.algorithm : map, mean, sort, sum;
import std.array : Appender, array;
import std.exception : enforce;
import std.format : format, formattedWrite;

import arrivals : Pattern;
import clock : cpuTime, now;
import crew : Part;
import deliveries : append, Delivery, medianNs;
import figures : histogram;
import generator : Generator;
import memory : Padding, touched;
import message : endOf, isEnd, senderOf, wrongMessage;
import receiving_part : ReceivingPart;
import scenario : Block, Scenario;

/// Every sender is an open loop of its own. Chatty ones never sleep: between two messages they are
/// taken to compute. Important ones sleep until their next message is nearly due.
final class Funnel(Channel) : Scenario
{
    /// Messages of an important sender.
    private enum rare = Pattern(1_000_000, true);

    /// Messages of all chatty senders together.
    private Pattern chatter;
    /// Number of chatty senders, which come before the important ones.
    private size_t chatty;
    private Generator!Channel[] generators;
    private Receiver receiver;
    /// Important messages that count, in the order in which they were due.
    private Delivery[] deliveries;

    this(Channel channel, size_t senders, size_t important, Pattern chatter)
    {
        this.chatter = chatter;
        chatty = senders - important;
        foreach (i; 0 .. senders)
            generators ~= new Generator!Channel(channel, i, i >= chatty);
        receiver = new Receiver(channel, senders);
    }

    override Part[] parts()
    {
        return cast(Part[]) generators ~ receiver;
    }

    override void begin(Block block)
    {
        auto own = chatter;
        if (block.warmUp)
            own.gapNs = Pattern.dense.gapNs;
        own.gapNs *= chatty;
        foreach (i, generator; generators)
            generator.begin(i < chatty ? own : rare, block.lengthNs,
                block.seed ^ cast(ulong) i << 32);
        receiver.begin(generators.map!(generator => generator.due.length).sum);
    }

    override string finish()
    {
        auto received = receiver.bySender();
        long[] chat;
        double[] means;
        deliveries = null;
        foreach (i, generator; generators)
        {
            immutable made = generator.made;
            enforce(received[i].length == made,
                format("%d of %d messages arrived", received[i].length, made));
            auto counted = generator.deliveries(received[i])[generator.lead .. $];
            if (i >= chatty)
            {
                deliveries ~= counted;
                continue;
            }
            auto took = counted.map!(delivery => delivery.tookNs).array;
            means ~= took.mean;
            chat ~= took;
        }
        deliveries.sort!((one, other) => one.due < other.due);
        immutable sent = generators.map!(generator => generator.made).sum;
        immutable sendingNs = generators.map!(generator => generator.busyNs).sum;
        Appender!string text;
        append(text, deliveries, 0, sendingNs + receiver.cpuNs, sent);
        histogram(text, "chatty", chat);
        foreach (mean; means)
            text.formattedWrite("mean_ns %f\n", mean);
        text.formattedWrite("checked %d\n", sent);
        return text[];
    }

    override double figure()
    {
        return medianNs(deliveries);
    }

    /// Keeps all messages until every sender has ended, and checks them afterwards.
    private static final class Receiver : ReceivingPart!Channel
    {
        private size_t senders, most, count;
        private ulong[] messages;
        private long[] times;
        private bool wrong;
        long cpuNs;
        private Padding after;

        this(Channel channel, size_t senders)
        {
            super(channel);
            this.senders = senders;
        }

        /// Called before it works, with the number of messages that will be sent at most.
        void begin(size_t most)
        {
            this.most = most;
            messages = touched(messages, most);
            times = touched(times, most);
        }

        override void work()
        {
            auto channel = this.channel;
            auto messages = this.messages;
            auto times = this.times;
            size_t count;
            immutable cpu = cpuTime();
            for (size_t ended; ended < senders;)
            {
                immutable message = channel.receive();
                immutable time = now();
                if (isEnd(message))
                    ended++;
                else if (count == most)
                    wrong = true;
                else
                {
                    messages[count] = message;
                    times[count++] = time;
                }
            }
            cpuNs = cpuTime() - cpu;
            this.count = count;
        }

        /// When the messages of each sender were received.
        long[][] bySender() const
        {
            enforce(!wrong, wrongMessage);
            auto all = new long[][](senders);
            foreach (i, message; messages[0 .. count])
            {
                immutable sender = senderOf(message);
                enforce(sender < senders && message == endOf(sender) + all[sender].length + 1,
                    wrongMessage);
                all[sender] ~= times[i];
            }
            return all;
        }
    }
}
