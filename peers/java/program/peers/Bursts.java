package peers;

import java.util.List;
import java.util.function.IntToDoubleFunction;
import java.util.stream.IntStream;

/** An open loop in which many messages are due at a time, and figures of each burst. */
final class Bursts extends Paced {
    Bursts(Channel channel, int burst, long gapNs) {
        super(channel, Schedule.bursts(burst, gapNs));
    }

    @Override
    void describeMore(Answer answer, List<Delivery> all) {
        int size = generator.schedule().burst();
        int[] starts = IntStream.iterate(lead(), start -> start + size)
                .takeWhile(start -> start + size <= all.size())
                .toArray();
        answer.line("first_ns", median(starts, start -> all.get(start).tookNs()))
                .line("last_ns", median(starts, start -> all.get(start + size - 1).tookNs()))
                .line("drain_ns", median(starts, start -> drainNs(all.get(start + size - 1))))
                .line("bursts", starts.length)
                .line("found_empty", IntStream.of(starts)
                        .filter(start -> all.get(start - 1).received() <= all.get(start).due())
                        .count());
    }

    private static double median(int[] starts, IntToDoubleFunction figure) {
        return Scenario.median(IntStream.of(starts).mapToDouble(figure).toArray());
    }

    private static long drainNs(Delivery last) {
        return Math.max(0, last.received() - last.after());
    }
}
