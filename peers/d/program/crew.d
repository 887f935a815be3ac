/// Threads that work together for a block and sleep between blocks.
module crew;

import core.sync.barrier : Barrier;
import core.sys.linux.sched;
import core.sys.posix.unistd : _exit;
import core.thread : Thread;
import std.array : join, split;
import std.exception : enforce;
import std.format : format;
import std.stdio : stdout;

/// The work of a thread.
abstract class Part
{
    /// Called once on the thread, before any block.
    void enter()
    {
    }

    /// Called for each block.
    abstract void work();
}

final class Crew
{
    private Barrier gate;
    private bool over;
    private string refusal;

    /// Runs each part on the next CPU, if there are CPUs.
    this(Part[] parts, int[] cpus)
    {
        gate = new Barrier(cast(uint) parts.length + 1);
        foreach (i, part; parts)
            start(part, cpus.length ? cpus[i % $] : -1);
        gate.wait();
        if (refusal.length)
            close();
        enforce(refusal.length == 0, refusal);
    }

    private void start(Part part, int cpu)
    {
        auto thread = new Thread({ live(part, cpu); });
        thread.isDaemon = true;
        thread.start();
    }

    private void live(Part part, int cpu)
    {
        try
        {
            if (cpu >= 0 && !pin(cpu))
                refusal = format("CPU %d is not available", cpu);
            part.enter();
            gate.wait();
            for (gate.wait(); !over; gate.wait())
            {
                part.work();
                gate.wait();
            }
        }
        catch (Throwable failure)
        {
            // The other threads may wait for messages that will never come.
            stdout.write("error ", failure.msg.split.join(" "), "\n");
            stdout.flush();
            _exit(1);
        }
    }

    /// Runs all parts once.
    void work()
    {
        gate.wait();
        gate.wait();
    }

    void close()
    {
        over = true;
        gate.wait();
    }
}

private bool pin(int cpu)
{
    cpu_set_t set;
    if (cpu >= 8 * cpu_set_t.sizeof)
        return false;
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, cpu_set_t.sizeof, &set) == 0;
}
