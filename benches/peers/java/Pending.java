import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;

/**
 * The frame of the workloads whose threads call while many tasks are pending: W1, W11, W12 and W14
 * differ in the calls only.
 */
final class Pending {
    /** What one thread has to do: its own random numbers keep the threads apart. */
    interface Work {
        void run(int number, long seed, long count) throws Exception;
    }

    /** A workload for one number of pending tasks and of threads. */
    interface Body {
        void run(Pending frame) throws Exception;
    }

    final long pending;
    final int threads;
    final Figures out;
    final ScheduledExecutorService executor;
    private final long operations;

    Pending(Bench bench, ScheduledExecutorService executor, String workload, long operations,
            long pending, int threads) {
        this.executor = executor;
        this.pending = pending;
        this.threads = threads;
        this.operations = operations;
        out = bench.figures(workload, "P", pending, "T", threads, "N", operations);
    }

    /** Every combination of the numbers of pending tasks and of threads, each with a new pool. */
    static void all(Bench bench, String workload, long operations, long[] pendings,
            long[] threadCounts, Body body) throws Exception {
        for (long pending : pendings) {
            for (long threads : threadCounts) {
                ScheduledExecutorService executor = bench.executor(2);
                body.run(
                    new Pending(bench, executor, workload, operations, pending, (int) threads));
                Pool.finish(executor);
            }
        }
    }

    /** The operations of one thread. */
    long each() {
        return operations / threads;
    }

    /** The operations of all threads together. */
    double count() {
        return operations / threads * threads;
    }

    /** The first of the futures that belong to the thread of this number, as it schedules them. */
    int first(ScheduledFuture<?>[] futures, int number) {
        return (int) ((long) futures.length * number / threads);
    }

    /**
     * Each thread schedules its part of the futures itself, and does a tenth of its operations to
     * warm up. Then, after {@code begin}, all threads do all operations, and begin together.
     */
    void measure(ScheduledFuture<?>[] futures, Threads.Begin begin, Work work) throws Exception {
        long[] before = new long[2];
        Threads.Body prepare = number -> {
            int end = first(futures, number + 1);
            Pool.fill(executor, futures, first(futures, number), end, 1 + 1000 * number);
            work.run(number, 7 + 1000 * number, each() / 10);
        };
        Threads.Begin ready = () -> {
            Pool.settle(executor);
            begin.run();
            before[0] = Gauges.cpu();
            before[1] = System.nanoTime();
        };
        long submitted = Threads.prepared(
            threads, prepare, ready, number -> work.run(number, 100 + number, each()));
        Pool.settle(executor);
        long took = System.nanoTime() - before[1];
        long cpuUsed = Gauges.cpu() - before[0];
        out.emit("ns_per_op", took / count(), "ns");
        out.emit("ns_per_op_submit", submitted / count(), "ns");
        out.emit("cpu_ns_per_op", cpuUsed / count(), "ns");
    }
}
