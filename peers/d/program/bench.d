/// A scenario on its threads, warmed up.
module bench;

import std.array : array;
import std.math : abs, isNaN;
import std.range : cycle, take;

import clock : now;
import crew : Crew;
import figures : median;
import scenario : Block, Scenario, Seating;

final class Bench
{
    private enum warmBlockNs = 20_000_000;
    private enum mostWarmUpNs = 2_000_000_000L;
    /// Medians of this number of blocks are compared.
    private enum level = 5;
    private enum levelWithin = 0.05;

    private Scenario scenario;
    private Crew crew;
    private ulong seed;

    this(Scenario scenario, ulong seed, int[] cpus)
    {
        this.scenario = scenario;
        this.seed = seed;
        auto parts = scenario.parts;
        crew = new Crew(parts, places(scenario.seating, cpus, parts.length));
    }

    private static int[] places(Seating seating, int[] cpus, size_t parts)
    {
        if (cpus.length == 0)
            return null;
        if (cpus.length == 1 || seating == Seating.inTurn)
            return cpus.cycle.take(parts).array;
        if (seating == Seating.senderAlone)
            return cpus[0] ~ cpus[1 .. $].cycle.take(parts - 1).array;
        return (cpus[0] ~ cpus[2 .. $]).cycle.take(parts - 1).array ~ cpus[1];
    }

    void close()
    {
        crew.close();
    }

    string run(long lengthNs)
    {
        return run(Block(lengthNs, seed++));
    }

    private string run(Block block)
    {
        scenario.begin(block);
        crew.work();
        return scenario.finish();
    }

    /// Runs blocks until their figures have levelled off.
    void warmUp()
    {
        immutable began = now();
        double before;
        while (now() - began < mostWarmUpNs)
        {
            double[] figures;
            foreach (_; 0 .. level)
            {
                run(Block(warmBlockNs, seed++, true));
                figures ~= scenario.figure;
            }
            immutable figure = median(figures);
            if (!before.isNaN && abs(figure / before - 1) <= levelWithin)
                break;
            before = figure;
        }
    }
}
