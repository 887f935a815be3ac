package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import jdk.internal.vm.annotation.Contended;

/** An open loop through queues in a row, each between two other threads. */
final class Chain extends Paced {
    private final List<Relay> relays = new ArrayList<>();

    Chain(List<Channel> channels, Schedule.Pattern pattern) {
        super(channels.get(0), channels.get(channels.size() - 1), pattern);
        for (int i = 1; i < channels.size(); i++) {
            relays.add(new Relay(channels.get(i - 1), channels.get(i)));
        }
    }

    @Override
    public List<Runnable> parts() {
        var parts = new ArrayList<Runnable>(List.of(generator));
        parts.addAll(relays);
        parts.add(receiving);
        return parts;
    }

    @Override
    public Seating seating() {
        return Seating.IN_TURN;
    }

    @Override
    public void begin(long lengthNs, long seed) {
        super.begin(lengthNs, seed);
        for (Relay relay : relays) {
            relay.received = new long[receiving.received.length];
        }
    }

    @Override
    long busyNs() {
        return super.busyNs() + relays.stream().mapToLong(relay -> relay.work.cpuNs).sum();
    }

    @Override
    void describeMore(Answer answer, List<Delivery> all) {
        long[] from = all.stream().mapToLong(Delivery::sent).toArray();
        for (Relay relay : relays) {
            Scenario.verifyCount(relay.count, all.size());
            describeHop(answer, from, relay.received);
            from = relay.received;
        }
        describeHop(answer, from, receiving.received);
    }

    private void describeHop(Answer answer, long[] from, long[] to) {
        answer.histogram("hop", IntStream.range(lead(), generator.made())
                .mapToLong(i -> Math.max(0, to[i] - from[i])));
    }

    /** Receives from one queue and sends to the next; the last thread verifies the messages. */
    @Contended
    private static final class Relay extends ReceivingPart {
        private final Channel to;
        private Channel.Sender sender;
        private long[] received;
        private int count;

        Relay(Channel from, Channel to) {
            super(from);
            this.to = to;
        }

        @Override
        void beginBlock() {
            if (sender == null) {
                sender = to.sender();
            }
            count = 0;
        }

        @Override
        public boolean take(long message) {
            long now = System.nanoTime();
            sender.send(message);
            if (message == Channel.END) {
                return false;
            }
            if (count < received.length) {
                received[count] = now;
            }
            count++;
            return true;
        }
    }
}
