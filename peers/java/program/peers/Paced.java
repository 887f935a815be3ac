package peers;

import java.util.List;
import jdk.internal.vm.annotation.Contended;

/** An open loop: messages are sent when they are due, however long they take. */
class Paced implements Rehearsed {
    final Generator generator;
    final Receiving receiving;
    private final Schedule.Pattern pattern;
    private boolean quick;

    Paced(Channel channel, Schedule.Pattern pattern) {
        this(channel, channel, pattern);
    }

    /** Sends into one queue and receives from another one, which is behind it. */
    Paced(Channel first, Channel last, Schedule.Pattern pattern) {
        generator = new Generator(first, Channel.END, false);
        receiving = new Receiving(last);
        this.pattern = pattern;
    }

    @Override
    public List<Runnable> parts() {
        return List.of(generator, receiving);
    }

    @Override
    public void rehearse(boolean quick) {
        this.quick = quick;
    }

    @Override
    public long leastNs(long lengthNs, long seed) {
        return pattern.draw(lengthNs, seed).lastNs();
    }

    @Override
    public void begin(long lengthNs, long seed) {
        Schedule schedule = (quick ? Schedule.QUICK : pattern).draw(lengthNs, seed);
        generator.begin(schedule, lengthNs);
        receiving.received = new long[schedule.dueNs().length];
    }

    @Override
    public Answer end() {
        Scenario.verify(receiving.wrong == 0, WRONG);
        Scenario.verifyCount(receiving.count, generator.made());
        List<Delivery> all = deliveries();
        Answer answer = Delivery.describe(all, lead(), busyNs(), all.size());
        describeMore(answer, all);
        return answer.line("checked", all.size());
    }

    private List<Delivery> deliveries() {
        return generator.deliveries(receiving.received);
    }

    int lead() {
        return generator.schedule().lead();
    }

    /** CPU time of the send calls and of the other threads. */
    long busyNs() {
        return generator.busyNs() + receiving.work.cpuNs;
    }

    /** Adds lines that only some such scenarios have. */
    void describeMore(Answer answer, List<Delivery> all) {}

    @Override
    public double figure() {
        List<Delivery> all = deliveries();
        return Scenario.median(all.subList(lead(), all.size()).stream()
                .mapToDouble(Delivery::tookNs)
                .toArray());
    }

    @Contended
    static final class Receiving extends ReceivingPart {
        private int count;
        private long wrong;
        long[] received;

        Receiving(Channel channel) {
            super(channel);
        }

        @Override
        void beginBlock() {
            count = 0;
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
