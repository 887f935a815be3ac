import java.util.List;
import java.util.function.IntFunction;
import jdk.internal.vm.annotation.Contended;
import org.jctools.queues.MessagePassingQueue;
import org.jctools.queues.MpscArrayQueue;
import org.jctools.queues.MpscBlockingConsumerArrayQueue;
import org.jctools.queues.MpscUnboundedArrayQueue;
import org.jctools.queues.SpscArrayQueue;
import org.jctools.queues.SpscUnboundedArrayQueue;
import peers.Channel;
import peers.Group;
import peers.Row;

/**
 * Queues of JCTools, by the relaxed calls that its authors advise for loops; batches by
 * {@code fill} and {@code drain}. A message is a {@code Long} of its own.
 */
public final class JctoolsQueues implements Group {
    private static final String VERSION = "4.0.5";
    /** A reference and a {@code Long}. */
    private static final int SLOT_BYTES = 28;
    /** Number of messages in a chunk of an unbounded queue. */
    private static final int CHUNK = 1024;
    private static final List<String> POLLED = List.of("poll", "poll-backoff");

    @Override
    public List<Row> rows() {
        return List.of(
                bounded("spsc-bounded", "SpscArrayQueue", SpscArrayQueue::new),
                unbounded("spsc-unbounded", "SpscUnboundedArrayQueue",
                        SpscUnboundedArrayQueue::new),
                bounded("mpsc-bounded", "MpscArrayQueue", MpscArrayQueue::new),
                unbounded("mpsc-unbounded", "MpscUnboundedArrayQueue",
                        MpscUnboundedArrayQueue::new),
                new Row.Queue("jctools-mpsc-blocking", VERSION,
                        "JCTools MpscBlockingConsumerArrayQueue; senders spin while it is full",
                        SLOT_BYTES, true, false, List.of("block"),
                        usage -> new Blocking(usage.capacity())));
    }

    private interface Make extends IntFunction<MessagePassingQueue<Long>> {}

    private static Row bounded(String name, String queue, Make make) {
        return new Row.Queue("jctools-" + name, VERSION, "JCTools " + queue,
                SLOT_BYTES, true, true, POLLED, usage -> open(make.apply(usage.capacity()), usage));
    }

    private static Row unbounded(String name, String queue, Make make) {
        String sentence = "JCTools " + queue + ", chunks of " + CHUNK;
        return new Row.Queue("jctools-" + name, VERSION, sentence,
                0, false, true, POLLED, usage -> open(make.apply(CHUNK), usage));
    }

    private static Channel open(MessagePassingQueue<Long> queue, Row.Usage usage) {
        return usage.batch() > 1
                ? new InBatches(queue, usage.pauses(), usage.batch())
                : new OneByOne(queue, usage.pauses());
    }

    private record OneByOne(MessagePassingQueue<Long> queue, int pauses) implements Channel {
        @Override
        public Sender sender() {
            return message -> {
                Long boxed = message;
                while (!queue.relaxedOffer(boxed)) {
                    Channel.pause(pauses);
                }
            };
        }

        @Override
        public Receiver receiver() {
            return taker -> {
                for (;;) {
                    Long message = queue.relaxedPoll();
                    if (message == null) {
                        Channel.pause(pauses);
                    } else if (!taker.take(message)) {
                        return;
                    }
                }
            };
        }
    }

    private record InBatches(MessagePassingQueue<Long> queue, int pauses, int batch)
            implements Channel {
        @Override
        public Sender sender() {
            return new Filling(queue, pauses);
        }

        @Override
        public Receiver receiver() {
            return taker -> {
                var draining = new Draining(taker);
                while (draining.more) {
                    if (queue.drain(draining, batch) == 0) {
                        Channel.pause(pauses);
                    }
                }
            };
        }
    }

    @Contended
    private static final class Filling
            implements Channel.Sender, MessagePassingQueue.Supplier<Long> {
        private final MessagePassingQueue<Long> queue;
        private final int pauses;
        private long next;

        Filling(MessagePassingQueue<Long> queue, int pauses) {
            this.queue = queue;
            this.pauses = pauses;
        }

        @Override
        public void send(long message) {
            sendMany(message, 1);
        }

        @Override
        public void sendMany(long first, int count) {
            next = first;
            long end = first + count;
            while (next < end) {
                if (queue.fill(this, (int) (end - next)) == 0) {
                    Channel.pause(pauses);
                }
            }
        }

        @Override
        public Long get() {
            return next++;
        }
    }

    @Contended
    private static final class Draining implements MessagePassingQueue.Consumer<Long> {
        private final Channel.Taker taker;
        private boolean more = true;

        Draining(Channel.Taker taker) {
            this.taker = taker;
        }

        @Override
        public void accept(Long message) {
            if (!taker.take(message)) {
                more = false;
            }
        }
    }

    private record Blocking(MpscBlockingConsumerArrayQueue<Long> queue) implements Channel {
        Blocking(int capacity) {
            this(new MpscBlockingConsumerArrayQueue<>(capacity));
        }

        @Override
        public Sender sender() {
            return message -> {
                Long boxed = message;
                while (!queue.offer(boxed)) {
                    Thread.onSpinWait();
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
}
