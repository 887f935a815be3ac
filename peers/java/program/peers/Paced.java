package peers;

import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import jdk.internal.vm.annotation.Contended;

/**
 * Messages that are sent when they are due, drawn before the clock starts. A delivery lasts from
 * the moment at which a message was due, so nothing that delays either end is left out.
 */
final class Paced implements Scenario {
    /** Most messages of a block. */
    static final int MOST = 50_000;
    /** Time before the first message, in which the receiver begins to wait. */
    private static final long AHEAD_NS = 100_000;
    /** The generator gives up after this multiple of a block's length: the queue is saturated. */
    private static final int PATIENCE = 2;
    /** Messages that count, for each one before them that does not. */
    private static final int LEAD = 10;

    /** When messages are due. */
    interface Pattern {
        Schedule draw(long lengthNs, long seed);
    }

    /**
     * The times at which the messages of a block are due.
     *
     * @param dueNs since its start
     * @param lead messages at the beginning that do not count
     * @param burst messages that are due at a time
     */
    record Schedule(long[] dueNs, int lead, int burst) {}

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

    private final Generator generator;
    private final Receiving receiving;
    private final boolean inBursts;
    Pattern pattern;
    private Schedule schedule;
    private long stampNs;

    Paced(Channel channel, Pattern pattern, boolean inBursts) {
        generator = new Generator(channel);
        receiving = new Receiving(channel);
        this.pattern = pattern;
        this.inBursts = inBursts;
    }

    @Override
    public List<Runnable> parts() {
        return List.of(generator, receiving);
    }

    @Override
    public void begin(long lengthNs, long seed) {
        schedule = pattern.draw(lengthNs, seed);
        stampNs = costOfStamp();
        int count = schedule.dueNs.length;
        generator.due = schedule.dueNs;
        generator.least = schedule.lead + Math.max(2, schedule.burst);
        generator.patience = PATIENCE * Math.max(lengthNs, schedule.dueNs[count - 1]);
        generator.sent = new long[count];
        generator.after = new long[count];
        receiving.received = new long[count];
    }

    /** What a reading of the clock takes: the least mean of a few batches. */
    private static long costOfStamp() {
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

    @Override
    public String end() {
        int made = generator.made;
        Scenario.verify(receiving.wrong == 0, WRONG);
        Scenario.verify(made == receiving.count,
                receiving.count + " of " + made + " messages arrived");
        long[] due = generator.due;
        long[] received = receiving.received;
        int lead = schedule.lead;
        long begin = due[lead];
        long end = due[made - 1];
        long[] took = new long[made];
        long[] late = new long[made];
        long dueWithin = 0;
        long receivedWithin = 0;
        long lastReceived = end;
        long sendingNs = 0;
        long free = 0;
        for (int i = 0; i < made; i++) {
            took[i] = Math.max(0, received[i] - due[i]);
            // Late after the moment at which it was due and the calls before it, less their stamps,
            // would have returned: a call that waits for room is not the generator's fault.
            long ready = Math.max(due[i], free);
            late[i] = generator.sent[i] - ready;
            free = ready + Math.max(0, generator.after[i] - generator.sent[i] - stampNs);
            dueWithin += due[i] >= begin && due[i] < end ? 1 : 0;
            receivedWithin += received[i] >= begin && received[i] < end ? 1 : 0;
            lastReceived = Math.max(lastReceived, received[i]);
            sendingNs += generator.after[i] - generator.sent[i];
        }
        var out = new StringBuilder();
        Scenario.histogram(out, "count", took, lead, made);
        Scenario.histogram(out, "lateness", late, lead, made);
        long busyNs = Math.min(sendingNs, generator.work.cpuNs) + receiving.work.cpuNs;
        out.append("busy_ns ").append(busyNs).append('\n');
        out.append("sent ").append(made).append('\n');
        out.append("elapsed_ns ").append(lastReceived - begin).append('\n');
        out.append("window_ns ").append(Math.max(1, end - begin)).append('\n');
        out.append("due ").append(Math.max(1, dueWithin)).append('\n');
        out.append("received ").append(receivedWithin).append('\n');
        if (inBursts) {
            bursts(out);
        }
        out.append("checked ").append(made).append('\n');
        return out.toString();
    }

    private void bursts(StringBuilder out) {
        int size = schedule.burst;
        int count = (generator.made - schedule.lead) / size;
        double[] first = new double[count];
        double[] last = new double[count];
        double[] drain = new double[count];
        int foundEmpty = 0;
        for (int i = 0; i < count; i++) {
            int start = schedule.lead + i * size;
            int end = start + size - 1;
            first[i] = Math.max(0, receiving.received[start] - generator.due[start]);
            last[i] = Math.max(0, receiving.received[end] - generator.due[start]);
            drain[i] = Math.max(0, receiving.received[end] - generator.after[end]);
            foundEmpty += receiving.received[start - 1] <= generator.due[start] ? 1 : 0;
        }
        out.append("first_ns ").append(Scenario.decimal(Scenario.median(first))).append('\n');
        out.append("last_ns ").append(Scenario.decimal(Scenario.median(last))).append('\n');
        out.append("drain_ns ").append(Scenario.decimal(Scenario.median(drain))).append('\n');
        out.append("bursts ").append(count).append('\n');
        out.append("found_empty ").append(foundEmpty).append('\n');
    }

    @Override
    public double figure() {
        int from = schedule.lead;
        double[] took = new double[generator.made - from];
        for (int i = 0; i < took.length; i++) {
            took[i] = receiving.received[from + i] - generator.due[from + i];
        }
        return Scenario.median(took);
    }

    @Contended
    private static final class Generator implements Runnable {
        private final Channel channel;
        private final CpuTime work = new CpuTime();
        private Channel.Sender sender;
        private long[] due;
        private long[] sent;
        private long[] after;
        private int least;
        private long patience;
        private int made;

        Generator(Channel channel) {
            this.channel = channel;
        }

        @Override
        public void run() {
            if (sender == null) {
                sender = channel.sender();
            }
            work.begin();
            made = generate(sender, due, sent, after, least, patience);
            work.end();
        }

        private static int generate(
                Channel.Sender sender,
                long[] due,
                long[] sent,
                long[] after,
                int least,
                long patience) {
            long begin = System.nanoTime() + AHEAD_NS;
            for (int i = 0; i < due.length; i++) {
                due[i] += begin;
            }
            long until = begin + patience;
            long now = System.nanoTime();
            int number = 0;
            // While it is late there is one stamp a message: that after a call is before the next.
            while (number < due.length && (now <= until || number < least)) {
                while (now < due[number]) {
                    now = System.nanoTime();
                }
                sent[number] = now;
                sender.send(number + 1);
                now = System.nanoTime();
                after[number++] = now;
            }
            sender.send(Channel.END);
            return number;
        }
    }

    @Contended
    private static final class Receiving implements Runnable, Channel.Taker {
        private final Channel channel;
        private final CpuTime work = new CpuTime();
        private Channel.Receiver receiver;
        private long[] received;
        private int count;
        private long wrong;

        Receiving(Channel channel) {
            this.channel = channel;
        }

        @Override
        public void run() {
            if (receiver == null) {
                receiver = channel.receiver();
            }
            count = 0;
            work.begin();
            receiver.receive(this);
            work.end();
        }

        @Override
        public boolean take(long message) {
            long now = System.nanoTime();
            if (message == Channel.END) {
                return false;
            }
            if (count == received.length) {
                wrong = -1;
                return true;
            }
            received[count++] = now;
            wrong |= message ^ count;
            return true;
        }
    }
}
