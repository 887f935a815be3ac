import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedTransferQueue;
import peers.Channel;
import peers.Group;
import peers.Row;

/** The queues of java.util.concurrent. A message is a {@code Long} of its own. */
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
                        Row.Ends.MPMC, 0, false, false, List.of("poll", "poll-backoff"),
                        usage -> new Polled(new ConcurrentLinkedQueue<>(), usage.pauses())),
                new Row.Queue("java-abq", VERSION,
                        "java.util.concurrent.ArrayBlockingQueue; batches by drainTo",
                        Row.Ends.MPMC, SLOT_BYTES, false, true, ALL_WAITS,
                        usage -> open(new ArrayBlockingQueue<>(usage.capacity()), usage)),
                new Row.Queue("java-ltq", VERSION,
                        "java.util.concurrent.LinkedTransferQueue",
                        Row.Ends.MPMC, 0, false, false, ALL_WAITS,
                        usage -> open(new LinkedTransferQueue<>(), usage)));
    }

    private static Channel open(BlockingQueue<Long> queue, Row.Usage usage) {
        if (usage.way().equals("block")) {
            return usage.batch() > 1
                    ? new BlockedInBatches(queue, usage.batch())
                    : new Blocked(queue);
        }
        return usage.batch() > 1
                ? new PolledInBatches(queue, usage.pauses(), usage.batch())
                : new Polled(queue, usage.pauses());
    }

    private record Polled(Queue<Long> queue, int pauses) implements Channel {
        @Override
        public Sender sender() {
            return message -> {
                Long boxed = message;
                while (!queue.offer(boxed)) {
                    Channel.pause(pauses);
                }
            };
        }

        @Override
        public Receiver receiver() {
            return taker -> {
                for (;;) {
                    Long message = queue.poll();
                    if (message == null) {
                        Channel.pause(pauses);
                    } else if (!taker.take(message)) {
                        return;
                    }
                }
            };
        }
    }

    private record PolledInBatches(BlockingQueue<Long> queue, int pauses, int batch)
            implements Channel {
        @Override
        public Sender sender() {
            return new Polled(queue, pauses).sender();
        }

        @Override
        public Receiver receiver() {
            var taken = new ArrayList<Long>(batch);
            return taker -> {
                for (boolean more = true; more; ) {
                    if (queue.drainTo(taken, batch) == 0) {
                        Channel.pause(pauses);
                        continue;
                    }
                    more = hand(taken, taker);
                }
            };
        }
    }

    private record Blocked(BlockingQueue<Long> queue) implements Channel {
        @Override
        public Sender sender() {
            return message -> {
                try {
                    queue.put(message);
                } catch (InterruptedException nobody) {
                    throw new IllegalStateException(nobody);
                }
            };
        }

        @Override
        public Receiver receiver() {
            return taker -> {
                try {
                    while (taker.take(queue.take())) {
                        // The next one.
                    }
                } catch (InterruptedException nobody) {
                    throw new IllegalStateException(nobody);
                }
            };
        }
    }

    private record BlockedInBatches(BlockingQueue<Long> queue, int batch) implements Channel {
        @Override
        public Sender sender() {
            return new Blocked(queue).sender();
        }

        @Override
        public Receiver receiver() {
            var taken = new ArrayList<Long>(batch);
            return taker -> {
                try {
                    do {
                        taken.add(queue.take());
                        queue.drainTo(taken, batch - 1);
                    } while (hand(taken, taker));
                } catch (InterruptedException nobody) {
                    throw new IllegalStateException(nobody);
                }
            };
        }
    }

    private static boolean hand(ArrayList<Long> messages, Channel.Taker taker) {
        boolean more = true;
        for (int i = 0; i < messages.size(); i++) {
            more &= taker.take(messages.get(i));
        }
        messages.clear();
        return more;
    }
}
