import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** The workloads in which no task runs. */
final class Calls {
    /** W12 and W14 time one of so many calls by itself; for W14, one of two kinds. */
    private static final int TIMED = 16;
    private static final int TIMED_OF_TWO = 15;

    private Calls() {}

    // ---- W1: schedule a task and cancel it, while others are pending.

    static void w1(Bench bench, long operations, long[] pendings, long[] threadCounts)
            throws Exception {
        Pending.all(bench, "W1", operations, pendings, threadCounts, Calls::w1);
    }

    private static void w1(Pending frame) throws Exception {
        ScheduledExecutorService executor = frame.executor;
        ScheduledFuture<?>[] keep = new ScheduledFuture<?>[(int) frame.pending];
        Pending.Work work = (number, seed, count) -> {
            Random random = new Random(seed);
            for (long i = 0; i < count; i++) {
                Pool.schedule(executor, Pool.tiny(), random.far()).cancel(false);
            }
        };
        double[] heap = new double[1];
        frame.measure(keep, () -> heap[0] = frame.out.heap(), work);
        long resident = Gauges.resident();
        frame.out.emit("retained_per_cancel", (frame.out.heap() - heap[0]) / frame.count(), "B");
        frame.out.emit("rss_after", resident, "B");
        Threads.keepAlive(keep);
    }

    // ---- W11: put a task off, which is to cancel it and to schedule it again.

    static void w11(Bench bench, long operations, long[] pendings, long[] threadCounts)
            throws Exception {
        Pending.all(bench, "W11", operations, pendings, threadCounts, frame -> {
            ScheduledFuture<?>[] keep = new ScheduledFuture<?>[(int) frame.pending];
            Pending.Work work = (number, seed, count) -> putOff(frame.executor, seed, count);
            frame.measure(keep, () -> {}, work);
            Threads.keepAlive(keep);
        });
    }

    // The same for a timeout of 30 s, which each request puts off to 30 s from then.

    static void w11Extend(Bench bench, long operations, long[] pendings, long[] threadCounts)
            throws Exception {
        Pending.all(bench, "W11", operations, pendings, threadCounts, frame -> {
            ScheduledFuture<?>[] keep = new ScheduledFuture<?>[(int) frame.pending];
            Pending.Work work = (number, seed, count) -> extend(frame.executor, count);
            frame.measure(keep, () -> {}, work);
            Threads.keepAlive(keep);
        });
    }

    private static void extend(ScheduledExecutorService executor, long count) {
        long timeout = 30_000_000_000L;
        ScheduledFuture<?> future = Pool.schedule(executor, Pool.tiny(), timeout);
        for (long i = 0; i < count; i++) {
            future.cancel(false);
            future = Pool.schedule(executor, Pool.tiny(), timeout);
        }
        future.cancel(false);
    }

    private static void putOff(ScheduledExecutorService executor, long seed, long count) {
        Random random = new Random(seed);
        ScheduledFuture<?> future = Pool.schedule(executor, Pool.tiny(), random.far());
        for (long i = 0; i < count; i++) {
            future.cancel(false);
            future = Pool.schedule(executor, Pool.tiny(), random.far());
        }
        future.cancel(false);
    }

    // ---- W12: cancel a pending task at random, and schedule another in its place.

    static void w12(Bench bench, long operations, long[] pendings, long[] threadCounts,
            boolean looksAtMemory) throws Exception {
        for (long pending : pendings) {
            // The memory is that of one thread's calls and of two together.
            ScheduledExecutorService executor = bench.executor(2);
            Figures out = bench.figures("W12", "P", pending);
            ScheduledFuture<?>[] futures = new ScheduledFuture<?>[(int) pending];
            if (looksAtMemory) {
                // What is kept for later tasks is then there before.
                Pool.fill(executor, futures);
                Pool.cancel(futures);
                Pool.settle(executor);
            }
            long heap = looksAtMemory ? out.heap() : 0;
            double cancelled = 0;
            for (long threads : threadCounts) {
                Pending frame =
                    new Pending(bench, executor, "W12", operations, pending, (int) threads);
                w12(frame, futures);
                Pool.cancel(futures);
                Pool.settle(executor);
                cancelled += pending + operations * 1.1;
            }
            if (looksAtMemory) {
                out.emit("retained_per_cancel", (out.heap() - heap) / cancelled, "B");
            }
            Pool.finish(executor);
            Reference.reachabilityFence(futures);
        }
    }

    private static void w12(Pending frame, ScheduledFuture<?>[] futures) throws Exception {
        Stopwatch[] cancels = new Stopwatch[frame.threads];
        Pending.Work work = (number, seed, count) -> {
            cancels[number] = new Stopwatch(TIMED, count);
            int first = frame.first(futures, number);
            int part = frame.first(futures, number + 1) - first;
            replace(frame.executor, futures, first, part, seed, count, cancels[number]);
        };
        frame.measure(futures, () -> {}, work);
        frame.out.distribution("cancel", Stopwatch.all(cancels));
    }

    /** The thread has so many futures, from {@code first} on. */
    private static void replace(ScheduledExecutorService executor, ScheduledFuture<?>[] futures,
            int first, int part, long seed, long count, Stopwatch cancels) {
        Random random = new Random(seed);
        for (long i = 0; i < count; i++) {
            int place = first + (int) random.below(part);
            long delay = random.far();
            ScheduledFuture<?> old = futures[place];
            long begin = cancels.begin();
            old.cancel(false);
            cancels.end(begin);
            futures[place] = Pool.schedule(executor, Pool.tiny(), delay);
        }
    }

    // ---- W14: W1 with many more threads than cores.

    static void w14(Bench bench, long operations, long[] pendings, long[] threadCounts)
            throws Exception {
        Pending.all(bench, "W14", operations, pendings, threadCounts, frame -> {
            ScheduledFuture<?>[] keep = new ScheduledFuture<?>[(int) frame.pending];
            Stopwatch[] calls = new Stopwatch[frame.threads];
            Pending.Work work = (number, seed, count) -> {
                calls[number] = new Stopwatch(TIMED_OF_TWO, 2 * count);
                scheduleAndCancel(frame.executor, seed, count, calls[number]);
            };
            frame.measure(keep, () -> {}, work);
            frame.out.distribution("call", Stopwatch.all(calls));
            Threads.keepAlive(keep);
        });
    }

    private static void scheduleAndCancel(ScheduledExecutorService executor, long seed, long count,
            Stopwatch calls) {
        Random random = new Random(seed);
        for (long i = 0; i < count; i++) {
            long delay = random.far();
            long begin = calls.begin();
            ScheduledFuture<?> future = Pool.schedule(executor, Pool.tiny(), delay);
            calls.end(begin);
            begin = calls.begin();
            future.cancel(false);
            calls.end(begin);
        }
    }

    // ---- W2: schedule into an empty queue. Earlier rounds have touched the heap in any case.

    static void w2(Bench bench, long tasks, long[] threadCounts, boolean isAgain)
            throws Exception {
        for (long threads : threadCounts) w2(bench, tasks, (int) threads, isAgain);
    }

    private static void w2(Bench bench, long tasks, int threads, boolean isAgain)
            throws Exception {
        Figures out = bench.figures("W2", "T", threads, "N", tasks);
        ScheduledExecutorService executor = bench.executor(2);
        Pool.settle(executor);
        int each = (int) (tasks / threads);
        ScheduledFuture<?>[][] keep = new ScheduledFuture<?>[threads][each];
        long[] before = new long[4];
        Threads.Body fill =
            number -> Pool.fill(executor, keep[number], 0, each, 100 + number);
        Threads.Body prepare = number -> {
            if (!isAgain) return;
            fill.run(number);
            for (ScheduledFuture<?> future : keep[number]) future.cancel(false);
        };
        Threads.Begin begin = () -> {
            Pool.settle(executor);
            before[0] = out.heap();
            before[1] = Gauges.resident();
            before[2] = Gauges.cpu();
            before[3] = System.nanoTime();
        };
        long submitted = Threads.prepared(threads, prepare, begin, fill);
        Pool.settle(executor);
        long took = System.nanoTime() - before[3];
        long cpuUsed = Gauges.cpu() - before[2];
        double count = each * threads;
        out.emit("ns_per_op", took / count, "ns");
        out.emit("ns_per_op_submit", submitted / count, "ns");
        out.emit("cpu_ns_per_op", cpuUsed / count, "ns");
        if (threads == 1 && !isAgain) {
            out.emit("rss_bytes_per_task", (Gauges.resident() - before[1]) / count, "B");
            out.emit("bytes_per_task", (out.heap() - before[0]) / count, "B");
        }
        Pool.finish(executor);
        Threads.keepAlive(keep);
    }

    // ---- W7: timeouts that nearly never fire.

    static void w7(Bench bench, long operations, long outstanding, long[] threadCounts)
            throws Exception {
        for (long threads : threadCounts) {
            Figures out = bench.figures("W7", "P", outstanding, "T", threads, "N", operations);
            ScheduledExecutorService executor = bench.executor(2);
            ScheduledFuture<?>[] keep = new ScheduledFuture<?>[(int) outstanding];
            // As in Pending: each thread has its part of the timeouts, and warms up.
            Threads.Body prepare = number -> {
                Random random = new Random(1 + 1000 * number);
                int end = (int) (outstanding * (number + 1) / threads);
                for (int i = (int) (outstanding * number / threads); i < end; i++) {
                    long micros = 25_000_000L + random.below(5_000_000);
                    keep[i] = Pool.schedule(executor, Pool.tiny(), micros * 1000);
                }
                churn(executor, 2 + 1000 * number, operations / 4 / threads);
            };
            long[] before = new long[2];
            Threads.Begin begin = () -> {
                Pool.settle(executor);
                before[0] = Gauges.cpu();
                before[1] = System.nanoTime();
            };
            Threads.prepared((int) threads, prepare, begin,
                number -> churn(executor, 50 + number, operations / threads));
            Pool.settle(executor);
            long took = System.nanoTime() - before[1];
            long cpuUsed = Gauges.cpu() - before[0];
            out.emit("ns_per_op", took / (double) operations, "ns");
            out.emit("cpu_ns_per_op", cpuUsed / (double) operations, "ns");
            Pool.finish(executor);
            Threads.keepAlive(keep);
        }
    }

    private static void churn(ScheduledExecutorService executor, long seed, long operations) {
        Random random = new Random(seed);
        List<List<ScheduledFuture<?>>> buckets = new ArrayList<>();
        for (int i = 0; i < 128; i++) buckets.add(new ArrayList<>(8));
        for (long i = 0; i < operations; i++) {
            ScheduledFuture<?> timeout = executor.schedule(Pool.tiny(), 30, TimeUnit.SECONDS);
            buckets.get((int) ((i + random.below(101)) & 127)).add(timeout);
            List<ScheduledFuture<?>> now = buckets.get((int) (i & 127));
            for (int j = 0; j < now.size(); j++) now.get(j).cancel(false);
            now.clear();
        }
        for (List<ScheduledFuture<?>> bucket : buckets) {
            for (ScheduledFuture<?> timeout : bucket) timeout.cancel(false);
        }
    }

    // ---- W8: shut down.

    static void w8(Bench bench, long pending) throws Exception {
        ScheduledExecutorService executor = bench.executor(2);
        ScheduledFuture<?>[] keep = Pool.fill(executor, pending);
        Pool.settle(executor);
        Thread.sleep(50);
        bench.figures("W8", "P", pending).emit("shutdown_ms", Pool.finish(executor), "ms");
        Threads.keepAlive(keep);
    }

    // ---- W16: schedule into an empty queue that grows.

    static void w16(Bench bench, int tasks) throws Exception {
        Figures out = bench.figures("W16", "N", tasks);
        ScheduledExecutorService executor = bench.executor(2);
        Pool.settle(executor);
        ScheduledFuture<?>[] keep = new ScheduledFuture<?>[tasks];
        long[] nanos = new long[tasks];
        // Written beforehand: otherwise the kernel's time to find the memory would count as the
        // call's.
        Arrays.fill(nanos, 1);
        Random random = new Random(100);
        long start = System.nanoTime();
        long last = start;
        for (int i = 0; i < tasks; i++) {
            keep[i] = Pool.schedule(executor, Pool.tiny(), random.far());
            long now = System.nanoTime();
            nanos[i] = now - last;
            last = now;
        }
        Pool.settle(executor);
        out.emit("ns_per_op", (System.nanoTime() - start) / (double) tasks, "ns");
        out.distribution("call", nanos);
        Pool.finish(executor);
        Threads.keepAlive(keep);
    }
}
