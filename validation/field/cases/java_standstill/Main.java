import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * By the second argument. monitors: two threads hold a monitor each and wait for the other's, two
 * more wait (a deadlock). reentrant: the same with ReentrantLock. park: a first-come, first-served
 * lock of LockSupport.park, held asleep 3 ms: 4 of 5 threads wait for it. sleepers: five threads
 * sleep, no lock.
 */
public class Main {
    static final Object left = new Object(), right = new Object();
    static final ReentrantLock debit = new ReentrantLock(), credit = new ReentrantLock();
    static final AtomicBoolean taken = new AtomicBoolean();
    static final ConcurrentLinkedQueue<Thread> queue = new ConcurrentLinkedQueue<>();
    static final AtomicLong waited = new AtomicLong();

    static void nap(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void monitors(Object first, Object second) {
        synchronized (first) {
            nap(200);
            synchronized (second) { System.out.println("not reached"); }
        }
    }

    static void reentrant(ReentrantLock first, ReentrantLock second) {
        first.lock();
        nap(200);
        second.lock();
        System.out.println("not reached");
    }

    static void parked() {
        for (;;) {
            long asked = System.nanoTime();
            queue.add(Thread.currentThread());
            while (queue.peek() != Thread.currentThread() || !taken.compareAndSet(false, true))
                LockSupport.park();
            queue.remove();
            waited.addAndGet(System.nanoTime() - asked);
            nap(3);
            taken.set(false);
            LockSupport.unpark(queue.peek());
        }
    }

    static void start(String name, Runnable code) {
        Thread thread = new Thread(code, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] arguments) {
        long begun = System.nanoTime();
        switch (arguments[1]) {
            case "monitors" -> {
                start("left", () -> monitors(left, right));
                start("right", () -> monitors(right, left));
                start("late", () -> { nap(500); monitors(left, right); });
                start("late", () -> { nap(500); monitors(right, left); });
            }
            case "reentrant" -> {
                start("debit", () -> reentrant(debit, credit));
                start("credit", () -> reentrant(credit, debit));
            }
            case "park" -> { for (int i = 0; i < 5; i++) start("user", Main::parked); }
            default -> {
                for (int i = 0; i < 5; i++) start("sleeper", () -> { for (;;) nap(10); });
            }
        }
        nap((long) (Double.parseDouble(arguments[0]) * 1000));
        double queued = (double) waited.get() / (System.nanoTime() - begun);
        System.out.printf("truth: %s, %.2f threads wait in park%n", arguments[1], queued);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
