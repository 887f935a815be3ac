package peers;

import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import jdk.internal.vm.annotation.Contended;

/**
 * One sender dumps messages as fast as the queue takes them, and another one sends a line now and
 * then: the time of its send calls. The receiver is slower than the dumper, so a bounded queue is
 * full meanwhile.
 */
final class Flood implements Rehearsed {
    /** The senders. */
    private static final int DUMPER = 0;
    private static final int WRITER = 1;
    /** Messages of a dump: 8 MiB. */
    private static final int DUMP = 1 << 20;
    /** Messages between two looks at the flag. */
    private static final int ROUND = 64;
    /** Time for which the receiver computes after each message. */
    private static final long COMPUTES_NS = 100;
    /** The writer spins for shorter waits; in others it leaves its CPU to the dumper. */
    private static final long NAP_NS = 20_000;

    private final Schedule.Pattern lines;
    private final Flags flags = new Flags();
    private final Dumper dumper;
    private final Writer writer;
    private final Receiving receiving;
    private boolean quick;

    Flood(Channel channel, double ratePerS) {
        lines = Schedule.openLoop(1e9 / ratePerS, true);
        dumper = new Dumper(channel, flags);
        writer = new Writer(channel, flags);
        receiving = new Receiving(channel);
    }

    @Override
    public List<Runnable> parts() {
        return List.of(dumper, receiving, writer);
    }

    @Override
    public void rehearse(boolean quick) {
        this.quick = quick;
    }

    @Override
    public long leastNs(long lengthNs, long seed) {
        return lines.draw(lengthNs, seed).lastNs();
    }

    @Override
    public void begin(long lengthNs, long seed) {
        flags.written = false;
        flags.dumped = false;
        writer.begin((quick ? Schedule.QUICK : lines).draw(lengthNs, seed).dueNs());
    }

    @Override
    public Answer end() {
        long sent = dumper.sent + writer.due.length;
        Scenario.verify(receiving.wrong == 0, WRONG);
        Scenario.verifyCount(receiving.count(), sent);
        return new Answer()
                .histogram("count", IntStream.range(0, writer.due.length).mapToLong(writer::callNs))
                .line("elapsed_ns", writer.elapsedNs())
                .line("sent", sent)
                .line("checked", sent);
    }

    @Override
    public double figure() {
        return Scenario.median(IntStream.range(0, writer.due.length)
                .mapToDouble(writer::callNs)
                .toArray());
    }

    @Contended
    private static final class Flags {
        /** All lines have been sent. */
        private volatile boolean written;
        /** The dumper has sent its last message. */
        private volatile boolean dumped;
    }

    @Contended
    private static final class Dumper implements Runnable {
        private final Channel channel;
        private final Flags flags;
        private Channel.Sender sender;
        private int sent;

        Dumper(Channel channel, Flags flags) {
            this.channel = channel;
            this.flags = flags;
        }

        @Override
        public void run() {
            if (sender == null) {
                sender = channel.sender();
            }
            Clock.spinUntil(System.nanoTime() + AHEAD_NS);
            sent = dump();
            flags.dumped = true;
        }

        private int dump() {
            long number = Numbers.end(DUMPER);
            int count = 0;
            while (count < DUMP && !flags.written) {
                for (int i = 0; i < ROUND; i++) {
                    sender.send(++number);
                }
                count += ROUND;
            }
            return count;
        }
    }

    @Contended
    private static final class Writer implements Runnable {
        private final Channel channel;
        private final Flags flags;
        private Channel.Sender sender;
        private long[] due;
        private long[] before;
        private long[] after;

        Writer(Channel channel, Flags flags) {
            this.channel = channel;
            this.flags = flags;
        }

        void begin(long[] due) {
            this.due = due;
            before = new long[due.length];
            after = new long[due.length];
        }

        @Override
        public void run() {
            if (sender == null) {
                sender = channel.sender();
            }
            // After the start of the dump.
            write(sender, due, before, after, System.nanoTime() + 2 * AHEAD_NS);
            flags.written = true;
            while (!flags.dumped) {
                LockSupport.parkNanos(NAP_NS);
            }
            sender.send(Channel.END);
        }

        private static void write(
                Channel.Sender sender, long[] due, long[] before, long[] after, long begin) {
            long number = Numbers.end(WRITER);
            for (int i = 0; i < due.length; i++) {
                Clock.sleepUntil(begin + due[i], NAP_NS);
                before[i] = System.nanoTime();
                sender.send(++number);
                after[i] = System.nanoTime();
            }
        }

        long callNs(int line) {
            return after[line] - before[line];
        }

        long elapsedNs() {
            return after[after.length - 1] - before[0];
        }
    }

    @Contended
    private static final class Receiving extends ReceivingPart {
        private final long[] numbers = new long[2];
        private long wrong;

        Receiving(Channel channel) {
            super(channel);
        }

        @Override
        void beginBlock() {
            numbers[DUMPER] = Numbers.end(DUMPER);
            numbers[WRITER] = Numbers.end(WRITER);
        }

        @Override
        public boolean take(long message) {
            if (message == Channel.END) {
                return false;
            }
            int sender = Numbers.sender(message);
            if (sender < numbers.length) {
                wrong |= message ^ ++numbers[sender];
            } else {
                wrong = -1;
            }
            Clock.spinUntil(System.nanoTime() + COMPUTES_NS);
            return true;
        }

        long count() {
            return numbers[DUMPER] + numbers[WRITER] - Numbers.end(WRITER);
        }
    }
}
