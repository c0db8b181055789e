import java.util.Arrays;
import java.util.HashMap;

/** The parameters of a workload. */
final class Args extends HashMap<String, String> {
    private static final long serialVersionUID = 1;

    long number(String key, long normal) {
        return containsKey(key) ? Long.parseLong(get(key)) : normal;
    }

    long[] list(String key, String normal) {
        String values = getOrDefault(key, normal);
        return Arrays.stream(values.split(",")).mapToLong(Long::parseLong).toArray();
    }
}
