package peers;

import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * The times at which the messages of a block are due, drawn before its clock starts.
 *
 * @param dueNs since its start
 * @param lead messages at the beginning that do not count
 * @param burst messages that are due at a time
 */
record Schedule(long[] dueNs, int lead, int burst) {
    /** Most messages of a block. */
    static final int MOST = 50_000;
    /** Messages so close that the code that sends them is compiled soon. */
    static final Pattern QUICK = openLoop(5_000, false);
    /** Messages that count, for each one before them that does not. */
    private static final int LEAD = 10;

    /** Draws schedules of blocks. */
    interface Pattern {
        Schedule draw(long lengthNs, long seed);
    }

    /** Messages at equal or at exponential distances. */
    static Pattern openLoop(double gapNs, boolean poisson) {
        return (lengthNs, seed) -> {
            var random = new SplittableRandom(seed);
            long[] due = new long[MOST];
            int count = 0;
            int lead = 0;
            double at = 0;
            double end = 0;
            while (true) {
                due[count++] = (long) at;
                at += poisson ? -gapNs * Math.log(1 - random.nextDouble()) : gapNs;
                if (lead == 0) {
                    if (at >= (double) lengthNs / LEAD || count >= MOST / (LEAD + 1)) {
                        lead = count;
                        end = at + lengthNs;
                    }
                    continue;
                }
                boolean enough = count - lead >= 2 && due[lead] < due[count - 1];
                if (enough && at > end || count == MOST) {
                    return new Schedule(Arrays.copyOf(due, count), lead, 1);
                }
            }
        };
    }

    /** Bursts at equal distances. */
    static Pattern bursts(int burst, long gapNs) {
        return (lengthNs, seed) -> {
            int bursts = (int) Math.max(2, Math.min(lengthNs / gapNs, MOST / burst));
            long[] due = new long[(bursts + 1) * burst];
            for (int i = 0; i < due.length; i++) {
                due[i] = i / burst * gapNs;
            }
            return new Schedule(due, burst, burst);
        };
    }

    /** When the last message is due. */
    long lastNs() {
        return dueNs[dueNs.length - 1];
    }
}
