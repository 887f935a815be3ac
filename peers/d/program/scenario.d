/// The loops that measure a queue, a block at a time.
///
/// A channel is a class with `this(size_t capacity)`, `enterReceiver`, called once on the
/// receiver's thread before the first message, `send` and `receive`.
module scenario;

import core.atomic : atomicLoad, atomicStore, MemoryOrder;
import std.algorithm : clamp, max, min, sort, sum, map;
import std.array : Appender;
import std.exception : enforce;
import std.format : format, formattedWrite;
import std.math : abs, isNaN, log;
import std.random : Mt19937_64, uniform01;

import crew;
import program : Keys;

/// The use of a queue.
struct Usage
{
    /// Messages that a bounded queue holds.
    size_t capacity;
    size_t senders;
}

/// The end of a block; messages are numbered from 1.
enum ulong end = 0;

interface Scenario
{
    /// A sender, the receiver, then any other senders.
    Part[] parts();
    /// Called before the parts work.
    void begin(long lengthNs, ulong seed);
    /// Called after the parts have worked; returns the lines of the answer, without `end`.
    string finish();
    /// The figure that levels off in a warm-up: a time per message of the last block.
    double figure();
}

/// A scenario with messages that are due at given times.
interface PacedScenario : Scenario
{
    ref Pattern pattern();
}

/// Makes a scenario for a channel.
Scenario make(Channel)(string scenario, Usage usage, Keys keys)
{
    Channel open()
    {
        return new Channel(usage.capacity);
    }

    switch (scenario)
    {
    case "ask-reply":
        keys.finish();
        return new AskReply!Channel(open(), open());
    case "stream":
        keys.finish();
        return new Stream!Channel(open(), usage.senders);
    case "open-loop":
        immutable gapNs = 1e9 / keys.number("rate_per_s", 1, 100_000_000);
        auto arrivals = keys.text("arrivals");
        enforce(arrivals == "uniform" || arrivals == "poisson",
            format("arrivals=%s is not known", arrivals));
        keys.finish();
        return new Paced!Channel(open(), Pattern(gapNs, arrivals == "poisson", 0));
    case "burst":
        immutable burst = keys.number("burst", 1, mostMessages / 3);
        immutable gapNs = keys.number("gap_ns", 1, 60_000_000_000);
        keys.finish();
        return new Paced!Channel(open(), Pattern(gapNs, false, burst));
    default:
        throw new Exception(scenario ~ " is not a scenario of this program");
    }
}

/// A scenario and its threads.
final class Bench
{
    private enum warmBlockNs = 20_000_000;
    private enum mostWarmUpNs = 2_000_000_000L;
    /// Medians of this number of blocks are compared.
    private enum level = 5;
    private enum levelWithin = 0.05;

    private Scenario scenario;
    private Crew crew;
    private ulong seed;

    this(Scenario scenario, ulong seed, int[] cpus)
    {
        this.scenario = scenario;
        this.seed = seed;
        auto parts = scenario.parts;
        crew = new Crew(parts, places(cpus, parts.length));
    }

    /// The receiver has the second CPU for itself; senders share the others.
    private static int[] places(int[] cpus, size_t parts)
    {
        if (cpus.length < 2)
        {
            auto all = new int[](cpus.length ? parts : 0);
            if (cpus.length)
                all[] = cpus[0];
            return all;
        }
        auto others = cpus[0] ~ cpus[2 .. $];
        auto all = [others[0], cpus[1]];
        for (size_t sender = 1; all.length < parts; sender++)
            all ~= others[sender % $];
        return all;
    }

    void close()
    {
        crew.close();
    }

    string run(long lengthNs)
    {
        scenario.begin(lengthNs, seed++);
        crew.work();
        return scenario.finish();
    }

    /// Runs blocks until their figures have levelled off.
    void warmUp()
    {
        auto paced = cast(PacedScenario) scenario;
        Pattern asked;
        if (paced !is null)
        {
            // Messages that are far apart would take too long.
            asked = paced.pattern;
            paced.pattern() = Pattern(5_000, false, 0);
        }
        scope (exit)
            if (paced !is null)
                paced.pattern() = asked;
        immutable began = now();
        double before;
        while (now() - began < mostWarmUpNs)
        {
            double[] figures;
            foreach (_; 0 .. level)
            {
                run(warmBlockNs);
                figures ~= scenario.figure;
            }
            immutable figure = median(figures);
            if (!before.isNaN && abs(figure / before - 1) <= levelWithin)
                break;
            before = figure;
        }
    }
}

private double median(double[] values)
{
    auto sorted = values.dup;
    sorted.sort();
    immutable half = sorted.length / 2;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/// Appends a line for each distinct value, ascending, with the number of times.
private void histogram(ref Appender!string text, string name, const long[] values)
{
    auto sorted = values.dup;
    sorted.sort();
    Appender!string lines;
    size_t distinct;
    for (size_t i; i < sorted.length;)
    {
        auto next = i + 1;
        while (next < sorted.length && sorted[next] == sorted[i])
            next++;
        lines.formattedWrite("%d %d\n", sorted[i], next - i);
        distinct++;
        i = next;
    }
    text.formattedWrite("%s %d\n%s", name, distinct, lines[]);
}

private enum wrongMessage = "a message was wrong, lost, repeated or out of order";

/// Keeps what one thread writes off the cache lines of others.
private struct Padding
{
    private ubyte[128] bytes;
}

/// A message through one channel, its echo through the other, one under way at a time. The first
/// half of a block has a stamp for each round trip, the second half one for each stretch of about
/// 20 µs.
final class AskReply(Channel) : Scenario
{
    private enum mostStamped = 1 << 20;
    private enum stretchNs = 20_000.0;

    private Asker asker;
    private Answerer answerer;

    this(Channel there, Channel back)
    {
        asker = new Asker(there, back);
        answerer = new Answerer(there, back);
    }

    Part[] parts()
    {
        Part[] all = [asker];
        return all ~ answerer;
    }

    void begin(long lengthNs, ulong)
    {
        asker.lengthNs = lengthNs;
    }

    string finish()
    {
        enforce((asker.wrong | answerer.wrong) == 0, wrongMessage);
        enforce(asker.number == answerer.number, wrongMessage);
        Appender!string text;
        histogram(text, "count", asker.times[0 .. asker.stamped]);
        text.formattedWrite("mean_ns %f\nchecked %d\n", asker.meanNs, asker.stamped + asker.trips);
        return text[];
    }

    double figure()
    {
        return asker.meanNs;
    }

    private static final class Asker : Part
    {
        private Padding before;
        Channel there, back;
        long lengthNs;
        long[] times;
        size_t stamped;
        ulong number, wrong;
        long trips;
        double meanNs;
        private Padding after;

        this(Channel there, Channel back)
        {
            this.there = there;
            this.back = back;
            times = new long[](mostStamped);
        }

        void enter()
        {
            back.enterReceiver();
        }

        void work()
        {
            auto there = this.there, back = this.back;
            auto number = this.number, wrong = this.wrong;
            immutable begin = now();
            immutable half = begin + lengthNs / 2, until = begin + lengthNs;
            long last = begin;
            for (stamped = 0; stamped == 0 || last < half && stamped < mostStamped; stamped++)
            {
                there.send(++number);
                wrong |= back.receive() ^ number;
                immutable time = now();
                times[stamped] = max(0, time - last);
                last = time;
            }
            immutable trip = double(last - begin) / stamped;
            immutable perStretch = cast(long) clamp(stretchNs / trip, 1, 1000);
            immutable begun = last;
            for (trips = 0; trips == 0 || last < until; trips += perStretch)
            {
                foreach (_; 0 .. perStretch)
                {
                    there.send(++number);
                    wrong |= back.receive() ^ number;
                }
                last = now();
            }
            there.send(end);
            wrong |= back.receive() ^ end;
            meanNs = double(last - begun) / trips;
            this.number = number;
            this.wrong = wrong;
        }
    }

    private static final class Answerer : Part
    {
        private Padding before;
        Channel there, back;
        ulong number, wrong;
        private Padding after;

        this(Channel there, Channel back)
        {
            this.there = there;
            this.back = back;
        }

        void enter()
        {
            there.enterReceiver();
        }

        void work()
        {
            auto there = this.there, back = this.back;
            auto number = this.number, wrong = this.wrong;
            for (;;)
            {
                immutable message = there.receive();
                // Verified after the answer has left: the asker does not wait for that.
                back.send(message);
                if (message == end)
                    break;
                wrong |= message ^ ++number;
            }
            this.number = number;
            this.wrong = wrong;
        }
    }
}

/// As many messages as the queue takes. When the time is up the receiver raises a flag, and each
/// sender ends with a message without a number.
final class Stream(Channel) : Scenario
{
    /// The sender's number is above these bits.
    private enum numberBits = 56;
    /// Messages between two looks at the flag.
    private enum round = 64;
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
            senders ~= new Sender(channel, flag, cast(ulong) i << numberBits);
        receiver = new Receiver(channel, flag, count);
    }

    Part[] parts()
    {
        Part[] all = [senders[0]];
        all ~= receiver;
        foreach (sender; senders[1 .. $])
            all ~= sender;
        return all;
    }

    void begin(long lengthNs, ulong)
    {
        atomicStore(flag.raised, false);
        receiver.lengthNs = lengthNs;
    }

    string finish()
    {
        immutable sent = senders.map!(sender => sender.sent).sum;
        enforce(receiver.wrong == 0, wrongMessage);
        enforce(sent == receiver.received,
            format("%d of %d messages arrived", receiver.received, sent));
        return format("count %d\nrate_per_s %f\nchecked %d\n", sent, receiver.ratePerS, sent);
    }

    double figure()
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

        void enter()
        {
        }

        void work()
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

    private static final class Receiver : Part
    {
        private Padding before;
        private Channel channel;
        private Flag flag;
        private ulong[] numbers;
        private long perStretch = 16;
        long lengthNs;
        ulong wrong, received;
        double ratePerS;
        private Padding after;

        this(Channel channel, Flag flag, size_t senders)
        {
            this.channel = channel;
            this.flag = flag;
            foreach (i; 0 .. senders)
                numbers ~= cast(ulong) i << numberBits;
        }

        void enter()
        {
            channel.enterReceiver();
        }

        void work()
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
                foreach (_; 0 .. messages)
                    wrong |= channel.receive() ^ ++number;
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
                immutable sender = message >> numberBits;
                if (sender >= numbers.length)
                    wrong = ulong.max;
                else if (message << (64 - numberBits) == end)
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

/// Most messages of a block.
private enum mostMessages = 50_000;

/// When messages are due: at equal or at exponential distances, or in bursts.
struct Pattern
{
    private double gapNs;
    private bool poisson;
    /// Messages that are due at a time; 0 if there are no bursts.
    private size_t burst;

    /// Messages that count, for each one before them that does not.
    private enum leadShare = 10;

    private Schedule draw(long lengthNs, ulong seed) const
    {
        if (burst > 0)
        {
            immutable most = max(2, mostMessages / burst);
            immutable bursts = cast(size_t) clamp(lengthNs / gapNs, 2, most);
            auto due = new long[]((bursts + 1) * burst);
            foreach (i, ref time; due)
                time = cast(long)(i / burst * gapNs);
            return Schedule(due, burst);
        }
        auto random = Mt19937_64(seed);
        long[] due;
        due.reserve(mostMessages);
        size_t lead;
        double at = 0, last = 0;
        for (;;)
        {
            due ~= cast(long) at;
            at += poisson ? -gapNs * log(1 - uniform01(random)) : gapNs;
            if (lead == 0)
            {
                immutable most = mostMessages / (leadShare + 1);
                if (at >= double(lengthNs) / leadShare || due.length >= most)
                {
                    lead = due.length;
                    last = at + lengthNs;
                }
                continue;
            }
            immutable enough = due.length - lead >= 2 && due[lead] < due[$ - 1];
            if (enough && at > last || due.length == mostMessages)
                return Schedule(due, lead);
        }
    }
}

/// The times at which the messages of a block are due, and how many of the first do not count.
private struct Schedule
{
    long[] due;
    size_t lead;
}

/// Messages that are sent when they are due, drawn before the clock starts. A delivery lasts from
/// the moment at which a message was due, so nothing that delays either end is left out.
final class Paced(Channel) : PacedScenario
{
    /// Time before the first message, in which the receiver begins to wait.
    private enum aheadNs = 100_000;
    /// The generator gives up after this multiple of a block's length: the queue is saturated.
    private enum patience = 2;

    private Pattern asked;
    private Schedule schedule;
    private Generator generator;
    private Receiver receiver;
    private long stampNs;

    this(Channel channel, Pattern pattern)
    {
        asked = pattern;
        generator = new Generator;
        generator.channel = channel;
        receiver = new Receiver;
        receiver.channel = channel;
    }

    ref Pattern pattern()
    {
        return asked;
    }

    Part[] parts()
    {
        Part[] all = [generator];
        return all ~ receiver;
    }

    void begin(long lengthNs, ulong seed)
    {
        schedule = asked.draw(lengthNs, seed);
        generator.due = schedule.due;
        generator.least = schedule.lead + max(2, asked.burst);
        stampNs = costOfStamp();
        generator.patienceNs = patience * max(lengthNs, schedule.due[$ - 1]);
        immutable count = schedule.due.length;
        generator.sent = touched(generator.sent, count);
        generator.after = touched(generator.after, count);
        receiver.received = touched(receiver.received, count);
    }

    /// What a reading of the clock takes: the least mean of a few batches.
    private static long costOfStamp()
    {
        enum batches = 8, each = 64;
        auto least = long.max;
        foreach (_; 0 .. batches)
        {
            immutable begin = now();
            foreach (i; 1 .. each)
                now();
            least = min(least, (now() - begin) / each);
        }
        return least;
    }

    private static long[] touched(long[] old, size_t count)
    {
        auto times = old.length >= count ? old : new long[](count);
        times[] = 1;
        return times;
    }

    string finish()
    {
        immutable made = generator.made, lead = schedule.lead;
        enforce(receiver.wrong == 0, wrongMessage);
        enforce(made == receiver.count, format("%d of %d messages arrived", receiver.count, made));
        auto due = schedule.due, received = receiver.received;
        immutable begin = due[lead], last = due[made - 1];
        auto took = new long[](made), late = new long[](made);
        long dueWithin, receivedWithin, sendingNs, free, lastReceived = last;
        foreach (i; 0 .. made)
        {
            took[i] = max(0, received[i] - due[i]);
            // Late after the moment at which it was due and the calls before it, less their stamps,
            // would have returned: a call that waits for room is not the generator's fault.
            immutable ready = max(due[i], free);
            late[i] = generator.sent[i] - ready;
            free = ready + max(0, generator.after[i] - generator.sent[i] - stampNs);
            dueWithin += begin <= due[i] && due[i] < last;
            receivedWithin += begin <= received[i] && received[i] < last;
            lastReceived = max(lastReceived, received[i]);
            sendingNs += generator.after[i] - generator.sent[i];
        }
        Appender!string text;
        histogram(text, "count", took[lead .. $]);
        histogram(text, "lateness", late[lead .. $]);
        text.formattedWrite("busy_ns %d\n", min(sendingNs, generator.cpuNs) + receiver.cpuNs);
        text.formattedWrite("sent %d\nelapsed_ns %d\nwindow_ns %d\ndue %d\nreceived %d\n", made,
            lastReceived - begin, max(1, last - begin), max(1, dueWithin), receivedWithin);
        if (asked.burst > 0)
            bursts(text);
        text.formattedWrite("checked %d\n", made);
        return text[];
    }

    private void bursts(ref Appender!string text)
    {
        auto due = schedule.due, received = receiver.received;
        double[] first, last, drain;
        size_t foundEmpty;
        immutable size = asked.burst;
        for (auto start = schedule.lead; start + size <= generator.made; start += size)
        {
            immutable end = start + size - 1;
            first ~= max(0, received[start] - due[start]);
            last ~= max(0, received[end] - due[start]);
            drain ~= max(0, received[end] - generator.after[end]);
            foundEmpty += received[start - 1] <= due[start];
        }
        text.formattedWrite("first_ns %.1f\nlast_ns %.1f\ndrain_ns %.1f\n",
            median(first), median(last), median(drain));
        text.formattedWrite("bursts %d\nfound_empty %d\n", first.length, foundEmpty);
    }

    double figure()
    {
        double[] took;
        foreach (i; schedule.lead .. generator.made)
            took ~= receiver.received[i] - schedule.due[i];
        return median(took);
    }

    private static final class Generator : Part
    {
        private Padding before;
        Channel channel;
        long[] due, sent, after;
        size_t least, made;
        long patienceNs, cpuNs;
        private Padding behind;

        void enter()
        {
        }

        void work()
        {
            auto channel = this.channel;
            auto due = this.due, sent = this.sent, after = this.after;
            immutable cpu = cpuTime();
            immutable begin = now() + aheadNs;
            due[] += begin;
            immutable until = begin + patienceNs;
            size_t made;
            auto time = now();
            // While it is late there is one stamp a message: that after a call is before the next.
            while (made < due.length && (time <= until || made < least))
            {
                while (time < due[made])
                    time = now();
                sent[made] = time;
                channel.send(made + 1);
                time = now();
                after[made++] = time;
            }
            channel.send(end);
            this.made = made;
            cpuNs = cpuTime() - cpu;
        }
    }

    private static final class Receiver : Part
    {
        private Padding before;
        Channel channel;
        long[] received;
        size_t count;
        ulong wrong;
        long cpuNs;
        private Padding behind;

        void enter()
        {
            channel.enterReceiver();
        }

        void work()
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
