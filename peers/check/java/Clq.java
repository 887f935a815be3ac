import java.util.Arrays;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * ConcurrentLinkedQueue, polled: {@code java Clq.java CPU_A CPU_B} prints the median round trip and
 * the messages per second.
 */
public class Clq {
    static final int ROUNDS = 60, WARM = 40;
    static final long LENGTH = 50_000_000;
    static final long[] times = new long[1 << 20];
    static final ConcurrentLinkedQueue<Long> there = new ConcurrentLinkedQueue<>();
    // Or the two queues would share a cache line.
    static final byte[] between = new byte[1024];
    static final ConcurrentLinkedQueue<Long> back = new ConcurrentLinkedQueue<>();

    static void pin(String cpu) throws Exception {
        var thread = new java.io.File("/proc/thread-self").getCanonicalFile().getName();
        new ProcessBuilder("taskset", "-pc", cpu, thread).start().waitFor();
    }

    static long next(ConcurrentLinkedQueue<Long> queue) {
        Long message;
        do {
            message = queue.poll();
        } while (message == null);
        return message;
    }

    static void echo() {
        for (long message; (message = next(there)) >= 0; ) {
            back.add(message);
        }
    }

    static double roundTrip() {
        int count = 0;
        long last = System.nanoTime();
        for (long end = last + LENGTH; last < end && count < times.length; count++) {
            there.add((long) count);
            if (next(back) != count) throw new AssertionError("a wrong echo");
            long now = System.nanoTime();
            times[count] = now - last;
            last = now;
        }
        Arrays.sort(times, 0, count);
        return times[count / 2];
    }

    static volatile boolean stop;

    static void send() {
        for (int i = 0; i < ROUNDS; i++) {
            next(back);
            for (long number = 0; !stop; ) {
                for (int j = 0; j < 64; j++) there.add(number++);
            }
            there.add(-1L);
        }
    }

    static double rate() {
        stop = false;
        back.add(0L);
        long begun = System.nanoTime(), now = begun, count = 0;
        while (now - begun < LENGTH) {
            for (int i = 0; i < 1000; i++, count++) {
                if (next(there) != count) throw new AssertionError("a wrong message");
            }
            now = System.nanoTime();
        }
        double rate = count * 1e9 / (now - begun);
        stop = true;
        while (next(there) >= 0) {}
        return rate;
    }

    public static void main(String[] cpus) throws Exception {
        double[] figures = new double[ROUNDS];
        var other = new Thread(() -> {
            try {
                pin(cpus[0]);
            } catch (Exception e) {
                throw new Error(e);
            }
            echo();
            send();
        });
        other.start();
        pin(cpus[1]);
        for (int i = 0; i < ROUNDS; i++) figures[i] = roundTrip();
        there.add(-1L);
        Arrays.sort(figures, WARM, ROUNDS);
        System.out.println("round_trip_ns " + figures[(WARM + ROUNDS) / 2]);
        for (int i = 0; i < ROUNDS; i++) figures[i] = rate();
        Arrays.sort(figures, WARM, ROUNDS);
        System.out.println("rate_per_s " + figures[(WARM + ROUNDS) / 2]);
        other.join();
    }
}
