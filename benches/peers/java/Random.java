/** splitmix64, as in the other languages. */
final class Random {
    private long state;

    Random(long seed) {
        state = seed;
    }

    long below(long n) {
        state += 0x9E3779B97F4A7C15L;
        long z = state;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return (((z ^ (z >>> 31)) >>> 32) * n) >>> 32;
    }

    /** One to two hours, in nanoseconds. */
    long far() {
        return 3_600_000_000_000L + below(3_600_000_000L) * 1000;
    }
}
