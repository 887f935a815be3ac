/// A scenario on its threads, warmed up.
module bench;

import std.math : abs, isNaN;

import clock : now;
import crew : Crew;
import figures : median;
import scenario : Scenario;

final class Bench
{
    private enum warmBlockNs = 20_000_000;
    private enum mostWarmUpNs = 2_000_000_000L;
    /// Medians of this number of blocks are compared.
    private enum level = 5;
    private enum levelWithin = 0.05;

    private Scenario scenario;
    private Crew crew;

    this(Scenario scenario, int[] cpus)
    {
        this.scenario = scenario;
        crew = new Crew(scenario.parts, cpus);
    }

    void close()
    {
        crew.close();
    }

    string run(long lengthNs)
    {
        scenario.begin(lengthNs);
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
                run(warmBlockNs);
                figures ~= scenario.figure;
            }
            immutable figure = median(figures);
            if (!before.isNaN && abs(figure / before - 1) <= levelWithin)
                break;
            before = figure;
        }
    }
}
