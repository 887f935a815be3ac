/// Two polled queues between two threads: `polled d-concurrency|d-channel ask-reply|stream CPU_A
/// CPU_B MICROSECONDS [CAPACITY]` prints, for each block, the time of a round trip or per message
/// (`time_ns`), and before, between and after the blocks the time of an atomic number from one CPU
/// to the other (`hand_off_ns`).
import core.atomic, core.sys.linux.sched, core.time;
import std.algorithm, std.concurrency, std.conv, std.exception, std.stdio;

enum blocks = 200, warmUp = 20;
/// Of a block: the mailbox may fill for as long as it lasts.
__gshared Duration length;
shared bool stop;

/// Of each thread.
long found;

void take(long message)
{
    found = message;
}

/// std.concurrency: a thread sends to the other's mailbox and receives from its own.
struct Mailbox
{
    /// Messages between two looks at the clock.
    enum stretch = 64;
    Tid other;

    void send(long message)
    {
        std.concurrency.send(other, message);
    }

    long next()
    {
        while (!receiveTimeout(Duration.zero, &take))
        {
        }
        return found;
    }
}

/// The design of peers/d/channel, written again.
final class Ring
{
    align(128) shared size_t written;
    align(128) shared size_t read;
    align(128) long[] slots;
    size_t mask;

    this(size_t capacity)
    {
        slots = new long[](capacity);
        mask = capacity - 1;
    }

    void push(long message)
    {
        immutable at = atomicLoad!(MemoryOrder.raw)(written);
        while (at - atomicLoad!(MemoryOrder.acq)(read) > mask)
        {
        }
        slots[at & mask] = message;
        atomicStore!(MemoryOrder.rel)(written, at + 1);
    }

    long pop()
    {
        immutable at = atomicLoad!(MemoryOrder.raw)(read);
        while (atomicLoad!(MemoryOrder.acq)(written) == at)
        {
        }
        immutable message = slots[at & mask];
        atomicStore!(MemoryOrder.rel)(read, at + 1);
        return message;
    }
}

struct Rings
{
    enum stretch = 1000;
    Ring outbound, inbound;

    void send(long message)
    {
        outbound.push(message);
    }

    long next()
    {
        return inbound.pop();
    }
}

__gshared Ring there, back;

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

double ask(Ends)(Ends ends)
{
    long trips;
    Duration took;
    for (auto begun = MonoTime.currTime; took < length; took = MonoTime.currTime - begun)
        foreach (_; 0 .. 16)
        {
            ends.send(trips);
            if (ends.next() != trips++)
                throw new Exception("a wrong echo");
        }
    ends.send(-1);
    return took.total!"nsecs" / double(trips);
}

void echo(Ends)(Ends ends)
{
    for (long message; (message = ends.next()) >= 0;)
        ends.send(message);
}

double drink(Ends)(Ends ends)
{
    long count;
    Duration took;
    for (auto begun = MonoTime.currTime; took < length; took = MonoTime.currTime - begun)
        foreach (_; 0 .. Ends.stretch)
            if (ends.next() != count++)
                throw new Exception("a wrong message");
    atomicStore(stop, true);
    while (ends.next() >= 0)
    {
    }
    atomicStore(stop, false);
    return took.total!"nsecs" / double(count);
}

void feed(Ends)(Ends ends)
{
    long number;
    while (!atomicLoad(stop))
        foreach (_; 0 .. 64)
            ends.send(number++);
    ends.send(-1);
}

void away(Ends)(Ends ends, bool asks)
{
    foreach (block; 0 .. warmUp + blocks)
    {
        reflect();
        if (asks)
            echo(ends);
        else
            feed(ends);
    }
    reflect();
}

void here(Ends)(Ends ends, bool asks)
{
    foreach (block; 0 .. warmUp + blocks)
    {
        immutable took = handOff(), time = asks ? ask(ends) : drink(ends);
        if (block >= warmUp)
            writefln("hand_off_ns %.1f\ntime_ns %.3f", took, time);
    }
    writefln("hand_off_ns %.1f", handOff());
}

void other(int cpu, bool asks)
{
    pin(cpu);
    // In a stream, this thread sends.
    if (there)
        away(asks ? Rings(back, there) : Rings(there), asks);
    else
        away(Mailbox(ownerTid), asks);
}

void main(string[] arguments)
{
    enforce(arguments.length == (arguments[1 .. $].startsWith("d-channel") ? 7 : 6),
        "two words, two CPUs, microseconds and the ring's capacity are needed");
    immutable asks = arguments[2] == "ask-reply";
    length = arguments[5].to!long.usecs;
    if (arguments[1] == "d-channel")
    {
        there = new Ring(arguments[6].to!size_t);
        back = new Ring(arguments[6].to!size_t);
    }
    // The sender runs on the first CPU.
    auto tid = spawn(&other, arguments[asks ? 4 : 3].to!int, asks);
    pin(arguments[asks ? 3 : 4].to!int);
    if (there)
        here(asks ? Rings(there, back) : Rings(null, there), asks);
    else
        here(Mailbox(tid), asks);
}
