/// Deliveries of messages that were sent when they were due.
module deliveries;

import std.algorithm : count, map, max, maxElement;
import std.array : Appender, array;
import std.format : formattedWrite;

import figures : histogram, median;

/// Lasts from the moment at which a message was due, so nothing that delays either end is left out.
struct Delivery
{
    long due;
    /// How late its send call began.
    long late;
    long received;

    long tookNs() const
    {
        return max(0, received - due);
    }
}

/// Appends the figures of messages in the order in which they were due. Of those before `lead`
/// only the moments count at which they were received. All senders together sent `sent`.
void append(ref Appender!string text, const Delivery[] all, size_t lead, long busyNs, size_t sent)
{
    auto counted = all[lead .. $];
    immutable begin = counted[0].due, last = counted[$ - 1].due;
    bool within(long time)
    {
        return begin <= time && time < last;
    }

    histogram(text, "count", counted.map!(one => one.tookNs).array);
    histogram(text, "lateness", counted.map!(one => one.late).array);
    text.formattedWrite("busy_ns %d\nsent %d\n", busyNs, sent);
    text.formattedWrite("elapsed_ns %d\nwindow_ns %d\ndue %d\nreceived %d\n",
        max(last, all.map!(one => one.received).maxElement) - begin, max(1, last - begin),
        max(1, all.count!(one => within(one.due))),
        all.count!(one => within(one.received)));
}

double medianNs(const Delivery[] counted)
{
    return median(counted.map!(one => double(one.tookNs)).array);
}
