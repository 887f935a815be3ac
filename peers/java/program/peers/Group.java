package peers;

import java.util.List;
import java.util.stream.Collectors;

/** The peers of a program. */
public interface Group {
    /** Their rows. */
    List<Row> rows();

    /** The answer to {@code hello}. */
    default String describe() {
        String version = System.getProperty("java.version");
        String machine = System.getProperty("java.vm.name") + " " + version;
        return "{\"program\":1,\"language\":\"java\",\"runtime\":" + quoted(machine)
                + ",\"compiler\":" + quoted("javac " + version)
                + ",\"flags\":" + quoted(Program.flags())
                + ",\"peers\":["
                + rows().stream().map(Row::describe).collect(Collectors.joining(","))
                + "]}";
    }

    /** A JSON string. */
    static String quoted(String text) {
        var out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}
