package peers;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** Threads that measure a queue, a block at a time. */
interface Scenario {
    String WRONG = "a message was wrong, lost, repeated or out of order";

    /** The work of each thread in a block: a sender, the receiver, then any other senders. */
    List<Runnable> parts();

    /** Called before the parts run. */
    void begin(long lengthNs, long seed);

    /** Called after the parts have run; returns the lines of the answer, without {@code end}. */
    String end();

    /** The figure that levels off in a warm-up: a time per message of the last block. */
    double figure();

    /** Appends a line for each distinct value, ascending, with the number of times. */
    static void histogram(StringBuilder out, String name, long[] values, int from, int to) {
        long[] sorted = Arrays.copyOfRange(values, from, to);
        Arrays.sort(sorted);
        var lines = new StringBuilder();
        int distinct = 0;
        for (int i = 0; i < sorted.length; ) {
            int next = i + 1;
            while (next < sorted.length && sorted[next] == sorted[i]) {
                next++;
            }
            lines.append(sorted[i]).append(' ').append(next - i).append('\n');
            distinct++;
            i = next;
        }
        out.append(name).append(' ').append(distinct).append('\n').append(lines);
    }

    /** Without an exponent. */
    static String decimal(double value) {
        return String.format(Locale.ROOT, "%.3f", value);
    }

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
