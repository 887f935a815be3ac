// Five threads meet at a Phaser each round: four, after 1 ms, wait parked in meet for the fifth,
// which sleeps 20 ms in survey. No lock.
import java.util.concurrent.Phaser;
import java.util.concurrent.atomic.AtomicLong;

public class Main {
    static final Phaser round = new Phaser(5);
    static final AtomicLong waited = new AtomicLong();

    static void survey(int number) throws InterruptedException {
        Thread.sleep(number == 0 ? 20 : 1);
    }

    static void meet() {
        long from = System.nanoTime();
        round.arriveAndAwaitAdvance();
        waited.addAndGet(System.nanoTime() - from);
    }

    public static void main(String[] arguments) throws Exception {
        long from = System.nanoTime();
        for (int i = 0; i < 5; i++) {
            int number = i;
            Thread one = new Thread(() -> {
                try {
                    for (;;) {
                        survey(number);
                        meet();
                    }
                } catch (InterruptedException end) {
                    return;
                }
            }, "surveyor");
            one.setDaemon(true);
            one.start();
        }
        Thread.sleep((long) (1000 * Double.parseDouble(arguments[0])));
        double waiting = (double) waited.get() / (System.nanoTime() - from);
        System.out.printf("truth: %.2f of 5 threads wait at the phaser; no lock%n", waiting);
        System.exit(0);
    }
}
