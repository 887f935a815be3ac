/// The kernel's clock.
module clock;

import core.sys.posix.time;

/// Nanoseconds of CLOCK_MONOTONIC.
long now() nothrow @nogc
{
    enum clockid_t monotonic = 1;
    timespec time;
    clock_gettime(monotonic, &time);
    return time.tv_sec * 1_000_000_000L + time.tv_nsec;
}
