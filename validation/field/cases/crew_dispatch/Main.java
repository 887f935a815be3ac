// A pool of 12 threads waits in nextCallout (Object.wait) for jobs. One comes each 10 ms, wakes
// them all (notifyAll), and takes one of them 3 ms, without the monitor. No lock: the monitor is
// held for some microseconds at a time.
import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicLong;

public class Main {
    static final ArrayDeque<Integer> board = new ArrayDeque<>();
    static final AtomicLong working = new AtomicLong();
    static volatile long litres;

    static void ring(int callout) {
        synchronized (board) {
            board.add(callout);
            board.notifyAll();
        }
    }

    static int nextCallout() throws InterruptedException {
        synchronized (board) {
            while (board.isEmpty()) board.wait();
            return board.remove();
        }
    }

    static void extinguish(int callout) {
        long from = System.nanoTime();
        while (System.nanoTime() - from < 3_000_000) litres += callout;
        working.addAndGet(System.nanoTime() - from);
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 12; i++) {
            Thread one = new Thread(() -> {
                try {
                    while (true) extinguish(nextCallout());
                } catch (InterruptedException end) {
                    return;
                }
            }, "firefighter");
            one.setDaemon(true);
            one.start();
        }
        long from = System.nanoTime();
        long end = from + (long) (1e9 * Double.parseDouble(arguments[0]));
        for (int callout = 0; System.nanoTime() < end; callout++) {
            ring(callout);
            Thread.sleep(10);
        }
        double busy = (double) working.get() / (System.nanoTime() - from);
        System.out.printf("truth: %.2f of 12 threads have work; no lock%n", busy);
        System.exit(0);
    }
}
