// Two threads compute, without any lock.
public class Main {
    static volatile double sink;
    static void crunch() {
        double sum = 0;
        for (int i = 1; i < 2000000; i++) sum += Math.sqrt(i);
        sink = sum;
    }
    public static void main(String[] a) throws Exception {
        for (int i = 0; i < 2; i++) {
            Thread t = new Thread(() -> { while (true) crunch(); });
            t.setDaemon(true);
            t.start();
        }
        Thread.sleep((long) (Double.parseDouble(a[0]) * 1000));
        System.exit(0);
    }
}
