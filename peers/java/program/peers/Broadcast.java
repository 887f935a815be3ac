package peers;

import java.util.ArrayList;
import java.util.List;
import jdk.internal.vm.annotation.Contended;

/**
 * Messages that each receiver gets, sent as fast as the queue takes them. When the time is up, the
 * sender ends with a message without a number.
 */
final class Broadcast implements Scenario {
    /** Number of messages between two readings of the clock. */
    private static final int ROUND = 64;
    /** Time in which all threads begin, before the first message. */
    private static final long AHEAD_NS = 100_000;

    private final Sending sending;
    private final List<Receiving> receiving = new ArrayList<>();

    Broadcast(Fan fan, int batch) {
        sending = new Sending(fan, batch);
        for (Channel.Receiver receiver : fan.receivers()) {
            receiving.add(new Receiving(receiver));
        }
    }

    /** Receivers, and then the sender. */
    @Override
    public List<Runnable> parts() {
        var parts = new ArrayList<Runnable>(receiving);
        parts.add(sending);
        return parts;
    }

    @Override
    public void begin(long lengthNs) {
        sending.lengthNs = lengthNs;
    }

    @Override
    public Answer end() {
        for (Receiving one : receiving) {
            Scenario.verify(one.wrong == 0, WRONG);
            Scenario.verify(one.received == sending.sent,
                    one.received + " of " + sending.sent + " messages arrived");
        }
        return new Answer()
                .line("count", sending.sent)
                .line("rate_per_s", 1e9 / figure())
                .line("checked", sending.sent);
    }

    /** From the first message until the last receiver has the last one. */
    @Override
    public double figure() {
        long ended = receiving.stream().mapToLong(one -> one.ended).max().orElseThrow();
        return (double) (ended - sending.begun) / sending.sent;
    }

    @Contended
    private static final class Sending implements Runnable {
        private final Fan fan;
        private final int batch;
        private Channel.Sender sender;
        private long lengthNs;
        private long next = Channel.END + 1;
        private long begun;
        private long sent;

        Sending(Fan fan, int batch) {
            this.fan = fan;
            this.batch = batch;
        }

        @Override
        public void run() {
            if (sender == null) {
                sender = fan.sender();
            }
            begun = System.nanoTime() + AHEAD_NS;
            while (System.nanoTime() < begun) {
                Thread.onSpinWait();
            }
            long end = begun + lengthNs;
            long first = next;
            next = batch > 1 ? inBatches(sender, first, end) : oneByOne(sender, first, end);
            sent = next - first;
            sender.send(Channel.END);
        }

        /** Returns the number after that of the last message. */
        private long inBatches(Channel.Sender sender, long next, long end) {
            do {
                for (int sent = 0; sent < ROUND; sent += batch) {
                    sender.sendMany(next, batch);
                    next += batch;
                }
            } while (System.nanoTime() < end);
            return next;
        }

        private long oneByOne(Channel.Sender sender, long next, long end) {
            do {
                for (int i = 0; i < ROUND; i++) {
                    sender.send(next++);
                }
            } while (System.nanoTime() < end);
            return next;
        }
    }

    @Contended
    private static final class Receiving implements Runnable, Channel.Taker {
        private final Channel.Receiver receiver;
        private long number;
        private long before;
        private long wrong;
        private long received;
        private long ended;

        Receiving(Channel.Receiver receiver) {
            this.receiver = receiver;
        }

        @Override
        public void run() {
            before = number;
            receiver.receive(this);
            ended = System.nanoTime();
            received = number - before;
        }

        @Override
        public boolean take(long message) {
            if (message == Channel.END) {
                return false;
            }
            wrong |= message ^ ++number;
            return true;
        }
    }
}
