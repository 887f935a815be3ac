import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import peers.Channel;
import peers.Group;
import peers.Row;

/**
 * The Java programs of M. Thompson's articles on Mechanical Sympathy: "Inter Thread Latency"
 * (August 2011) and "Locks & Condition Variables - Latency Impact" (November 2011).
 */
public final class Thompson implements Group {
    private static final String VERSION = System.getProperty("java.version");

    @Override
    public List<Row> rows() {
        var lock = new ReentrantLock();
        return List.of(
                new Row.Mechanism("java-volatile", VERSION,
                        "two adjacent volatile longs, each written by one thread", "spin",
                        usage -> new Ping(), usage -> new Pong()),
                new Row.Mechanism("java-condition", VERSION,
                        "one ReentrantLock with two Conditions, signalled while it is held",
                        "sleep", usage -> new Signalled(lock), usage -> new Signalled(lock)));
    }

    // Side by side, as in the article: the two share a cache line.
    private static volatile long ping;
    private static volatile long pong;

    private static final class Ping implements Channel {
        @Override
        public Sender sender() {
            return message -> ping = message;
        }

        @Override
        public Receiver receiver() {
            return taker -> {
                // The last message of the block before, which was its end.
                long last = END;
                do {
                    long now;
                    do {
                        now = ping;
                    } while (now == last);
                    last = now;
                } while (taker.take(last));
            };
        }
    }

    private static final class Pong implements Channel {
        @Override
        public Sender sender() {
            return message -> pong = message;
        }

        @Override
        public Receiver receiver() {
            return taker -> {
                long last = END;
                do {
                    long now;
                    do {
                        now = pong;
                    } while (now == last);
                    last = now;
                } while (taker.take(last));
            };
        }
    }

    private static final class Signalled implements Channel {
        private final Lock lock;
        private final Condition changed;
        private long value = END;

        Signalled(Lock lock) {
            this.lock = lock;
            changed = lock.newCondition();
        }

        @Override
        public Sender sender() {
            return message -> {
                lock.lock();
                try {
                    value = message;
                    changed.signal();
                } finally {
                    lock.unlock();
                }
            };
        }

        @Override
        public Receiver receiver() {
            return taker -> {
                long last = END;
                do {
                    last = next(last);
                } while (taker.take(last));
            };
        }

        private long next(long last) {
            lock.lock();
            try {
                while (value == last) {
                    changed.awaitUninterruptibly();
                }
                return value;
            } finally {
                lock.unlock();
            }
        }
    }
}
