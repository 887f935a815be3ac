/// std.concurrency, polled, between two threads: `concurrency ask-reply|stream CPU_A CPU_B
/// MICROSECONDS` prints, for each block, the time of a round trip or per message (`time_ns`), and
/// before, between and after the blocks the time of an atomic number from one CPU to the other
/// (`hand_off_ns`).
import core.atomic, core.sys.linux.sched, core.time;
import std.algorithm, std.concurrency, std.conv, std.stdio;

enum blocks = 200, warmUp = 20;
/// Of a block: a mailbox may fill for as long as it lasts.
__gshared Duration length;
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
    for (auto begun = MonoTime.currTime; MonoTime.currTime - begun < 1.msecs;)
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

double median(double[] figures)
{
    figures.sort();
    return figures[$ / 2];
}

double ask(Tid tid)
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
    tid.send(-1L);
    return took.total!"nsecs" / double(trips);
}

void echo(Tid tid)
{
    for (long message; (message = next()) >= 0;)
        tid.send(message);
}

double drink()
{
    long count;
    Duration took;
    for (auto begun = MonoTime.currTime; took < length; took = MonoTime.currTime - begun)
        foreach (_; 0 .. 100)
            if (next() != count++)
                throw new Exception("a wrong message");
    atomicStore(stop, true);
    while (next() >= 0)
    {
    }
    atomicStore(stop, false);
    return took.total!"nsecs" / double(count);
}

void feed(Tid tid)
{
    long number;
    while (!atomicLoad(stop))
        foreach (_; 0 .. 64)
            tid.send(number++);
    tid.send(-1L);
}

void other(int cpu, bool asks)
{
    pin(cpu);
    foreach (block; 0 .. warmUp + blocks)
    {
        reflect();
        if (asks)
            echo(ownerTid);
        else
            feed(ownerTid);
    }
    reflect();
}

void main(string[] arguments)
{
    length = arguments[4].to!long.usecs;
    immutable asks = arguments[1] == "ask-reply";
    // The sender runs on the first CPU.
    auto tid = spawn(&other, arguments[asks ? 3 : 2].to!int, asks);
    pin(arguments[asks ? 2 : 3].to!int);
    foreach (block; 0 .. warmUp + blocks)
    {
        immutable took = handOff(), time = asks ? ask(tid) : drink();
        if (block >= warmUp)
            writefln("hand_off_ns %.1f\ntime_ns %.3f", took, time);
    }
    writefln("hand_off_ns %.1f", handOff());
}
