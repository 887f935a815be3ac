package peers;

import java.util.Arrays;
import java.util.List;
import jdk.internal.vm.annotation.Contended;

/**
 * A message through one channel, its echo through the other, one under way at a time.
 *
 * <p>The first half of a block has a stamp for each round trip, the second half one for each
 * stretch of about 20 µs.
 */
final class AskReply implements Scenario {
    private static final int MOST = 1 << 20;
    private static final double STRETCH_NS = 20_000;

    private final Asker asker;
    private final Answerer answerer;

    AskReply(Channel there, Channel back) {
        asker = new Asker(there, back);
        answerer = new Answerer(there, back);
    }

    @Override
    public List<Runnable> parts() {
        return List.of(asker, answerer);
    }

    @Override
    public void begin(long lengthNs) {
        asker.lengthNs = lengthNs;
    }

    @Override
    public Answer end() {
        Scenario.verify(asker.wrong == 0 && answerer.wrong == 0, WRONG);
        Scenario.verify(asker.number == answerer.number, WRONG);
        return new Answer()
                .histogram("count", Arrays.stream(asker.times, 0, asker.stamped))
                .line("mean_ns", asker.meanNs)
                .line("checked", asker.stamped + asker.trips);
    }

    @Override
    public double figure() {
        return asker.meanNs;
    }

    @Contended
    private static final class Asker implements Runnable, Channel.Taker {
        private final Channel there;
        private final Channel back;
        private Channel.Sender sender;
        private Channel.Receiver receiver;
        private final long[] times = new long[MOST];
        private long lengthNs;
        private long half;
        private long until;

        private long number;
        private long wrong;
        /** Number of round trips until the next stamp. */
        private long left;

        private boolean stamping;
        private boolean ending;
        private int stamped;
        private long last;
        private long perStretch;
        private long trips;
        private long begun;
        private double meanNs;

        Asker(Channel there, Channel back) {
            this.there = there;
            this.back = back;
        }

        @Override
        public void run() {
            if (sender == null) {
                sender = there.sender();
                receiver = back.receiver();
            }
            stamping = true;
            ending = false;
            stamped = 0;
            trips = 0;
            left = 1;
            last = System.nanoTime();
            half = last + lengthNs / 2;
            until = last + lengthNs;
            sender.send(++number);
            receiver.receive(this);
        }

        @Override
        public boolean take(long echo) {
            if (--left > 0) {
                wrong |= echo ^ number;
                sender.send(++number);
                return true;
            }
            return stamp(echo);
        }

        private boolean stamp(long echo) {
            if (ending) {
                wrong |= echo ^ Channel.END;
                return false;
            }
            wrong |= echo ^ number;
            long now = System.nanoTime();
            left = 1;
            if (stamping) {
                times[stamped++] = Math.max(0, now - last);
                if (now >= half || stamped == MOST) {
                    stamping = false;
                    double trip = (double) (now - until + lengthNs) / stamped;
                    perStretch = (long) Math.max(1, Math.min(1000, STRETCH_NS / trip));
                    left = perStretch;
                    begun = now;
                }
                last = now;
            } else {
                trips += perStretch;
                left = perStretch;
                if (now >= until) {
                    meanNs = (double) (now - begun) / trips;
                    ending = true;
                    left = 1;
                    sender.send(Channel.END);
                    return true;
                }
            }
            sender.send(++number);
            return true;
        }
    }

    @Contended
    private static final class Answerer implements Runnable, Channel.Taker {
        private final Channel there;
        private final Channel back;
        private Channel.Sender sender;
        private Channel.Receiver receiver;
        private long number;
        private long wrong;

        Answerer(Channel there, Channel back) {
            this.there = there;
            this.back = back;
        }

        @Override
        public void run() {
            if (sender == null) {
                receiver = there.receiver();
                sender = back.sender();
            }
            receiver.receive(this);
        }

        @Override
        public boolean take(long message) {
            // Verified after the answer has left: the asker does not wait for that.
            sender.send(message);
            if (message == Channel.END) {
                return false;
            }
            wrong |= message ^ ++number;
            return true;
        }
    }
}
