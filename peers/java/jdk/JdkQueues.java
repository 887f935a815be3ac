import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedTransferQueue;
import java.util.function.Supplier;
import jdk.internal.vm.annotation.Contended;
import peers.Channel;
import peers.Group;
import peers.Row;

/**
 * The queues of java.util.concurrent. A message is a {@code Long} of its own.
 *
 * <p>Queues and their ends have padding behind their fields. If an end shared a line with its
 * queue, or two queues did, a message's time would depend on where the collector moves them.
 */
public final class JdkQueues implements Group {
    private static final String VERSION = System.getProperty("java.version");
    /** A reference and a {@code Long}. */
    private static final int SLOT_BYTES = 28;
    private static final List<String> ALL_WAITS = List.of("poll", "poll-backoff", "block");

    @Override
    public List<Row> rows() {
        return List.of(
                new Row.Queue("java-clq", VERSION,
                        "java.util.concurrent.ConcurrentLinkedQueue",
                        0, false, false, List.of("poll", "poll-backoff"),
                        JdkQueues::openLinked),
                new Row.Queue("java-abq", VERSION,
                        "java.util.concurrent.ArrayBlockingQueue; batches by drainTo",
                        SLOT_BYTES, false, true, ALL_WAITS,
                        usage -> open(new Array(usage.capacity()), usage)),
                new Row.Queue("java-ltq", VERSION,
                        "java.util.concurrent.LinkedTransferQueue",
                        0, false, false, ALL_WAITS,
                        usage -> open(new Transfer(), usage)));
    }

    @Contended
    private static final class Linked extends ConcurrentLinkedQueue<Long> {}

    @Contended
    private static final class Array extends ArrayBlockingQueue<Long> {
        Array(int capacity) {
            super(capacity);
        }
    }

    @Contended
    private static final class Transfer extends LinkedTransferQueue<Long> {}

    private static Channel openLinked(Row.Usage usage) {
        var queue = new Linked();
        return new Ends(() -> new Polled(queue, usage.pauses()));
    }

    private static Channel open(BlockingQueue<Long> queue, Row.Usage usage) {
        int pauses = usage.pauses();
        int batch = usage.batch();
        if (usage.way().equals("block")) {
            return batch > 1
                    ? new Ends(() -> new BlockedInBatches(queue, batch))
                    : new Ends(() -> new Blocked(queue));
        }
        return batch > 1
                ? new Ends(() -> new PolledInBatches(queue, pauses, batch))
                : new Ends(() -> new Polled(queue, pauses));
    }

    private interface End extends Channel.Sender, Channel.Receiver {}

    /** A queue whose ends are of one class. */
    private record Ends(Supplier<End> make) implements Channel {
        @Override
        public Sender sender() {
            return make.get();
        }

        @Override
        public Receiver receiver() {
            return make.get();
        }
    }

    @Contended
    private static class Polled implements End {
        private final Queue<Long> queue;
        final int pauses;

        Polled(Queue<Long> queue, int pauses) {
            this.queue = queue;
            this.pauses = pauses;
        }

        @Override
        public void send(long message) {
            Long boxed = message;
            while (!queue.offer(boxed)) {
                Channel.pause(pauses);
            }
        }

        @Override
        public void receive(Channel.Taker taker) {
            for (;;) {
                Long message = queue.poll();
                if (message == null) {
                    Channel.pause(pauses);
                } else if (!taker.take(message)) {
                    return;
                }
            }
        }
    }

    private static final class PolledInBatches extends Polled {
        private final BlockingQueue<Long> queue;
        private final int most;

        PolledInBatches(BlockingQueue<Long> queue, int pauses, int most) {
            super(queue, pauses);
            this.queue = queue;
            this.most = most;
        }

        @Override
        public void receive(Channel.Taker taker) {
            var batch = new Batch(queue, most);
            for (boolean more = true; more; ) {
                if (batch.drain()) {
                    more = batch.hand(taker);
                } else {
                    Channel.pause(pauses);
                }
            }
        }
    }

    @Contended
    private static class Blocked implements End {
        final BlockingQueue<Long> queue;

        Blocked(BlockingQueue<Long> queue) {
            this.queue = queue;
        }

        @Override
        public void send(long message) {
            try {
                queue.put(message);
            } catch (InterruptedException nobody) {
                throw new IllegalStateException(nobody);
            }
        }

        @Override
        public void receive(Channel.Taker taker) {
            while (taker.take(take())) {
                // The next one.
            }
        }

        final Long take() {
            try {
                return queue.take();
            } catch (InterruptedException nobody) {
                throw new IllegalStateException(nobody);
            }
        }
    }

    private static final class BlockedInBatches extends Blocked {
        private final int most;

        BlockedInBatches(BlockingQueue<Long> queue, int most) {
            super(queue);
            this.most = most;
        }

        /** The first of a batch is waited for and handed over before the others are taken. */
        @Override
        public void receive(Channel.Taker taker) {
            var batch = new Batch(queue, most - 1);
            boolean more = true;
            while (more) {
                more = taker.take(take());
                batch.drain();
                more &= batch.hand(taker);
            }
        }
    }

    /** Messages taken by one call. */
    @Contended
    private static final class Batch {
        private final BlockingQueue<Long> queue;
        private final int most;
        private final ArrayList<Long> taken;

        Batch(BlockingQueue<Long> queue, int most) {
            this.queue = queue;
            this.most = most;
            taken = new ArrayList<>(most);
        }

        /** Returns false if there was none. */
        boolean drain() {
            return queue.drainTo(taken, most) > 0;
        }

        /** Returns false if the last message of a block was among them. */
        boolean hand(Channel.Taker taker) {
            boolean more = true;
            for (int i = 0; i < taken.size(); i++) {
                more &= taker.take(taken.get(i));
            }
            taken.clear();
            return more;
        }
    }
}
