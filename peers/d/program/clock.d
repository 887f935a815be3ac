/// Clocks of the kernel, in nanoseconds.
module clock;

import core.sys.posix.time;
import std.algorithm : min;

private enum clockid_t monotonic = 1;
private enum clockid_t threadCpu = 3;

private long read(clockid_t clock) nothrow @nogc
{
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1_000_000_000L + time.tv_nsec;
}

/// CLOCK_MONOTONIC.
long now() nothrow @nogc
{
    return read(monotonic);
}

/// CPU time of this thread.
long cpuTime() nothrow @nogc
{
    return read(threadCpu);
}

void spinUntil(long time) nothrow @nogc
{
    while (now() < time)
    {
    }
}

/// Cost of a reading of the clock: the least mean of a few batches.
long costOfStamp() nothrow @nogc
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
