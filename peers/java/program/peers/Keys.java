package peers;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** The {@code key=value} words of a request. Words that are left at the end are unknown. */
final class Keys {
    private final Map<String, String> left = new LinkedHashMap<>();

    Keys(String[] words) {
        for (String word : words) {
            int equals = word.indexOf('=');
            if (equals < 1) {
                throw new IllegalArgumentException("“" + word + "” is not of the form key=value");
            }
            String key = word.substring(0, equals);
            if (left.put(key, word.substring(equals + 1)) != null) {
                throw new IllegalArgumentException(key + " is given twice");
            }
        }
    }

    boolean has(String key) {
        return left.containsKey(key);
    }

    String text(String key) {
        String value = left.remove(key);
        if (value == null) {
            throw new IllegalArgumentException(key + " is missing");
        }
        return value;
    }

    long number(String key, long least, long most) {
        String value = text(key);
        if (!value.matches("\\d{1,18}")) {
            throw new IllegalArgumentException(key + "=" + value + " is not a number");
        }
        long number = Long.parseLong(value);
        if (number < least || number > most) {
            throw new IllegalArgumentException(
                    key + "=" + value + " is impossible: it is from " + least + " to " + most);
        }
        return number;
    }

    long number(String key, long otherwise, long least, long most) {
        return has(key) ? number(key, least, most) : otherwise;
    }

    /** CPUs for the threads; empty if they are not pinned. */
    int[] cpus() {
        String value = text("cpus");
        if (value.isEmpty()) {
            return new int[0];
        }
        if (!value.matches("\\d{1,5}(,\\d{1,5})*")) {
            throw new IllegalArgumentException("cpus=" + value + " is not a list of CPUs");
        }
        return Arrays.stream(value.split(",")).mapToInt(Integer::parseInt).toArray();
    }

    void finish() {
        for (String key : left.keySet()) {
            throw new IllegalArgumentException(key + " does not apply here");
        }
    }
}
