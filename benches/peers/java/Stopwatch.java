import java.util.Arrays;
import java.util.stream.Stream;

/**
 * How long calls took: every one, or one of so many where reading the clock would be a large part
 * of the cost. A time includes about one reading of the clock.
 */
final class Stopwatch {
    private final int every;
    private final long[] nanos;
    private int timed;
    private int calls;

    /** Times one of so many calls, of which there are at most {@code most}. */
    Stopwatch(int every, long most) {
        this.every = every;
        nanos = new long[(int) (most / every) + 1];
    }

    /** Comes before a call. Gives 0 if it is not timed. */
    long begin() {
        if (++calls < every) return 0;
        calls = 0;
        return System.nanoTime();
    }

    /** Comes after it. */
    void end(long begin) {
        if (begin != 0) nanos[timed++] = System.nanoTime() - begin;
    }

    /** The times of several threads. */
    static long[] all(Stopwatch... watches) {
        return Stream.of(watches)
            .flatMapToLong(watch -> Arrays.stream(watch.nanos, 0, watch.timed)).toArray();
    }
}
