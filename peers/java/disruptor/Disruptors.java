import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BatchEventProcessorBuilder;
import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;
import java.util.List;
import java.util.function.Supplier;
import peers.Channel;
import peers.Group;
import peers.Row;

/** LMAX Disruptor: claimed events, read by a handler. The sender parks while the ring is full. */
public final class Disruptors implements Group {
    private static final String VERSION = "4.0.0";
    /** A reference, an event, and its entry in the table of published ones. */
    private static final int SLOT_BYTES = 32;

    @Override
    public List<Row> rows() {
        return List.of(
                row("busy-spin", "BusySpinWaitStrategy", "poll", BusySpinWaitStrategy::new),
                row("yielding", "YieldingWaitStrategy", "block", YieldingWaitStrategy::new),
                row("blocking", "BlockingWaitStrategy", "block", BlockingWaitStrategy::new));
    }

    private static Row row(
            String name, String strategy, String wait, Supplier<WaitStrategy> make) {
        return new Row.Queue("disruptor-" + name, VERSION, "LMAX Disruptor, " + strategy,
                SLOT_BYTES, true, true, List.of(wait),
                usage -> open(usage, make.get()));
    }

    private static Channel open(Row.Usage usage, WaitStrategy strategy) {
        return new Handled(RingBuffer.createSingleProducer(
                Event::new, usage.capacity(), strategy));
    }

    /** A message in the ring, written again and again. */
    private static final class Event {
        private long message;
    }

    private record Publisher(RingBuffer<Event> ring) implements Channel.Sender {
        @Override
        public void send(long message) {
            long sequence = ring.next();
            ring.get(sequence).message = message;
            ring.publish(sequence);
        }

        @Override
        public void sendMany(long first, int count) {
            long last = ring.next(count);
            long begin = last - count + 1;
            for (long sequence = begin; sequence <= last; sequence++) {
                ring.get(sequence).message = first + (sequence - begin);
            }
            ring.publish(begin, last);
        }
    }

    private static final class Handled implements Channel, EventHandler<Event> {
        private final RingBuffer<Event> ring;
        private final BatchEventProcessor<Event> processor;
        private Taker taker;

        Handled(RingBuffer<Event> ring) {
            this.ring = ring;
            processor = new BatchEventProcessorBuilder().build(ring, ring.newBarrier(), this);
            ring.addGatingSequences(processor.getSequence());
        }

        @Override
        public Sender sender() {
            return new Publisher(ring);
        }

        @Override
        public Receiver receiver() {
            return taker -> {
                this.taker = taker;
                processor.run();
            };
        }

        @Override
        public void onEvent(Event event, long sequence, boolean endOfBatch) {
            if (!taker.take(event.message)) {
                processor.halt();
            }
        }
    }
}
