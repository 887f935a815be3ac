package peers;

import java.util.List;
import jdk.internal.vm.annotation.Contended;

/**
 * Messages sent as fast as the queue takes them. When the time is up, the receiver raises a flag,
 * and the sender ends with a message without a number.
 */
final class Stream implements Scenario {
    /** Number of messages between two checks of the flag, for single messages. */
    private static final int ROUND = 64;
    /** Number of messages before the first stamp of a block. */
    private static final int SETTLING = 256;
    private static final double STRETCH_NS = 50_000;
    private static final int MOST_IN_STRETCH = 4096;

    private final Flag flag = new Flag();
    private final Sending sending;
    private final Receiving receiving;

    Stream(Channel channel, int batch) {
        sending = new Sending(channel, batch, flag);
        receiving = new Receiving(channel, flag);
    }

    @Override
    public List<Runnable> parts() {
        return List.of(sending, receiving);
    }

    @Override
    public void begin(long lengthNs) {
        flag.raised = false;
        receiving.lengthNs = lengthNs;
    }

    @Override
    public Answer end() {
        Scenario.verify(receiving.wrong == 0, WRONG);
        Scenario.verify(receiving.received == sending.sent,
                receiving.received + " of " + sending.sent + " messages arrived");
        return new Answer()
                .line("count", sending.sent)
                .line("rate_per_s", receiving.ratePerS)
                .line("checked", sending.sent);
    }

    @Override
    public double figure() {
        return 1e9 / receiving.ratePerS;
    }

    @Contended
    private static final class Flag {
        volatile boolean raised;
    }

    @Contended
    private static final class Sending implements Runnable {
        private final Channel channel;
        private final int batch;
        private final Flag flag;
        private Channel.Sender sender;
        private long next = Channel.END + 1;
        private long sent;

        Sending(Channel channel, int batch, Flag flag) {
            this.channel = channel;
            this.batch = batch;
            this.flag = flag;
        }

        @Override
        public void run() {
            if (sender == null) {
                sender = channel.sender();
            }
            long first = next;
            next = batch > 1 ? inBatches(sender, first) : oneByOne(sender, first);
            sent = next - first;
            sender.send(Channel.END);
        }

        /** Returns the number after that of the last message. */
        private long inBatches(Channel.Sender sender, long next) {
            while (!flag.raised) {
                sender.sendMany(next, batch);
                next += batch;
            }
            return next;
        }

        private long oneByOne(Channel.Sender sender, long next) {
            while (!flag.raised) {
                for (int i = 0; i < ROUND; i++) {
                    sender.send(next++);
                }
            }
            return next;
        }
    }

    @Contended
    private static final class Receiving implements Runnable, Channel.Taker {
        private final Channel channel;
        private final Flag flag;
        private Channel.Receiver receiver;
        private long lengthNs;
        private long perStretch = 16;
        private long begun;
        private long stamped;
        private double ratePerS;
        private long number;
        /** Number of messages until the next stamp. */
        private long left;
        private long wrong;
        private long received;

        Receiving(Channel channel, Flag flag) {
            this.channel = channel;
            this.flag = flag;
        }

        @Override
        public void run() {
            if (receiver == null) {
                receiver = channel.receiver();
            }
            left = SETTLING;
            stamped = -1;
            received = 0;
            receiver.receive(this);
        }

        @Override
        public boolean take(long message) {
            long difference = message ^ ++number;
            if (difference != 0) {
                return odd(message, difference);
            }
            if (--left == 0) {
                stamp();
            }
            return true;
        }

        private boolean odd(long message, long difference) {
            if (message != Channel.END) {
                wrong |= difference;
                number = message;
                return true;
            }
            number--;
            received += Long.MAX_VALUE - left;
            return false;
        }

        private void stamp() {
            received += stamped < 0 ? SETTLING : perStretch;
            left = perStretch;
            long now = System.nanoTime();
            if (stamped < 0) {
                begun = now;
                stamped = 0;
                return;
            }
            stamped += perStretch;
            if (now - begun >= lengthNs) {
                ratePerS = stamped * 1e9 / (now - begun);
                double messages = ratePerS * STRETCH_NS / 1e9;
                perStretch = (long) Math.max(1, Math.min(MOST_IN_STRETCH, messages));
                // From here on, the messages counted are those that the sender had already sent.
                left = Long.MAX_VALUE;
                flag.raised = true;
            }
        }
    }
}
