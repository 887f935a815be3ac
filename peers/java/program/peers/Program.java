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
import java.util.function.LongFunction;

/**
 * Answers lines on standard input by lines on standard output, as docs/dev/peers.md says.
 *
 * <p>Each {@code prepare} loads all classes anew, so that the types that one queue showed to the
 * compiler do not spoil the inlining of the next one.
 */
public final class Program {
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
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var program = new Program(arguments[0]);
        for (String line; (line = input.readLine()) != null && !line.equals("quit"); ) {
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
        if (words.length != 2 || !words[1].matches("[1-9]\\d{0,17}")) {
            throw new IllegalArgumentException("a block needs a length, as in `block 50000000`");
        }
        long length = Long.parseLong(words[1]);
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

    private static String sentence(Throwable failure) {
        String text = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        return text.replaceAll("\\s+", " ");
    }

    static String flags() {
        return String.join(" ", ManagementFactory.getRuntimeMXBean().getInputArguments());
    }
}
