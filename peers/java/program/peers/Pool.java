package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A. Sukhovitsky's pool: a fixed number of threads runs tasks, each of which holds a fair lock for
 * some time and then does without it. The length of the lock's queue is read on entry.
 */
final class Pool {
    private final int tasks;
    private final long holdNs;
    private final long thinkNs;
    private final ThreadPoolExecutor threads;
    private final ReentrantLock lock = new ReentrantLock(true);
    private volatile String refusal;

    // Guarded by the lock.
    private long queued;
    private long entered;

    Pool(Keys keys, int[] cpus) throws InterruptedException, ExecutionException {
        int count = (int) keys.number("threads", 1, 1024);
        tasks = (int) keys.number("tasks", 1000, 1, 1_000_000);
        holdNs = keys.number("hold_ns", 0, 60_000_000_000L);
        thinkNs = keys.number("think_ns", 0, 60_000_000_000L);
        String work = keys.text("work");
        if (!work.equals("sleep")) {
            throw new IllegalArgumentException("work=" + work + " is not known");
        }
        keys.finish();
        var made = new AtomicInteger();
        ThreadFactory pinned = body -> {
            int cpu = cpus.length > 0 ? cpus[made.getAndIncrement() % cpus.length] : -1;
            var thread = new Thread(() -> {
                try {
                    Crew.pin(cpu);
                } catch (Exception refused) {
                    refusal = refused.getMessage();
                }
                body.run();
            });
            thread.setDaemon(true);
            return thread;
        };
        threads = new ThreadPoolExecutor(
                count, count, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), pinned);
        threads.prestartAllCoreThreads();
        // Each thread has held the lock before the first block.
        run(2 * count);
        if (refusal != null) {
            close();
            throw new IllegalArgumentException(refusal);
        }
    }

    Answer run() {
        try {
            return run(tasks);
        } catch (InterruptedException | ExecutionException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private Answer run(int count) throws InterruptedException, ExecutionException {
        queued = 0;
        entered = 0;
        List<Future<?>> all = new ArrayList<>(count);
        long began = System.nanoTime();
        for (int i = 0; i < count; i++) {
            all.add(threads.submit(this::task));
        }
        for (Future<?> task : all) {
            task.get();
        }
        long elapsed = System.nanoTime() - began;
        // If the lock let in two threads at once, some increments would be lost.
        Scenario.verify(entered == count, entered + " of " + count + " entries were counted");
        return new Answer()
                .line("count", count)
                .line("elapsed_ns", elapsed)
                .line("queue_on_entry_mean", (double) queued / count)
                .line("checked", entered);
    }

    private void task() {
        lock.lock();
        try {
            queued += lock.getQueueLength();
            entered++;
            pass(holdNs);
        } finally {
            lock.unlock();
        }
        pass(thinkNs);
    }

    private static void pass(long ns) {
        if (ns % 1_000_000 == 0) {
            try {
                Thread.sleep(ns / 1_000_000);
            } catch (InterruptedException nobody) {
                throw new IllegalStateException(nobody);
            }
            return;
        }
        // `Thread.sleep` rounds to milliseconds before Java 21.
        long until = System.nanoTime() + ns;
        for (long left = ns; left > 0; left = until - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    void close() {
        threads.shutdownNow();
    }
}
