package peers;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** CPU time of a stretch of work on one thread. */
final class CpuTime {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private long begun;
    long cpuNs;

    void begin() {
        begun = THREADS.getCurrentThreadCpuTime();
    }

    void end() {
        cpuNs = THREADS.getCurrentThreadCpuTime() - begun;
    }
}
