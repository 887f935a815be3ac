package peers;

import java.util.concurrent.locks.LockSupport;

/** Waiting for times of {@link System#nanoTime}, and the cost of asking for it. */
final class Clock {
    private Clock() {}

    static void spinUntil(long time) {
        while (System.nanoTime() < time) {
            // As a thread that computes.
        }
    }

    /** Sleeps, but spins if at most {@code spinNs} are left. */
    static void sleepUntil(long time, long spinNs) {
        // `Thread.sleep` rounds to milliseconds before Java 21.
        for (long left; (left = time - System.nanoTime()) > 0; ) {
            if (left > spinNs) {
                LockSupport.parkNanos(left);
            }
        }
    }

    /** What a reading takes: the least mean of a few batches. */
    static long costOfReading() {
        final int batches = 8;
        final int each = 64;
        long least = Long.MAX_VALUE;
        for (int batch = 0; batch < batches; batch++) {
            long begin = System.nanoTime();
            for (int i = 1; i < each; i++) {
                System.nanoTime();
            }
            least = Math.min(least, (System.nanoTime() - begin) / each);
        }
        return least;
    }
}
