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
    /** Blocks that are longer than this whatever was asked for are not for a warm-up. */
    private static final long LONG_BLOCK_NS = 100_000_000;
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
                seed = keys.number("seed", 0, 0, Long.MAX_VALUE);
                Row.Queue row = find(peers, Row.Queue.class, words[2]);
                scenario = new QueueRequest(row, keys).scenario(words[3]);
            }
            case "latency" -> scenario =
                    latency(find(peers, Row.Mechanism.class, words[2]), keys);
            default -> throw new IllegalArgumentException("“" + words[1] + "” cannot be prepared");
        }
        keys.finish();
        List<Runnable> parts = scenario.parts();
        crew = new Crew(parts, scenario.seating().cpus(cpus, parts.size()));
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

    private static Scenario latency(Row.Mechanism row, Keys keys) {
        keys.number("payload_bytes", 8, 8, 8);
        var usage = new Row.Usage("poll", 1, 1, 1, false);
        return new AskReply(row.there().open(usage), row.back().open(usage));
    }

    private void warmUp() {
        if (!(scenario instanceof Rehearsed rehearsed)) {
            levelOff();
            return;
        }
        rehearsed.rehearse(true);
        levelOff();
        rehearsed.rehearse(false);
        if (rehearsed.leastNs(WARM_BLOCK_NS, seed) < LONG_BLOCK_NS) {
            for (int i = 0; i < LEVEL; i++) {
                run(WARM_BLOCK_NS);
            }
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

    private Answer run(long lengthNs) {
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
