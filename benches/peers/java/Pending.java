import java.util.concurrent.ScheduledExecutorService;

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

    /** One thread does a tenth of the operations, after whatever has filled the queue. */
    void warmUp(Work work) throws Exception {
        work.run(0, 7, operations / 10);
    }

    /** All threads do all operations, and begin together. */
    void measure(Work work) throws Exception {
        long cpu = Gauges.cpu();
        long start = System.nanoTime();
        long submitted =
            Threads.together(threads, number -> work.run(number, 100 + number, each()));
        Pool.settle(executor);
        long took = System.nanoTime() - start;
        long cpuUsed = Gauges.cpu() - cpu;
        out.emit("ns_per_op", took / count(), "ns");
        out.emit("ns_per_op_submit", submitted / count(), "ns");
        out.emit("cpu_ns_per_op", cpuUsed / count(), "ns");
    }
}
