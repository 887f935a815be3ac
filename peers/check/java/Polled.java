import java.util.Arrays;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLongArray;
import org.jctools.queues.SpscArrayQueue;

/**
 * Two polled queues between two threads: {@code java Polled java-clq|jctools-spsc-bounded
 * ask-reply|stream CPU_A CPU_B MICROSECONDS [CAPACITY]} prints, for each block, the time of a round
 * trip or per message ({@code time_ns}), and before, between and after the blocks the time of an
 * atomic number from one CPU to the other ({@code hand_off_ns}).
 */
public class Polled {
    static final int BLOCKS = 200, WARM_UP = 400;
    static final long HAND_OFF = 1_000_000;
    // Of a block, in nanoseconds: a queue without a bound may fill for as long as it lasts.
    static long length;
    static final long[] times = new long[1 << 20];

    abstract static class Line {
        abstract void put(long message);

        abstract long take();
    }

    /** Its fields keep the ends of two queues on lines of their own, wherever they are moved. */
    static final class Padded extends ConcurrentLinkedQueue<Long> {
        long a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
    }

    static final class Linked extends Line {
        final ConcurrentLinkedQueue<Long> queue = new Padded();

        @Override
        void put(long message) {
            queue.add(message);
        }

        @Override
        long take() {
            Long message;
            do {
                message = queue.poll();
            } while (message == null);
            return message;
        }
    }

    static final class Ring extends Line {
        final SpscArrayQueue<Long> queue;

        Ring(int capacity) {
            queue = new SpscArrayQueue<>(capacity);
        }

        @Override
        void put(long message) {
            Long boxed = message;
            while (!queue.relaxedOffer(boxed)) {}
        }

        @Override
        long take() {
            Long message;
            do {
                message = queue.relaxedPoll();
            } while (message == null);
            return message;
        }
    }

    static void pin(String cpu) throws Exception {
        var thread = new java.io.File("/proc/thread-self").getCanonicalFile().getName();
        int code = new ProcessBuilder("taskset", "-pc", cpu, thread).start().waitFor();
        if (code != 0) throw new AssertionError("a thread cannot run on CPU " + cpu);
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
        for (long end = last + HAND_OFF; last < end && count < times.length; count++) {
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

    static double ask(Line there, Line back) {
        long begun = System.nanoTime(), now = begun, trips = 0;
        while (now - begun < length) {
            for (int i = 0; i < 16; i++, trips++) {
                there.put(trips);
                if (back.take() != trips) throw new AssertionError("a wrong echo");
            }
            now = System.nanoTime();
        }
        there.put(-1);
        return (now - begun) / (double) trips;
    }

    static void echo(Line there, Line back) {
        for (long message; (message = there.take()) >= 0; ) {
            back.put(message);
        }
    }

    static volatile boolean stop;

    static double drink(Line there) {
        long begun = System.nanoTime(), now = begun, count = 0;
        while (now - begun < length) {
            for (int i = 0; i < 1000; i++, count++) {
                if (there.take() != count) throw new AssertionError("a wrong message");
            }
            now = System.nanoTime();
        }
        stop = true;
        while (there.take() >= 0) {}
        stop = false;
        return (now - begun) / (double) count;
    }

    static void feed(Line there) {
        for (long number = 0; !stop; ) {
            for (int i = 0; i < 64; i++) there.put(number++);
        }
        there.put(-1);
    }

    public static void main(String[] arguments) throws Exception {
        boolean linked = arguments[0].equals("java-clq");
        int capacity = linked ? 0 : Integer.parseInt(arguments[5]);
        Line there = linked ? new Linked() : new Ring(capacity);
        Line back = linked ? new Linked() : new Ring(capacity);
        length = Long.parseLong(arguments[4]) * 1000;
        boolean asks = arguments[1].equals("ask-reply");
        // The sender runs on the first CPU.
        String here = arguments[asks ? 2 : 3], away = arguments[asks ? 3 : 2];
        var other = new Thread(() -> {
            try {
                pin(away);
            } catch (Exception e) {
                throw new Error(e);
            }
            for (int block = 0; block < WARM_UP + BLOCKS; block++) {
                reflect();
                if (asks) echo(there, back); else feed(there);
            }
            reflect();
        });
        other.setDaemon(true);
        other.start();
        pin(here);
        for (int block = 0; block < WARM_UP + BLOCKS; block++) {
            double took = handOff(), time = asks ? ask(there, back) : drink(there);
            if (block >= WARM_UP) System.out.printf("hand_off_ns %.1f%ntime_ns %.3f%n", took, time);
        }
        System.out.printf("hand_off_ns %.1f%n", handOff());
        other.join();
    }
}
