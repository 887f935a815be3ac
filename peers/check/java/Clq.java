import java.util.Arrays;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * ConcurrentLinkedQueue, polled: {@code java Clq.java CPU_A CPU_B} prints the time of a round trip and
 * the messages per second; before, between and after them, the time of a number from one CPU to the
 * other.
 */
public class Clq {
    static final int ROUNDS = 600, WARM = 400;
    // As short as the tool's blocks: the queue may fill for as long as a block lasts.
    static final long LENGTH = 5_000_000;
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

    // Each in a line of its own.
    static final AtomicLongArray numbers = new AtomicLongArray(64);
    static final int THERE = 16, BACK = 48;

    static void reflect() {
        for (long next = 1, number = 0; number >= 0; next++) {
            do {
                number = numbers.getAcquire(THERE);
            } while (number != next && number >= 0);
            numbers.setRelease(BACK, number);
        }
    }

    static double handOff() {
        int count = 0;
        long next = 1, last = System.nanoTime();
        for (long end = last + 10 * LENGTH; last < end && count < times.length; count++) {
            for (int trip = 0; trip < 32; trip++, next++) {
                numbers.setRelease(THERE, next);
                while (numbers.getAcquire(BACK) != next) {}
            }
            long now = System.nanoTime();
            times[count] = now - last;
            last = now;
        }
        numbers.setRelease(THERE, -1);
        while (numbers.getAcquire(BACK) >= 0) {}
        numbers.setRelease(THERE, 0);
        Arrays.sort(times, 0, count);
        return times[count / 2] / 64.0;
    }

    static void echo() {
        for (long message; (message = next(there)) >= 0; ) {
            back.add(message);
        }
    }

    static double roundTrip() {
        long begun = System.nanoTime(), now = begun, trips = 0;
        while (now - begun < LENGTH) {
            for (int i = 0; i < 16; i++, trips++) {
                there.add(trips);
                if (next(back) != trips) throw new AssertionError("a wrong echo");
            }
            now = System.nanoTime();
        }
        return (now - begun) / (double) trips;
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
            reflect();
            echo();
            reflect();
            send();
            reflect();
        });
        other.start();
        pin(cpus[1]);
        System.out.println("hand_off_ns " + handOff());
        for (int i = 0; i < ROUNDS; i++) figures[i] = roundTrip();
        there.add(-1L);
        Arrays.sort(figures, WARM, ROUNDS);
        System.out.println("round_trip_ns " + figures[(WARM + ROUNDS) / 2]);
        System.out.println("hand_off_ns " + handOff());
        for (int i = 0; i < ROUNDS; i++) figures[i] = rate();
        Arrays.sort(figures, WARM, ROUNDS);
        System.out.println("rate_per_s " + figures[(WARM + ROUNDS) / 2]);
        System.out.println("hand_off_ns " + handOff());
        other.join();
    }
}
