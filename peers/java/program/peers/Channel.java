package peers;

/** A queue under test. */
public interface Channel {
    /** Ends a block; messages are numbered from 1. */
    long END = 0;

    /** Makes the end of one sender; called once on each sender's thread. */
    Sender sender();

    /** Makes the end of one receiver; called once on each receiver's thread. */
    Receiver receiver();

    /** Executes pause hints. */
    static void pause(int times) {
        for (int i = 0; i < times; i++) {
            Thread.onSpinWait();
        }
    }

    /** Sends in the row's way of waiting while the queue is full. */
    interface Sender {
        void send(long message);

        /** Sends messages that count up, with the queue's calls for many. */
        default void sendMany(long first, int count) {
            for (int i = 0; i < count; i++) {
                send(first + i);
            }
        }
    }

    /** Receives in the row's way of waiting while the queue is empty. */
    interface Receiver {
        /**
         * Hands over messages until {@code taker} returns false. What is in the queue then is for
         * other receivers, unless the queue is used in turns.
         */
        void receive(Taker taker);
    }

    /** Takes messages. */
    interface Taker {
        /** Returns false if this is the last message of a block, or of a turn. */
        boolean take(long message);
    }
}
