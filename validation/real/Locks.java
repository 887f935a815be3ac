import java.util.ArrayList;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that take turns at a lock, hold it while they sleep, and compute outside it. */
public final class Locks {
    private static final ReentrantLock lock = new ReentrantLock();
    private static final Object monitor = new Object();
    private static volatile double sink;

    private static void work(long ns) {
        long end = System.nanoTime() + ns;
        while (System.nanoTime() < end) {
            sink = Math.sqrt(end);
        }
    }

    private static void withLock() throws InterruptedException {
        lock.lock();
        try {
            Thread.sleep(1);
        } finally {
            lock.unlock();
        }
    }

    private static void withMonitor() throws InterruptedException {
        synchronized (monitor) {
            Thread.sleep(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        boolean monitors = arguments[0].equals("synchronized");
        int count = Integer.parseInt(arguments[1]);
        long end = System.nanoTime() + Long.parseLong(arguments[2]) * 1_000_000_000;
        var threads = new ArrayList<Thread>();
        for (int i = 0; i < count; i++) {
            var thread = new Thread(() -> {
                try {
                    while (System.nanoTime() < end) {
                        if (monitors) {
                            withMonitor();
                        } else {
                            withLock();
                        }
                        work(1_000_000);
                    }
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            }, "worker-" + i);
            thread.start();
            threads.add(thread);
        }
        for (var thread : threads) {
            thread.join();
        }
    }
}
