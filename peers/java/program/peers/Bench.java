package peers;

import java.io.Closeable;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
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

    private final Scenario scenario;
    private final Crew crew;
    private final Pool pool;
    private long seed;
    private byte[] between;

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
            require(words[2].equals("pool"), words[2] + " is not a scenario of this program");
            find(peers, Row.Pool.class, null);
            scenario = null;
            crew = null;
            pool = new Pool(keys, cpus);
            return;
        }
        pool = null;
        switch (words[1]) {
            case "queue" -> scenario =
                    queue(find(peers, Row.Queue.class, words[2]), words[3], keys);
            case "latency" -> scenario =
                    latency(find(peers, Row.Mechanism.class, words[2]), keys);
            default -> throw new IllegalArgumentException("“" + words[1] + "” cannot be prepared");
        }
        crew = new Crew(scenario.parts(), places(cpus, scenario.parts().size()));
        try {
            warmUp();
        } catch (RuntimeException failure) {
            crew.close();
            throw failure;
        }
    }

    private static void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new IllegalArgumentException(otherwise);
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

    private Scenario queue(Row.Queue row, String scenario, Keys keys) {
        String wait = keys.text("wait");
        require(row.waits().contains(wait), row.name() + " has no wait=" + wait);
        int capacity = row.slotBytes() > 0 ? (int) keys.number("capacity", 1, 1 << 26) : 0;
        require(!row.powerOfTwo() || Integer.bitCount(capacity) == 1,
                "capacity=" + capacity + " is impossible: " + row.name() + " takes powers of two");
        boolean streams = scenario.equals("stream");
        int batch = (int) keys.number("batch", 1, 1, streams && row.batches() ? 1 << 16 : 1);
        int senders = (int) keys.number("senders", 1, 1, streams && row.manySenders() ? 64 : 1);
        keys.number("payload_bytes", 8, 8, 8);
        seed = keys.number("seed", 0, 0, Long.MAX_VALUE);
        var usage = new Row.Usage(wait, capacity, batch, senders);
        switch (scenario) {
            case "ask-reply" -> {
                keys.finish();
                Channel there = row.opener().open(usage);
                // Or the two queues would share a cache line.
                between = new byte[1024];
                return new AskReply(there, row.opener().open(usage));
            }
            case "stream" -> {
                keys.finish();
                require(row.slotBytes() == 0 || batch <= capacity,
                        "batch=" + batch + " is impossible: it is larger than the queue");
                return new Stream(row.opener().open(usage), senders, batch);
            }
            case "open-loop" -> {
                double gapNs = 1e9 / keys.number("rate_per_s", 1, 100_000_000);
                String arrivals = keys.text("arrivals");
                boolean poisson = arrivals.equals("poisson");
                require(poisson || arrivals.equals("uniform"),
                        "arrivals=" + arrivals + " is not known");
                keys.finish();
                return new Paced(row.opener().open(usage), Paced.openLoop(gapNs, poisson), false);
            }
            case "burst" -> {
                int burst = (int) keys.number("burst", 1, Paced.MOST / 3);
                long gapNs = keys.number("gap_ns", 1, 60_000_000_000L);
                keys.finish();
                return new Paced(row.opener().open(usage), Paced.bursts(burst, gapNs), true);
            }
            default -> throw new IllegalArgumentException(
                    scenario + " is not a scenario of this program");
        }
    }

    private static Scenario latency(Row.Mechanism row, Keys keys) {
        keys.number("payload_bytes", 8, 8, 8);
        keys.finish();
        var usage = new Row.Usage("poll", 1, 1, 1);
        return new AskReply(row.there().open(usage), row.back().open(usage));
    }

    /** The receiver has the second CPU for itself; senders share the others. */
    private static int[] places(int[] cpus, int parts) {
        if (cpus.length == 0) {
            return cpus;
        }
        int[] places = new int[parts];
        for (int i = 0, sender = 0; i < parts; i++) {
            if (cpus.length == 1) {
                places[i] = cpus[0];
            } else if (i == 1) {
                places[i] = cpus[1];
            } else {
                int nth = sender++ % (cpus.length - 1);
                places[i] = cpus[nth == 0 ? 0 : nth + 1];
            }
        }
        return places;
    }

    /** Messages that are far apart would not be compiled in hours, so others come first. */
    private void warmUp() {
        if (scenario instanceof Paced paced) {
            Paced.Pattern asked = paced.pattern;
            paced.pattern = Paced.openLoop(5_000, false);
            levelOff();
            paced.pattern = asked;
            Paced.Schedule once = asked.draw(WARM_BLOCK_NS, seed);
            long lasts = once.dueNs()[once.dueNs().length - 1];
            for (int i = 0; i < LEVEL && lasts < 100_000_000; i++) {
                run(WARM_BLOCK_NS);
            }
        } else {
            levelOff();
        }
    }

    /** Runs blocks until their figures have levelled off and nothing was compiled meanwhile. */
    private void levelOff() {
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

    private String run(long lengthNs) {
        scenario.begin(lengthNs, seed++);
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
