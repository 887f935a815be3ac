package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import jdk.internal.vm.annotation.Contended;

/**
 * One sender, as fast as it can, and receivers that share its messages: through one queue, or each
 * through its own, among which the sender deals them out in turn.
 */
final class Workers implements Scenario {
    /** Messages between two looks at the clock. */
    private static final int ROUND = 64;

    private final Sending sending;
    private final List<Receiving> receiving;
    private final boolean shared;

    private Workers(Sending sending, List<Receiving> receiving, boolean shared) {
        this.sending = sending;
        this.receiving = receiving;
        this.shared = shared;
    }

    /** With a queue that many threads may receive from. */
    static Workers sharing(Channel channel, int receivers) {
        var receiving = IntStream.range(0, receivers)
                .mapToObj(i -> new Receiving(channel))
                .toList();
        return new Workers(new Sending(List.of(channel), receivers), receiving, true);
    }

    /** With a queue for each receiver. */
    static Workers bundle(List<Channel> channels) {
        var receiving = channels.stream().map(Receiving::new).toList();
        return new Workers(new Sending(channels, channels.size()), receiving, false);
    }

    @Override
    public List<Runnable> parts() {
        var parts = new ArrayList<Runnable>(List.of(sending));
        parts.addAll(receiving);
        return parts;
    }

    @Override
    public Seating seating() {
        return Seating.SENDER_ALONE;
    }

    @Override
    public void begin(long lengthNs, long seed) {
        sending.lengthNs = lengthNs;
    }

    @Override
    public Answer end() {
        long sent = sending.sent;
        long received = 0;
        long sum = 0;
        for (Receiving one : receiving) {
            Scenario.verify(one.wrong == 0, WRONG);
            received += one.count;
            sum += one.sum;
        }
        Scenario.verifyCount(received, sent);
        Scenario.verify(sum == sent * (sent + 1) / 2, WRONG);
        Answer answer = new Answer()
                .line("count", sent)
                .line("elapsed_ns", elapsedNs())
                .line("shared", shared ? 1 : 0);
        for (Receiving one : receiving) {
            answer.line("received", one.count);
        }
        return answer.line("checked", received);
    }

    /** From before the first message until the last receiver has its end. */
    private long elapsedNs() {
        return receiving.stream().mapToLong(one -> one.ended - sending.begun).max().orElseThrow();
    }

    @Override
    public double figure() {
        return (double) elapsedNs() / sending.sent;
    }

    /** Deals out messages among queues in turn. */
    private static final class Dealer implements Channel.Sender {
        private final Channel.Sender[] senders;
        private int next;

        Dealer(List<Channel> channels) {
            senders = channels.stream().map(Channel::sender).toArray(Channel.Sender[]::new);
        }

        @Override
        public void send(long message) {
            senders[next].send(message);
            if (++next == senders.length) {
                next = 0;
            }
        }
    }

    @Contended
    private static final class Sending implements Runnable {
        private final List<Channel> channels;
        private final int receivers;
        private Channel.Sender sender;
        private long lengthNs;
        private long begun;
        private long sent;

        Sending(List<Channel> channels, int receivers) {
            this.channels = channels;
            this.receivers = receivers;
        }

        @Override
        public void run() {
            if (sender == null) {
                boolean one = channels.size() == 1;
                sender = one ? channels.get(0).sender() : new Dealer(channels);
            }
            begun = System.nanoTime() + AHEAD_NS;
            Clock.spinUntil(begun);
            sent = send(sender, begun + lengthNs);
            // A dealer, too, gives each receiver one of as many messages in a row.
            for (int i = 0; i < receivers; i++) {
                sender.send(Channel.END);
            }
        }

        private static long send(Channel.Sender sender, long until) {
            long number = 0;
            do {
                for (int i = 0; i < ROUND; i++) {
                    sender.send(++number);
                }
            } while (System.nanoTime() < until);
            return number;
        }
    }

    @Contended
    private static final class Receiving extends ReceivingPart {
        private long last;
        private long count;
        private long sum;
        private long wrong;
        private long ended;

        Receiving(Channel channel) {
            super(channel);
        }

        @Override
        void beginBlock() {
            last = Channel.END;
            count = 0;
            sum = 0;
        }

        @Override
        public boolean take(long message) {
            if (message <= last) {
                return odd(message);
            }
            last = message;
            count++;
            sum += message;
            return true;
        }

        private boolean odd(long message) {
            if (message == Channel.END) {
                ended = System.nanoTime();
                return false;
            }
            wrong = -1;
            return true;
        }
    }
}
