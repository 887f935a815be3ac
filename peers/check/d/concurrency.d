/// std.concurrency, polled: `concurrency CPU_A CPU_B` prints the time of a round trip and the messages per
/// second between two threads; before, between and after them, the time of an atomic number from one
/// to the other.
import core.atomic, core.sys.linux.sched, core.time;
import std.algorithm, std.concurrency, std.conv, std.stdio;

enum rounds = 200;
// As short as the tool's blocks: a mailbox may fill for as long as a block lasts.
enum length = 5.msecs;
shared bool stop;

/// Of each thread.
long found;

void take(long message)
{
    found = message;
}

long next()
{
    while (!receiveTimeout(Duration.zero, &take))
    {
    }
    return found;
}

void pin(int cpu)
{
    cpu_set_t set;
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, set.sizeof, &set) != 0)
        throw new Exception("a thread cannot run on that CPU");
}

align(128) struct Number
{
    shared long at;
}

__gshared Number[2] numbers;

/// Echoes numbers until one is negative.
void reflect()
{
    for (long next = 1, number = 0; number >= 0; next++)
    {
        do
            number = atomicLoad!(MemoryOrder.acq)(numbers[0].at);
        while (number != next && number >= 0);
        atomicStore!(MemoryOrder.rel)(numbers[1].at, number);
    }
}

double handOff()
{
    double[] times;
    long next = 1;
    for (auto begun = MonoTime.currTime; MonoTime.currTime - begun < 20.msecs;)
    {
        auto stretch = MonoTime.currTime;
        foreach (_; 0 .. 32)
        {
            atomicStore!(MemoryOrder.rel)(numbers[0].at, next);
            while (atomicLoad!(MemoryOrder.acq)(numbers[1].at) != next)
            {
            }
            next++;
        }
        times ~= (MonoTime.currTime - stretch).total!"nsecs" / 64.0;
    }
    atomicStore!(MemoryOrder.rel)(numbers[0].at, -1L);
    while (atomicLoad!(MemoryOrder.acq)(numbers[1].at) >= 0)
    {
    }
    atomicStore!(MemoryOrder.rel)(numbers[0].at, 0L);
    return median(times);
}

void other(int cpu)
{
    pin(cpu);
    reflect();
    for (long message; (message = next()) >= 0;)
        ownerTid.send(message);
    reflect();
    while (next() >= 0)
    {
        auto owner = ownerTid;
        long number;
        while (!atomicLoad(stop))
            foreach (_; 0 .. 64)
                owner.send(number++);
        owner.send(-1L);
    }
    reflect();
}

double median(double[] figures)
{
    figures.sort();
    return figures[$ / 2];
}

void main(string[] arguments)
{
    auto tid = spawn(&other, arguments[1].to!int);
    pin(arguments[2].to!int);
    writeln("hand_off_ns ", handOff());
    double[] all;
    foreach (round; 0 .. rounds)
    {
        long trips;
        Duration took;
        for (auto begun = MonoTime.currTime; took < length; took = MonoTime.currTime - begun)
            foreach (_; 0 .. 16)
            {
                tid.send(trips);
                if (next() != trips++)
                    throw new Exception("a wrong echo");
            }
        all ~= took.total!"nsecs" / double(trips);
    }
    tid.send(-1L);
    writeln("round_trip_ns ", median(all[$ / 2 .. $]));
    writeln("hand_off_ns ", handOff());
    all = null;
    foreach (round; 0 .. rounds)
    {
        atomicStore(stop, false);
        tid.send(0L);
        long count;
        auto begun = MonoTime.currTime;
        Duration took;
        do
        {
            foreach (_; 0 .. 100)
                if (next() != count++)
                    throw new Exception("a wrong message");
            took = MonoTime.currTime - begun;
        }
        while (took < length);
        all ~= count * 1e9 / took.total!"nsecs";
        atomicStore(stop, true);
        while (next() >= 0)
        {
        }
    }
    tid.send(-1L);
    writeln("rate_per_s ", median(all[$ / 2 .. $]));
    writeln("hand_off_ns ", handOff());
}
