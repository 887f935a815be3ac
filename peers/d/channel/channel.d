/// A lock-free channel in the style of those that commenters of the article proposed: a ring with
/// one sender and one receiver, whose ends sleep for longer and longer. A reconstruction, with
/// and without a spin before the sleep.
module channel;

import core.atomic : atomicLoad, atomicStore, MemoryOrder, pause;
import core.thread : Thread;
import core.time : usecs;
import std.algorithm : min;

import program : Queue, run;
import registry : make;

private enum Wait
{
    poll,
    backoff,
    sleep,
    spinAndSleep
}

/// Number of polls before the first sleep.
private enum spins = 1000;
/// The longest sleep is two to this power, in microseconds; the shortest is 1 µs.
private enum longest = 10;

private final class Ring(Wait wait)
{
    private ulong[] slots;
    private size_t mask;
    private ubyte[128] before;
    private shared size_t sent;
    private ubyte[128] between;
    private shared size_t received;
    private ubyte[128] after;

    this(size_t capacity)
    {
        slots = new ulong[](capacity);
        mask = capacity - 1;
    }

    void enterReceiver()
    {
    }

    // Members of a template are inferred to be safe code, whose bounds checks -release keeps.
    @system:

    void send(ulong message)
    {
        immutable own = atomicLoad!(MemoryOrder.raw)(sent);
        for (uint tries; own - atomicLoad!(MemoryOrder.acq)(received) > mask; tries++)
            waitAfter(tries);
        slots[own & mask] = message;
        atomicStore!(MemoryOrder.rel)(sent, own + 1);
    }

    ulong receive()
    {
        immutable own = atomicLoad!(MemoryOrder.raw)(received);
        for (uint tries; own == atomicLoad!(MemoryOrder.acq)(sent); tries++)
            waitAfter(tries);
        immutable message = slots[own & mask];
        atomicStore!(MemoryOrder.rel)(received, own + 1);
        return message;
    }

    private static void waitAfter(uint tries)
    {
        static if (wait == Wait.backoff)
            foreach (_; 0 .. 100)
                pause();
        else static if (wait == Wait.sleep)
            Thread.sleep(usecs(1 << min(tries, longest)));
        else static if (wait == Wait.spinAndSleep)
        {
            if (tries < spins)
                pause();
            else
                Thread.sleep(usecs(1 << min(tries - spins, longest)));
        }
    }
}

void main()
{
    run(import("compiler.txt"), import("flags.txt"), [
        Queue("d-channel", "1",
            "lock-free ring; its ends sleep for 1 µs, 2 µs, … 1 ms (a reconstruction)",
            ulong.sizeof, true, [
                "poll": &make!(Ring!(Wait.poll)),
                "poll-backoff": &make!(Ring!(Wait.backoff)),
                "block": &make!(Ring!(Wait.sleep))
            ]),
        Queue("d-channel-spin", "1",
            "lock-free ring; its ends poll 1,000 times before they sleep (a reconstruction)",
            ulong.sizeof, true, ["block": &make!(Ring!(Wait.spinAndSleep))])
    ]);
}
