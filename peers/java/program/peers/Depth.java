package peers;

import java.util.Arrays;
import java.util.List;
import java.util.function.IntFunction;
import jdk.internal.vm.annotation.Contended;

/**
 * A queue that holds many messages. The two ends take turns, so the calls never meet: they are as
 * cheap as the queue's memory allows. Each block has a queue of its own.
 */
final class Depth implements Rehearsed {
    /** Turns of each end in a block. */
    private static final int TURNS = 128;
    private static final int MOST_CALLS = 128;
    private static final int QUICK_DEPTH = 1024;
    /** About the time per message to fill and drain a queue. */
    private static final long FILL_NS = 40;

    private final IntFunction<Channel> opener;
    private final int capacity;
    private final int depth;
    private final Turn turn = new Turn();
    private final Sending sending;
    private final Receiving receiving;
    private boolean quick;

    /**
     * @param opener opens a queue of a capacity, to be used in turns
     * @param capacity 0 if the queue is unbounded
     */
    Depth(IntFunction<Channel> opener, int capacity, int depth) {
        this.opener = opener;
        this.capacity = capacity;
        this.depth = depth;
        sending = new Sending(turn, calls(depth));
        receiving = new Receiving(turn, calls(depth));
    }

    /** Messages of each turn: so few that most turns need no new memory. */
    static int calls(int depth) {
        return Math.min(depth, MOST_CALLS);
    }

    @Override
    public List<Runnable> parts() {
        return List.of(sending, receiving);
    }

    @Override
    public void rehearse(boolean quick) {
        this.quick = quick;
    }

    @Override
    public long leastNs(long lengthNs, long seed) {
        return depth * FILL_NS;
    }

    @Override
    public void begin(long lengthNs, long seed) {
        int now = quick ? Math.min(depth, QUICK_DEPTH) : depth;
        // Or a rehearsal would fill a large ring with events again and again.
        Channel channel = opener.apply(quick ? Math.min(capacity, 2 * QUICK_DEPTH) : capacity);
        turn.at = 0;
        sending.begin(channel, now);
        receiving.begin(channel, now);
    }

    @Override
    public Answer end() {
        Scenario.verify(receiving.wrong == 0, WRONG);
        Scenario.verifyCount(receiving.number, sending.number);
        sending.channel = null;
        receiving.channel = null;
        return new Answer()
                .line("count", TURNS * calls(depth))
                .line("send_ns", sending.medianNs())
                .line("receive_ns", receiving.medianNs())
                .line("elapsed_ns", receiving.drained - sending.begun)
                .line("checked", receiving.number);
    }

    @Override
    public double figure() {
        return sending.medianNs() + receiving.medianNs();
    }

    /** The turn under way: even ones are the sender's, odd ones the receiver's. */
    @Contended
    private static final class Turn {
        private static final int LOOKS = 256;
        private volatile int at;

        void await(int turn) {
            for (int looks = 1; at < turn; looks++) {
                if (looks % LOOKS == 0) {
                    Thread.yield();
                } else {
                    Thread.onSpinWait();
                }
            }
        }
    }

    /** An end of the queue. */
    @Contended
    private abstract static class End implements Runnable {
        private final Turn turn;
        private final int first;
        private final long[] stretches = new long[TURNS];
        final int calls;
        Channel channel;
        int depth;
        long number;

        End(Turn turn, int first, int calls) {
            this.turn = turn;
            this.first = first;
            this.calls = calls;
        }

        void begin(Channel channel, int depth) {
            this.channel = channel;
            this.depth = depth;
            number = 0;
        }

        /** Has a stamp before and after the calls of each turn. */
        final void takeTurns() {
            for (int i = 0; i < TURNS; i++) {
                int own = first + 2 * i;
                turn.await(own);
                long begin = System.nanoTime();
                call(calls);
                stretches[i] = System.nanoTime() - begin;
                turn.at = own + 1;
            }
        }

        /** Sends or receives. */
        abstract void call(int count);

        /** Of a call. */
        final double medianNs() {
            return Scenario.median(Arrays.stream(stretches).asDoubleStream().toArray()) / calls;
        }
    }

    @Contended
    private static final class Sending extends End {
        private Channel.Sender sender;
        private long begun;

        Sending(Turn turn, int calls) {
            super(turn, 0, calls);
        }

        @Override
        public void run() {
            sender = channel.sender();
            begun = System.nanoTime();
            call(depth);
            takeTurns();
            sender = null;
        }

        @Override
        void call(int count) {
            for (int i = 1; i <= count; i++) {
                sender.send(number + i);
            }
            number += count;
        }
    }

    @Contended
    private static final class Receiving extends End implements Channel.Taker {
        private Channel.Receiver receiver;
        private int left;
        private long wrong;
        private long drained;

        Receiving(Turn turn, int calls) {
            super(turn, 1, calls);
        }

        @Override
        public void run() {
            receiver = channel.receiver();
            takeTurns();
            call(depth);
            drained = System.nanoTime();
            receiver = null;
        }

        @Override
        void call(int count) {
            left = count;
            receiver.receive(this);
        }

        @Override
        public boolean take(long message) {
            wrong |= message ^ ++number;
            return --left > 0;
        }
    }
}
