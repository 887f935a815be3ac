package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/** A queue that is asked for, and the keys that each of its scenarios has. */
final class QueueRequest {
    private static final int MOST_CAPACITY = 1 << 26;
    /** Most senders, receivers or hops. */
    private static final int MOST_THREADS = 64;
    /** Most memory that a message takes in a queue. */
    private static final long MESSAGE_BYTES = 64;

    private static final List<Kind> SCENARIOS = List.of(
            new Kind("ask-reply", false, QueueRequest::askReply),
            new Kind("stream", false, QueueRequest::stream),
            new Kind("open-loop", false, QueueRequest::openLoop),
            new Kind("burst", false, QueueRequest::burst),
            new Kind("workers", false, QueueRequest::workers),
            new Kind("chain", false, QueueRequest::chain),
            new Kind("depth", false, QueueRequest::depth),
            new Kind("funnel", true, QueueRequest::funnel),
            new Kind("flood", true, QueueRequest::flood));

    /** A scenario, which may need a queue with many senders. */
    private record Kind(
            String name, boolean manySenders, Function<QueueRequest, Scenario> make) {
        boolean suits(Row.Queue row) {
            return !manySenders || row.ends().manySenders();
        }
    }

    private final Row.Queue row;
    private final Keys keys;
    private final String wait;
    private final int capacity;

    QueueRequest(Row.Queue row, Keys keys) {
        this.row = row;
        this.keys = keys;
        wait = keys.text("wait");
        require(row.waits().contains(wait), row.name() + " has no wait=" + wait);
        capacity = row.slotBytes() > 0 ? (int) keys.number("capacity", 1, MOST_CAPACITY) : 0;
        require(!row.powerOfTwo() || Integer.bitCount(capacity) == 1,
                "capacity=" + capacity + " is impossible: " + row.name() + " takes powers of two");
        keys.number("payload_bytes", 8, 8, 8);
    }

    private static void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new IllegalArgumentException(otherwise);
        }
    }

    /** The scenarios of a queue. */
    static List<String> scenarios(Row.Queue row) {
        return SCENARIOS.stream().filter(kind -> kind.suits(row)).map(Kind::name).toList();
    }

    /** Makes a scenario; whatever keys are left do not apply to it. */
    Scenario scenario(String name) {
        for (Kind kind : SCENARIOS) {
            if (kind.name.equals(name) && kind.suits(row)) {
                return kind.make.apply(this);
            }
        }
        throw new IllegalArgumentException(name + " is not a scenario of " + row.name());
    }

    private Scenario askReply() {
        List<Channel> both = open(single(), 2);
        return new AskReply(both.get(0), both.get(1));
    }

    private Scenario stream() {
        int batch = (int) keys.number("batch", 1, 1, row.batches() ? 1 << 16 : 1);
        require(row.slotBytes() == 0 || batch <= capacity,
                "batch=" + batch + " is impossible: it is larger than the queue");
        int senders = senders(1, row.ends().manySenders() ? MOST_THREADS : 1);
        return new Stream(open(usage(batch, senders)), senders, batch);
    }

    private Scenario openLoop() {
        double gapNs = 1e9 / ratePerS();
        boolean poisson = arrivals("uniform", "poisson").equals("poisson");
        return new Paced(open(single()), Schedule.openLoop(gapNs, poisson));
    }

    private Scenario burst() {
        int burst = (int) keys.number("burst", 1, Schedule.MOST / 3);
        long gapNs = keys.number("gap_ns", 1, 60_000_000_000L);
        return new Bursts(open(single()), burst, gapNs);
    }

    private Scenario workers() {
        int receivers = (int) keys.number("receivers", 1, MOST_THREADS);
        return row.ends().manyReceivers()
                ? Workers.sharing(open(single()), receivers)
                : Workers.bundle(open(single(), receivers));
    }

    private Scenario chain() {
        double gapNs = 1e9 / ratePerS();
        arrivals("uniform");
        int hops = (int) keys.number("hops", 1, MOST_THREADS);
        return new Chain(open(single(), hops), Schedule.openLoop(gapNs, false));
    }

    private Scenario depth() {
        int depth = (int) keys.number("depth", 1, MOST_CAPACITY);
        int room = depth + Depth.calls(depth);
        require(capacity == 0 || room <= capacity,
                "capacity=" + capacity + " is impossible: depth=" + depth + " needs " + room);
        require(depth * MESSAGE_BYTES <= Runtime.getRuntime().maxMemory(),
                "depth=" + depth + " is impossible: its messages may not fit into the heap");
        Row.Usage usage = single().takingTurns();
        return new Depth(most -> row.opener().open(usage.holding(most)), capacity, depth);
    }

    private Scenario funnel() {
        double ratePerS = ratePerS();
        arrivals("poisson");
        int senders = senders(1, MOST_THREADS);
        int important = (int) keys.number("important", 1, senders);
        return new Funnel(open(single(senders)), senders, important, ratePerS);
    }

    private Scenario flood() {
        double ratePerS = ratePerS();
        arrivals("poisson");
        return new Flood(open(single(senders(2, 2))), ratePerS);
    }

    private double ratePerS() {
        return keys.number("rate_per_s", 1, 100_000_000);
    }

    private String arrivals(String... known) {
        String arrivals = keys.text("arrivals");
        require(List.of(known).contains(arrivals), "arrivals=" + arrivals + " does not apply here");
        return arrivals;
    }

    private int senders(int least, int most) {
        return (int) keys.number("senders", least, least, most);
    }

    /** Single messages of one sender. */
    private Row.Usage single() {
        return single(senders(1, 1));
    }

    /** Single messages. */
    private Row.Usage single(int senders) {
        return usage((int) keys.number("batch", 1, 1, 1), senders);
    }

    private Row.Usage usage(int batch, int senders) {
        return new Row.Usage(wait, capacity, batch, senders, false);
    }

    private Channel open(Row.Usage usage) {
        return row.opener().open(usage);
    }

    /** Opens several that do not share a cache line. */
    private List<Channel> open(Row.Usage usage, int count) {
        var all = new ArrayList<Channel>();
        for (int i = 0; i < count; i++) {
            all.add(new Apart(open(usage), new byte[1024]));
        }
        return all;
    }

    /** A queue and what keeps the next one apart. */
    private record Apart(Channel channel, byte[] space) implements Channel {
        @Override
        public Sender sender() {
            return channel.sender();
        }

        @Override
        public Receiver receiver() {
            return channel.receiver();
        }
    }
}
