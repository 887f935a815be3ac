package peers;

/** A queue under test. */
public interface Channel {
    /** Ends a block; messages are numbered from 1. */
    long END = 0;

    /** Makes the sending end; called once on the sender's thread. */
    Sender sender();

    /** Makes the receiving end; called once on the receiver's thread. */
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
        /** Hands over messages until {@code taker} returns false. */
        void receive(Taker taker);
    }

    /** Takes messages. */
    interface Taker {
        /** Returns false if this is the last message of a block. */
        boolean take(long message);
    }
}
