package peers;

import java.util.ArrayList;
import java.util.List;
import jdk.internal.vm.annotation.Contended;

/**
 * As many messages as the queue takes. When the time is up the receiver raises a flag, and each
 * sender ends with a message without a number.
 */
final class Stream implements Scenario {
    /** Messages between two looks at the flag, for single messages. */
    private static final int ROUND = 64;
    /** Messages before the first stamp of a block. */
    private static final int SETTLING = 256;
    private static final double STRETCH_NS = 50_000;
    private static final int MOST_IN_STRETCH = 4096;

    private final Flag flag = new Flag();
    private final List<Sending> senders = new ArrayList<>();
    private final Receiving receiving;

    Stream(Channel channel, int count, int batch) {
        for (int i = 0; i < count; i++) {
            senders.add(new Sending(channel, Numbers.end(i), batch, flag));
        }
        receiving = count == 1 ? new FromOne(channel, flag) : new FromMany(channel, flag, count);
    }

    @Override
    public List<Runnable> parts() {
        var parts = new ArrayList<Runnable>(senders);
        parts.add(1, receiving);
        return parts;
    }

    @Override
    public void begin(long lengthNs, long seed) {
        flag.raised = false;
        receiving.lengthNs = lengthNs;
    }

    @Override
    public Answer end() {
        long sent = 0;
        for (Sending sender : senders) {
            sent += sender.sent;
        }
        Scenario.verify(receiving.wrong == 0, WRONG);
        Scenario.verifyCount(receiving.received, sent);
        return new Answer()
                .line("count", sent)
                .line("rate_per_s", receiving.ratePerS)
                .line("checked", sent);
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
        private final long end;
        private final int batch;
        private final Flag flag;
        private Channel.Sender sender;
        private long next;
        private long sent;

        Sending(Channel channel, long end, int batch, Flag flag) {
            this.channel = channel;
            this.end = end;
            this.batch = batch;
            this.flag = flag;
            next = end + 1;
        }

        @Override
        public void run() {
            if (sender == null) {
                sender = channel.sender();
            }
            long first = next;
            next = batch > 1 ? inBatches(sender, first) : oneByOne(sender, first);
            sent = next - first;
            sender.send(end);
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
    private abstract static class Receiving extends ReceivingPart {
        private final Flag flag;
        private long lengthNs;
        private long perStretch = 16;
        private long begun;
        private long stamped;
        private double ratePerS;

        /** Messages until the next stamp. */
        long left;
        long wrong;
        long received;

        Receiving(Channel channel, Flag flag) {
            super(channel);
            this.flag = flag;
        }

        @Override
        void beginBlock() {
            left = SETTLING;
            stamped = -1;
            received = 0;
        }

        /** Called when {@code left} has come down to 0. */
        final void stamp() {
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
                // From here on, the messages counted are those that the senders had under way.
                left = Long.MAX_VALUE;
                flag.raised = true;
            }
        }

        final void finish() {
            received += Long.MAX_VALUE - left;
        }
    }

    @Contended
    private static final class FromOne extends Receiving {
        private long number;

        FromOne(Channel channel, Flag flag) {
            super(channel, flag);
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
            finish();
            return false;
        }
    }

    @Contended
    private static final class FromMany extends Receiving {
        private final long[] numbers;
        private int ended;

        FromMany(Channel channel, Flag flag, int senders) {
            super(channel, flag);
            numbers = new long[senders];
            for (int i = 0; i < senders; i++) {
                numbers[i] = Numbers.end(i);
            }
        }

        @Override
        public boolean take(long message) {
            int sender = Numbers.sender(message);
            if (sender >= numbers.length) {
                wrong = -1;
                return true;
            }
            long difference = message ^ ++numbers[sender];
            if (difference != 0) {
                return odd(sender, message, difference);
            }
            if (--left == 0) {
                stamp();
            }
            return true;
        }

        private boolean odd(int sender, long message, long difference) {
            if (!Numbers.isEnd(message)) {
                wrong |= difference;
                numbers[sender] = message;
                return true;
            }
            numbers[sender]--;
            if (++ended < numbers.length) {
                return true;
            }
            ended = 0;
            finish();
            return false;
        }
    }
}
