/// Sends messages when they are due, as drawn before the clock starts.
module generator;

import core.thread : Thread;
import core.time : nsecs;
import std.algorithm : map, max, min, sum;
import std.range : iota;

import arrivals : Pattern;
import clock : costOfStamp, cpuTime, now;
import crew : Part;
import deliveries : Delivery;
import memory : Padding, touched;
import message : endOf;
import scenario : aheadNs;

final class Generator(Channel) : Part
{
    /// It gives up after this multiple of a block's length: the queue is saturated.
    private enum patience = 2;
    /// About the time by which a sleep ends late.
    private enum wakeNs = 150_000;

    private Padding before;
    private Channel channel;
    private ulong last;
    private bool naps;
    private size_t least;
    private long patienceNs, stampNs, cpuNs;
    /// Times of the messages: when they were due, and before and after their send calls.
    long[] due, sent, after;
    /// Number of the messages, and of those that do not count.
    size_t made, lead;
    private Padding behind;

    /// One that naps sleeps until shortly before a message is due.
    this(Channel channel, size_t sender = 0, bool naps = false)
    {
        this.channel = channel;
        this.naps = naps;
        last = endOf(sender);
    }

    /// Called before it works.
    void begin(Pattern pattern, long lengthNs, ulong seed)
    {
        auto schedule = pattern.draw(lengthNs, seed);
        due = schedule.due;
        lead = schedule.lead;
        least = schedule.least;
        patienceNs = patience * max(lengthNs, due[$ - 1]);
        stampNs = costOfStamp();
        sent = touched(sent, due.length);
        after = touched(after, due.length);
    }

    override void work()
    {
        auto channel = this.channel;
        auto due = this.due, sent = this.sent, after = this.after;
        immutable naps = this.naps, last = this.last;
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
            {
                if (naps && due[made] - time > 2 * wakeNs)
                    Thread.sleep(nsecs(due[made] - time - wakeNs));
                time = now();
            }
            sent[made] = time;
            channel.send(last + made + 1);
            time = now();
            after[made++] = time;
        }
        channel.send(last);
        this.made = made;
        cpuNs = cpuTime() - cpu;
    }

    /// CPU time of the send calls.
    long busyNs() const
    {
        return min(cpuNs, iota(made).map!(i => after[i] - sent[i]).sum);
    }

    /// Deliveries of its messages, by the times at which they were received.
    Delivery[] deliveries(const long[] received) const
    {
        auto all = new Delivery[](made);
        long free;
        foreach (i, ref delivery; all)
        {
            // Late after the moment at which it was due and the calls before it, less their stamps,
            // would have returned: a call that waits for room is not the generator's fault.
            immutable ready = max(due[i], free);
            free = ready + max(0, after[i] - sent[i] - stampNs);
            delivery = Delivery(due[i], sent[i] - ready, received[i]);
        }
        return all;
    }
}
