package peers;

import java.util.Arrays;
import java.util.List;

/** Threads that measure a queue, a block at a time. */
interface Scenario {
    String WRONG = "a message was wrong, lost, repeated or out of order";

    /** The work of each thread in a block. */
    List<Runnable> parts();

    /** Called before the parts run. */
    void begin(long lengthNs);

    /** Called after the parts have run. */
    Answer end();

    /** The figure that levels off in a warm-up: a time per message of the last block. */
    double figure();

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int half = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }

    static void verify(boolean right, String otherwise) {
        if (!right) {
            throw new IllegalStateException(otherwise);
        }
    }
}
