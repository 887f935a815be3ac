/// When messages are due.
module arrivals;

import std.algorithm : clamp, max;
import std.math : log;
import std.random : Mt19937_64, uniform01;

/// Most messages of a block.
enum mostMessages = 50_000;

/// The times at which the messages of a block are due, and how many of the first do not count.
struct Schedule
{
    long[] due;
    size_t lead;
    /// Fewest messages that a sender sends, however late it is.
    size_t least;
}

/// When messages are due: at equal or at exponential distances, or in bursts.
struct Pattern
{
    double gapNs;
    bool poisson;
    /// Messages that are due at a time; 0 if there are no bursts.
    size_t burst;

    /// For a warm-up, which messages that are far apart would make too long.
    enum dense = Pattern(5_000);

    /// Messages that count, for each one before them that does not.
    private enum leadShare = 10;

    Schedule draw(long lengthNs, ulong seed) const
    {
        if (burst > 0)
        {
            immutable most = max(2, mostMessages / burst);
            immutable bursts = cast(size_t) clamp(lengthNs / gapNs, 2, most);
            auto due = new long[]((bursts + 1) * burst);
            foreach (i, ref time; due)
                time = cast(long)(i / burst * gapNs);
            return Schedule(due, burst, burst + max(2, burst));
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
                return Schedule(due, lead, lead + 2);
        }
    }
}
