package peers;

/** Numbers of messages. Those of each sender begin with 1, and its end is 0. */
final class Numbers {
    /** The sender's own number is above these bits. */
    private static final int BITS = 56;

    private Numbers() {}

    /** The end of a sender; its messages follow. */
    static long end(int sender) {
        return (long) sender << BITS;
    }

    static boolean isEnd(long message) {
        return message << (Long.SIZE - BITS) == 0;
    }

    static int sender(long message) {
        return (int) (message >>> BITS);
    }
}
