import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BatchEventProcessorBuilder;
import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import peers.Channel;
import peers.Fan;
import peers.Group;
import peers.Row;

/** LMAX Disruptor: claimed events, read by a handler. The sender parks while the ring is full. */
public final class Disruptors implements Group {
    private static final String VERSION = "4.0.0";
    /** A reference, an event, and its entry in the table of published ones. */
    private static final int SLOT_BYTES = 32;
    /** Messages that a receiver of several takes at once, as the others in the scenario. */
    private static final int MOST = 256;

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
                usage -> new Single(ring(usage, make.get())),
                (usage, receivers, diamond) -> fan(ring(usage, make.get()), receivers, diamond));
    }

    private static RingBuffer<Event> ring(Row.Usage usage, WaitStrategy strategy) {
        return RingBuffer.createSingleProducer(Event::new, usage.capacity(), strategy);
    }

    private static Fan fan(RingBuffer<Event> ring, int receivers, boolean diamond) {
        var handled = new ArrayList<Channel.Receiver>();
        int first = diamond ? receivers - 1 : receivers;
        Sequence[] sequences = new Sequence[first];
        for (int i = 0; i < first; i++) {
            var one = new Handled(ring, ring.newBarrier(), MOST);
            sequences[i] = one.processor.getSequence();
            handled.add(one);
        }
        if (diamond) {
            var last = new Handled(ring, ring.newBarrier(sequences), MOST);
            sequences = new Sequence[] {last.processor.getSequence()};
            handled.add(last);
        }
        ring.addGatingSequences(sequences);
        return new Several(ring, handled);
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

    private record Several(RingBuffer<Event> ring, List<Channel.Receiver> receivers)
            implements Fan {
        @Override
        public Channel.Sender sender() {
            return new Publisher(ring);
        }
    }

    private record Single(RingBuffer<Event> ring, Handled handled) implements Channel {
        Single(RingBuffer<Event> ring) {
            this(ring, new Handled(ring, ring.newBarrier(), Integer.MAX_VALUE));
            ring.addGatingSequences(handled.processor.getSequence());
        }

        @Override
        public Sender sender() {
            return new Publisher(ring);
        }

        @Override
        public Receiver receiver() {
            return handled;
        }
    }

    private static final class Handled implements Channel.Receiver, EventHandler<Event> {
        private final BatchEventProcessor<Event> processor;
        private Channel.Taker taker;

        Handled(RingBuffer<Event> ring, SequenceBarrier barrier, int mostAtOnce) {
            processor = new BatchEventProcessorBuilder()
                    .setMaxBatchSize(mostAtOnce)
                    .build(ring, barrier, this);
        }

        @Override
        public void receive(Channel.Taker taker) {
            this.taker = taker;
            processor.run();
        }

        @Override
        public void onEvent(Event event, long sequence, boolean endOfBatch) {
            if (!taker.take(event.message)) {
                processor.halt();
            }
        }
    }
}
