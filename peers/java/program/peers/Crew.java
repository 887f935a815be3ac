package peers;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;

/** Threads that work together for a block and sleep between blocks. */
final class Crew implements Closeable {
    private final CyclicBarrier gate;
    private final Thread main = Thread.currentThread();
    private volatile boolean over;
    private volatile Throwable failure;

    /**
     * Runs each part on the next CPU, if there are CPUs. If there are too few, the last part has one
     * to itself, and the others share the rest.
     */
    Crew(List<Runnable> parts, int[] cpus) {
        gate = new CyclicBarrier(parts.size() + 1);
        for (int i = 0; i < parts.size(); i++) {
            Runnable part = parts.get(i);
            int cpu = cpus.length > 0 ? cpus[place(i, parts.size(), cpus.length)] : -1;
            var thread = new Thread(() -> live(part, cpu), "part-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        await();
        check();
    }

    private static int place(int part, int parts, int cpus) {
        if (parts <= cpus || cpus == 1) {
            return part % cpus;
        }
        return part == parts - 1 ? cpus - 1 : part % (cpus - 1);
    }

    private void live(Runnable part, int cpu) {
        try {
            pin(cpu);
        } catch (Throwable refused) {
            failure = refused;
        }
        await();
        for (await(); !over; await()) {
            try {
                part.run();
            } catch (Throwable failed) {
                failure = failed;
                // The others may wait for messages that will never come.
                main.interrupt();
                return;
            }
            await();
        }
    }

    /** Runs all parts once. */
    void work() {
        await();
        await();
        check();
    }

    @Override
    public void close() {
        if (!over) {
            over = true;
            await();
        }
    }

    private void check() {
        if (failure != null) {
            close();
            throw new IllegalStateException(failure.getMessage(), failure);
        }
    }

    private void await() {
        try {
            gate.await();
        } catch (InterruptedException | BrokenBarrierException broken) {
            // An error, because threads that cannot be stopped may be left.
            throw new AssertionError("a thread failed: " + failure, failure);
        }
    }

    /**
     * Moves this thread to a CPU, unless it is negative. Java has no call for that, so another
     * process does it, which needs no privileges.
     */
    static void pin(int cpu) throws IOException, InterruptedException {
        if (cpu < 0) {
            return;
        }
        Path id = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName();
        Process taskset;
        try {
            taskset = new ProcessBuilder("taskset", "-p", "-c", "" + cpu, id.toString())
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
        } catch (IOException missing) {
            throw new IOException("threads cannot be pinned: taskset (util-linux) is missing");
        }
        if (taskset.waitFor() != 0) {
            throw new IOException("CPU " + cpu + " is not available");
        }
    }
}
