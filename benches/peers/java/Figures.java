import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The figures of one measurement. A warm-up has none. */
final class Figures {
    private final String peer;
    private final boolean isWarmUp;
    private final String workload;
    private final String params;

    Figures(String peer, boolean isWarmUp, String workload, Object... keysAndValues) {
        List<String> pairs = new ArrayList<>();
        for (int i = 0; i < keysAndValues.length; i += 2) {
            pairs.add("\"" + keysAndValues[i] + "\":" + keysAndValues[i + 1]);
        }
        this.peer = peer;
        this.isWarmUp = isWarmUp;
        this.workload = workload;
        this.params = String.join(",", pairs);
    }

    void emit(String metric, double value, String unit) {
        if (isWarmUp) return;
        System.out.printf(Locale.ROOT,
            "{\"peer\":\"%s\",\"workload\":\"%s\",\"params\":{%s},\"metric\":\"%s\","
                + "\"value\":%.3f,\"unit\":\"%s\"}%n",
            peer, workload, params, metric, value, unit);
    }

    /** The percentiles of nanoseconds, in microseconds. */
    void distribution(String what, long[] nanos) {
        Arrays.sort(nanos);
        String[] names = {"p50", "p90", "p99", "p999"};
        double[] shares = {0.5, 0.9, 0.99, 0.999};
        for (int i = 0; i < names.length; i++) {
            int rank = Math.max(1, (int) Math.ceil(nanos.length * shares[i]));
            emit(what + "_" + names[i], nanos[rank - 1] / 1000.0, "us");
        }
        // With fewer values this would be one of the last ten.
        if (nanos.length >= 100_000) {
            int rank = (int) Math.ceil(nanos.length * 0.9999);
            emit(what + "_p9999", nanos[rank - 1] / 1000.0, "us");
        }
        emit(what + "_max", nanos[nanos.length - 1] / 1000.0, "us");
        emit(what + "_min", nanos[0] / 1000.0, "us");
    }

    /** The bytes of the heap that are in use, after a collection. */
    long heap() {
        if (isWarmUp) return 0;
        Runtime runtime = Runtime.getRuntime();
        long used = Long.MAX_VALUE;
        // The smallest of several readings, because a thread that allocates a little in between
        // gets megabytes at once.
        for (int i = 0; i < 5; i++) {
            System.gc();
            used = Math.min(used, runtime.totalMemory() - runtime.freeMemory());
        }
        return used;
    }
}
