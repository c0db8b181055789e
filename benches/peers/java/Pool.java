import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** An executor, and the operations on it that the workloads share. */
final class Pool {
    private static final AtomicLong SINK = new AtomicLong();

    private Pool() {}

    /** The executor that follows the dash in the peer's name. */
    static ScheduledExecutorService executor(String peer, int workers) {
        String kind = peer.substring(peer.indexOf('-') + 1);
        if (kind.equals("fjp")) {
            // The class implements the interface since JDK 25; this compiles with older ones.
            return (ScheduledExecutorService) (Object) new ForkJoinPool(workers);
        }
        ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(workers);
        executor.setRemoveOnCancelPolicy(kind.equals("stpe-roc"));
        executor.prestartAllCoreThreads();
        return executor;
    }

    /** A new closure each time, as in the other languages. */
    static Runnable tiny() {
        long one = SINK.getPlain() | 1;
        return () -> SINK.addAndGet(one);
    }

    static ScheduledFuture<?> schedule(ScheduledExecutorService e, Runnable r, long nanos) {
        return e.schedule(r, Math.max(0, nanos), TimeUnit.NANOSECONDS);
    }

    static ScheduledFuture<?>[] fill(ScheduledExecutorService executor, long count) {
        ScheduledFuture<?>[] futures = new ScheduledFuture<?>[(int) count];
        fill(executor, futures);
        return futures;
    }

    static void fill(ScheduledExecutorService executor, ScheduledFuture<?>[] futures) {
        fill(executor, futures, 0, futures.length, 1);
    }

    /** The places from {@code first} to before {@code end}, for a thread that has these. */
    static void fill(ScheduledExecutorService executor, ScheduledFuture<?>[] futures, int first,
            int end, long seed) {
        Random random = new Random(seed);
        for (int i = first; i < end; i++) {
            futures[i] = schedule(executor, tiny(), random.far());
        }
    }

    static void cancel(ScheduledFuture<?>[] futures) {
        for (int i = 0; i < futures.length; i++) {
            futures[i].cancel(false);
            futures[i] = null;
        }
    }

    /** A short delay goes through the queue: whatever was put there before has been seen. */
    static void settle(ScheduledExecutorService executor) throws Exception {
        schedule(executor, SINK::incrementAndGet, 1).get();
    }

    /** Gives how long it took, in milliseconds. */
    static double finish(ScheduledExecutorService executor) throws Exception {
        long start = System.nanoTime();
        executor.shutdownNow();
        if (!executor.awaitTermination(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("its threads do not end");
        }
        return (System.nanoTime() - start) / 1e6;
    }
}
