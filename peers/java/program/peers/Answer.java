package peers;

import java.util.Locale;
import java.util.stream.LongStream;

/** The lines of an answer, without {@code end}. */
final class Answer {
    private final StringBuilder lines = new StringBuilder();

    Answer line(String name, long value) {
        return add(name, Long.toString(value));
    }

    /** Without an exponent. */
    Answer line(String name, double value) {
        return add(name, String.format(Locale.ROOT, "%.3f", value));
    }

    private Answer add(String name, String value) {
        lines.append(name).append(' ').append(value).append('\n');
        return this;
    }

    /** Adds a line for each distinct value, ascending, with the number of times. */
    Answer histogram(String name, LongStream values) {
        long[] sorted = values.sorted().toArray();
        var histogram = new StringBuilder();
        int distinct = 0;
        for (int i = 0; i < sorted.length; ) {
            int next = i + 1;
            while (next < sorted.length && sorted[next] == sorted[i]) {
                next++;
            }
            histogram.append(sorted[i]).append(' ').append(next - i).append('\n');
            distinct++;
            i = next;
        }
        line(name, distinct);
        lines.append(histogram);
        return this;
    }

    @Override
    public String toString() {
        return lines.toString();
    }
}
