package peers;

import java.io.BufferedReader;
import java.io.Closeable;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.LongFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Answers lines on standard input by lines on standard output, as docs/peers.md says.
 *
 * <p>Each {@code prepare} loads all classes anew, so that the types that one queue showed to the
 * compiler do not spoil the inlining of the next one.
 */
public final class Program {
    /** Time for the answers to earlier lines once the input is over. */
    private static final Duration GRACE = Duration.ofMillis(500);
    private static final String QUIT = "quit";
    private static final Pattern DURATION = Pattern.compile("(\\d+(?:\\.\\d+)?)(ns|us|ms|s)");

    private final String group;
    private final ClassLoader own = Program.class.getClassLoader();
    private Object prepared;

    private Program(String group) {
        this.group = group;
    }

    /** The argument is the class that lists the peers. */
    public static void main(String[] arguments) throws Exception {
        var file = new FileOutputStream(FileDescriptor.out);
        var out = new PrintStream(file, false, StandardCharsets.UTF_8);
        // Whatever a library prints must not mix with the answers.
        System.setOut(System.err);
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        var reader = new Thread(() -> read(lines), "lines");
        reader.setDaemon(true);
        reader.start();
        var program = new Program(arguments[0]);
        for (String line; !(line = lines.take()).equals(QUIT); ) {
            boolean usable = true;
            String answer;
            try {
                answer = program.answer(line);
            } catch (Throwable failure) {
                answer = "error " + sentence(failure);
                usable = failure instanceof Exception;
            }
            out.print(answer + "\n");
            out.flush();
            if (!usable) {
                Runtime.getRuntime().halt(1);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void read(BlockingQueue<String> lines) {
        try {
            var bytes = new InputStreamReader(System.in, StandardCharsets.UTF_8);
            var input = new BufferedReader(bytes);
            for (String line; (line = input.readLine()) != null && !line.strip().equals(QUIT); ) {
                lines.add(line.strip());
            }
        } catch (IOException closed) {
            // As at the end of input.
        }
        lines.add(QUIT);
        try {
            Thread.sleep(GRACE.toMillis());
        } catch (InterruptedException nobody) {
            // Nobody interrupts this thread.
        }
        // Ends a block that is under way, too: its threads may spin or hang.
        Runtime.getRuntime().halt(0);
    }

    private String answer(String line) throws Throwable {
        String[] words = line.split("\\s+");
        switch (words[0]) {
            case "hello":
                return ((Group) Class.forName(group).getConstructor().newInstance()).describe();
            case "prepare":
                return prepare(line);
            case "block":
                return block(words);
            default:
                throw new IllegalArgumentException("“" + words[0] + "” is not a request");
        }
    }

    private String prepare(String line) throws Throwable {
        forget();
        URL file = Program.class.getProtectionDomain().getCodeSource().getLocation();
        var fresh = new URLClassLoader(new URL[] {file}, ClassLoader.getPlatformClassLoader());
        long began = System.nanoTime();
        prepared = make(fresh, line);
        return "ready warm_up_ms=" + (System.nanoTime() - began) / 1_000_000;
    }

    private Object make(ClassLoader loader, String line) throws Throwable {
        try {
            Class<?> bench = loader.loadClass(Bench.class.getName());
            return bench.getConstructor(String.class, String.class).newInstance(group, line);
        } catch (InvocationTargetException failed) {
            throw failed.getCause();
        }
    }

    private void forget() throws IOException {
        if (prepared instanceof Closeable old) {
            old.close();
        }
        prepared = null;
    }

    private String block(String[] words) throws Throwable {
        if (words.length != 2) {
            throw new IllegalArgumentException("a block needs a length, as in `block 50ms`");
        }
        long length = nanoseconds(words[1]);
        if (prepared == null) {
            throw new IllegalStateException("nothing is prepared");
        }
        @SuppressWarnings("unchecked") // `Bench`, of another loader.
        var bench = (LongFunction<String>) prepared;
        try {
            return bench.apply(length);
        } catch (Throwable failure) {
            forget();
            throw failure;
        }
    }

    private static long nanoseconds(String text) {
        Matcher parts = DURATION.matcher(text);
        if (!parts.matches()) {
            throw new IllegalArgumentException("“" + text + "” is not a duration");
        }
        double unit = switch (parts.group(2)) {
            case "ns" -> 1;
            case "us" -> 1e3;
            case "ms" -> 1e6;
            default -> 1e9;
        };
        double length = Double.parseDouble(parts.group(1)) * unit;
        if (length < 1 || length > 3600e9) {
            throw new IllegalArgumentException("a block lasts from 1ns to an hour");
        }
        return (long) length;
    }

    private static String sentence(Throwable failure) {
        String text = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        return text.replaceAll("\\s+", " ");
    }

    static String flags() {
        return String.join(" ", ManagementFactory.getRuntimeMXBean().getInputArguments());
    }
}
