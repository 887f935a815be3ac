package peers;

import java.io.Closeable;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongFunction;

/** A peer that is ready to be measured: answers the length of a block with its figures. */
public final class Bench implements LongFunction<String>, Closeable {
    /** Compiled code is entered at the beginning of a block, so there are many at first. */
    private static final long SHORT_BLOCK_NS = 2_000_000;
    private static final long SHORT_BLOCKS_NS = 1_000_000_000;
    private static final long WARM_BLOCK_NS = 20_000_000;
    private static final long MOST_WARM_UP_NS = 8_000_000_000L;
    /** Medians of this number of blocks are compared. */
    private static final int LEVEL = 10;
    /** Comparisons in a row that find no change. */
    private static final int LEVELS = 2;
    private static final double LEVEL_WITHIN = 0.05;
    private static final int MOST_CAPACITY = 1 << 26;
    private static final int MOST_RECEIVERS = 64;

    private final Scenario scenario;
    private final Crew crew;
    private final Pool pool;

    /** Prepares what a line asks for. */
    public Bench(String group, String line) throws Exception {
        var peers = (Group) Class.forName(group, true, Bench.class.getClassLoader())
                .getConstructor()
                .newInstance();
        String[] words = line.split("\\s+");
        int names = words.length > 1 && words[1].equals("queue") ? 4 : 3;
        if (words.length < names) {
            throw new IllegalArgumentException("prepare needs a kind and a name");
        }
        var keys = new Keys(Arrays.copyOfRange(words, names, words.length));
        int[] cpus = keys.cpus();
        if (words[1].equals("contention")) {
            if (!words[2].equals("pool")) {
                throw new IllegalArgumentException(
                        words[2] + " is not a scenario of this program");
            }
            find(peers, Row.Pool.class, null);
            scenario = null;
            crew = null;
            pool = new Pool(keys, cpus);
            return;
        }
        pool = null;
        switch (words[1]) {
            case "queue" -> {
                Row.Queue row = find(peers, Row.Queue.class, words[2]);
                scenario = queue(row, words[3], keys);
            }
            case "latency" -> {
                Row.Mechanism row = find(peers, Row.Mechanism.class, words[2]);
                var usage = new Row.Usage("poll", 1, 1);
                scenario = new AskReply(row.there().open(usage), row.back().open(usage));
            }
            default -> throw new IllegalArgumentException("“" + words[1] + "” cannot be prepared");
        }
        keys.finish();
        crew = new Crew(scenario.parts(), cpus);
        try {
            warmUp();
        } catch (RuntimeException failure) {
            crew.close();
            throw failure;
        }
    }

    private static <T extends Row> T find(Group peers, Class<T> kind, String name) {
        for (Row row : peers.rows()) {
            if (kind.isInstance(row) && (name == null || row.name().equals(name))) {
                return kind.cast(row);
            }
        }
        String wanted = name == null ? "a pool" : name;
        throw new IllegalArgumentException(wanted + " is not a peer of this program");
    }

    private static Scenario queue(Row.Queue row, String scenario, Keys keys) {
        String wait = keys.text("wait");
        require(row.waits().contains(wait), row.name() + " has no wait=" + wait);
        int capacity = row.slotBytes() > 0 ? (int) keys.number("capacity", 1, MOST_CAPACITY) : 0;
        require(!row.powerOfTwo() || Integer.bitCount(capacity) == 1,
                "capacity=" + capacity + " is impossible: " + row.name() + " takes powers of two");
        switch (scenario) {
            case "ask-reply":
                var single = new Row.Usage(wait, capacity, 1);
                return new AskReply(apart(row, single), apart(row, single));
            case "stream":
                var stream = new Row.Usage(wait, capacity, batch(row, capacity, keys));
                return new Stream(row.opener().open(stream), stream.batch());
            case "broadcast":
                require(row.fans() != null, "broadcast is not a scenario of " + row.name());
                var fan = new Row.Usage(wait, capacity, batch(row, capacity, keys));
                int receivers = (int) keys.number("receivers", 1, MOST_RECEIVERS);
                String graph = keys.text("graph");
                require(List.of("fan-out", "diamond").contains(graph), graph + " is not a graph");
                boolean diamond = graph.equals("diamond");
                require(!diamond || receivers > 2, "a diamond has at least three receivers");
                return new Broadcast(row.fans().open(fan, receivers, diamond), fan.batch());
            default:
                throw new IllegalArgumentException(
                        scenario + " is not a scenario of " + row.name());
        }
    }

    private static int batch(Row.Queue row, int capacity, Keys keys) {
        int batch = (int) keys.number("batch", 1, 1, row.batches() ? 1 << 16 : 1);
        require(row.slotBytes() == 0 || batch <= capacity,
                "batch=" + batch + " is impossible: it is larger than the queue");
        return batch;
    }

    private static void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new IllegalArgumentException(otherwise);
        }
    }

    private static Channel apart(Row.Queue row, Row.Usage usage) {
        return new Apart(row.opener().open(usage), new byte[1024]);
    }

    /** A queue, and memory that keeps the next one off its cache lines. */
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

    /** Runs blocks until their figures have levelled off and nothing was compiled meanwhile. */
    private void warmUp() {
        CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        long began = System.nanoTime();
        while (System.nanoTime() - began < SHORT_BLOCKS_NS) {
            run(SHORT_BLOCK_NS);
        }
        double before = Double.NaN;
        long compiledBefore = -1;
        int levels = 0;
        while (levels < LEVELS && System.nanoTime() - began < MOST_WARM_UP_NS) {
            double[] figures = new double[LEVEL];
            for (int i = 0; i < LEVEL; i++) {
                run(WARM_BLOCK_NS);
                figures[i] = scenario.figure();
            }
            double now = Scenario.median(figures);
            long compiled = compiler.getTotalCompilationTime();
            boolean level = Math.abs(now / before - 1) <= LEVEL_WITHIN;
            levels = level && compiled == compiledBefore ? levels + 1 : 0;
            before = now;
            compiledBefore = compiled;
        }
    }

    private Answer run(long lengthNs) {
        scenario.begin(lengthNs);
        crew.work();
        return scenario.end();
    }

    @Override
    public String apply(long lengthNs) {
        return (pool != null ? pool.run() : run(lengthNs)) + "end";
    }

    @Override
    public void close() {
        if (pool != null) {
            pool.close();
        } else {
            crew.close();
        }
    }
}
