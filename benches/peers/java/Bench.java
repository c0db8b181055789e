import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Measures Java's scheduled executors: {@code java Bench <peer> <workload> key=value…}.
 *
 * <p>The workloads are those of the Rust program, with the same delays. The peer's name is the
 * JDK, a dash, and the executor: {@code stpe} is a ScheduledThreadPoolExecutor, {@code stpe-roc}
 * one that removes cancelled tasks from its queue, {@code fjp} a ForkJoinPool (a
 * ScheduledExecutorService since JDK 25). {@code delayqueue} has {@link DelayQueues} of its own.
 * Each workload runs some times unmeasured first, so that the code is compiled.
 */
public final class Bench {
    private static final AtomicLong SINK = new AtomicLong();

    private final String peer;
    private final boolean isWarmUp;

    private Bench(String peer, boolean isWarmUp) {
        this.peer = peer;
        this.isWarmUp = isWarmUp;
    }

    Figures figures(String workload, Object... params) {
        return new Figures(peer, isWarmUp, workload, params);
    }

    // ---- The executor.

    private ScheduledExecutorService executor(int workers) {
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
    private static Runnable tiny() {
        long one = SINK.getPlain() | 1;
        return () -> SINK.addAndGet(one);
    }

    private static ScheduledFuture<?> schedule(ScheduledExecutorService e, Runnable r, long nanos) {
        return e.schedule(r, Math.max(0, nanos), TimeUnit.NANOSECONDS);
    }

    private static ScheduledFuture<?>[] fill(ScheduledExecutorService executor, long count) {
        Random random = new Random(1);
        ScheduledFuture<?>[] futures = new ScheduledFuture<?>[(int) count];
        for (int i = 0; i < count; i++) futures[i] = schedule(executor, tiny(), random.far());
        return futures;
    }

    /** A short delay goes through the queue: whatever was put there before has been seen. */
    private static void settle(ScheduledExecutorService executor) throws Exception {
        schedule(executor, SINK::incrementAndGet, 1).get();
    }

    /** Gives how long it took, in milliseconds. */
    private static double finish(ScheduledExecutorService executor) throws Exception {
        long start = System.nanoTime();
        executor.shutdownNow();
        if (!executor.awaitTermination(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("its threads do not end");
        }
        return (System.nanoTime() - start) / 1e6;
    }

    // ---- W1: schedule a task and cancel it, while others are pending.

    private void w1(long operations, long[] pendings, long[] threadCounts) throws Exception {
        for (long pending : pendings) {
            for (long threads : threadCounts) w1(operations, pending, (int) threads);
        }
    }

    private void w1(long operations, long pending, int threads) throws Exception {
        Figures out = figures("W1", "P", pending, "T", threads, "N", operations);
        ScheduledExecutorService executor = executor(2);
        ScheduledFuture<?>[] keep = fill(executor, pending);
        scheduleAndCancel(executor, 7, operations / 10);
        long heap = out.heap();
        long cpu = Gauges.cpu();
        long start = System.nanoTime();
        long submitted = Threads.together(threads,
            number -> scheduleAndCancel(executor, 100 + number, operations / threads));
        settle(executor);
        long took = System.nanoTime() - start;
        long cpuUsed = Gauges.cpu() - cpu;
        long resident = Gauges.resident();
        long heapAfter = out.heap();
        double count = operations / threads * threads;
        out.emit("ns_per_op", took / count, "ns");
        out.emit("ns_per_op_submit", submitted / count, "ns");
        out.emit("cpu_ns_per_op", cpuUsed / count, "ns");
        out.emit("retained_per_cancel", (heapAfter - heap) / count, "B");
        out.emit("rss_after", resident, "B");
        finish(executor);
        Threads.keepAlive(keep);
    }

    private static void scheduleAndCancel(ScheduledExecutorService executor, long seed,
            long count) {
        Random random = new Random(seed);
        for (long i = 0; i < count; i++) schedule(executor, tiny(), random.far()).cancel(false);
    }

    // ---- W11: put a task off, which is to cancel it and to schedule it again.

    private void w11(long operations, long[] pendings, long[] threadCounts) throws Exception {
        for (long pending : pendings) {
            for (long threads : threadCounts) w11(operations, pending, (int) threads);
        }
    }

    private void w11(long operations, long pending, int threads) throws Exception {
        Figures out = figures("W11", "P", pending, "T", threads, "N", operations);
        ScheduledExecutorService executor = executor(2);
        ScheduledFuture<?>[] keep = fill(executor, pending);
        putOff(executor, 7, operations / 10);
        long start = System.nanoTime();
        Threads.together(threads, number -> putOff(executor, 100 + number, operations / threads));
        settle(executor);
        long took = System.nanoTime() - start;
        out.emit("ns_per_op", took / (double) (operations / threads * threads), "ns");
        finish(executor);
        Threads.keepAlive(keep);
    }

    private static void putOff(ScheduledExecutorService executor, long seed, long count) {
        Random random = new Random(seed);
        ScheduledFuture<?> future = schedule(executor, tiny(), random.far());
        for (long i = 0; i < count; i++) {
            future.cancel(false);
            future = schedule(executor, tiny(), random.far());
        }
        future.cancel(false);
    }

    // ---- W2: schedule into an empty queue.

    private void w2(long tasks, long[] threadCounts) throws Exception {
        for (long threads : threadCounts) w2(tasks, (int) threads);
    }

    private void w2(long tasks, int threads) throws Exception {
        Figures out = figures("W2", "T", threads, "N", tasks);
        ScheduledExecutorService executor = executor(2);
        settle(executor);
        int each = (int) (tasks / threads);
        ScheduledFuture<?>[][] keep = new ScheduledFuture<?>[threads][each];
        long heap = out.heap();
        long resident = Gauges.resident();
        long cpu = Gauges.cpu();
        long start = System.nanoTime();
        long submitted = Threads.together(threads, number -> {
            Random random = new Random(100 + number);
            ScheduledFuture<?>[] futures = keep[number];
            for (int i = 0; i < each; i++) futures[i] = schedule(executor, tiny(), random.far());
        });
        settle(executor);
        long took = System.nanoTime() - start;
        long cpuUsed = Gauges.cpu() - cpu;
        double count = each * threads;
        out.emit("ns_per_op", took / count, "ns");
        out.emit("ns_per_op_submit", submitted / count, "ns");
        out.emit("cpu_ns_per_op", cpuUsed / count, "ns");
        if (threads == 1) {
            out.emit("rss_bytes_per_task", (Gauges.resident() - resident) / count, "B");
            out.emit("bytes_per_task", (out.heap() - heap) / count, "B");
        }
        finish(executor);
        Threads.keepAlive(keep);
    }

    // ---- W3: one thread schedules, the workers run.

    private void w3(long tasks, String mode, long[] workerCounts, long ms) throws Exception {
        for (long workers : workerCounts) {
            Figures out = figures("W3-" + mode, "W", workers, "N", tasks);
            ScheduledExecutorService executor = executor((int) workers);
            zero(executor, 20_000, null);
            long cpu = Gauges.cpu();
            long sleeps = Gauges.sleeps();
            long took = switch (mode) {
                case "zero" -> zero(executor, tasks, out);
                case "atonce" -> atOnce(executor, tasks, ms * 1_000_000);
                default -> spread(executor, tasks, ms * 1_000_000, out);
            };
            out.emit("tasks_per_s", tasks / (took / 1e9), "1/s");
            out.emit("cpu_ns_per_task", (Gauges.cpu() - cpu) / (double) tasks, "ns");
            out.emit("vcsw_per_task", (Gauges.sleeps() - sleeps) / (double) tasks, "1");
            finish(executor);
        }
    }

    private static long zero(ScheduledExecutorService executor, long tasks, Figures out) {
        Done done = new Done(tasks);
        long start = System.nanoTime();
        for (long i = 0; i < tasks; i++) schedule(executor, () -> done.hit(), 0);
        long submitted = System.nanoTime() - start;
        done.await();
        long took = System.nanoTime() - start;
        if (out != null) out.emit("submit_ns", submitted / (double) tasks, "ns");
        return took;
    }

    private static long atOnce(ScheduledExecutorService executor, long tasks, long ahead) {
        Done done = new Done(tasks);
        long due = System.nanoTime() + ahead;
        for (long i = 0; i < tasks; i++) {
            schedule(executor, () -> done.hit(), due - System.nanoTime());
        }
        long start = Math.max(System.nanoTime(), due);
        done.await();
        return System.nanoTime() - start;
    }

    private static long spread(ScheduledExecutorService executor, long tasks, long span,
            Figures out) {
        Done done = new Done(tasks);
        long[] late = new long[(int) tasks];
        Random random = new Random(5);
        long start = System.nanoTime();
        for (int i = 0; i < tasks; i++) {
            long delay = random.below(Math.min(span, 0xFFFF_FFFFL));
            int slot = i;
            long due = System.nanoTime() + delay;
            schedule(executor, () -> {
                late[slot] = System.nanoTime() - due;
                done.hit();
            }, delay);
        }
        done.await();
        long took = System.nanoTime() - start;
        out.distribution("late", late);
        return took;
    }

    // ---- W4: tasks at random instants.

    private void w4(long tasks, long ms, int workers) throws Exception {
        Figures out = figures("W4", "N", tasks, "ms", ms, "W", workers);
        ScheduledExecutorService executor = executor(workers);
        settle(executor);
        long[] late = new long[(int) tasks];
        Done done = new Done(tasks);
        Random random = new Random(9);
        long base = System.nanoTime() + 200_000_000L;
        long cpu = Gauges.cpu();
        long sleeps = Gauges.sleeps();
        for (int i = 0; i < tasks; i++) {
            long due = base + random.below(ms * 1000) * 1000;
            int slot = i;
            schedule(executor, () -> {
                late[slot] = System.nanoTime() - due;
                done.hit();
            }, due - System.nanoTime());
        }
        done.await();
        long cpuUsed = Gauges.cpu() - cpu;
        long slept = Gauges.sleeps() - sleeps;
        out.distribution("late", late);
        out.emit("cpu_us_per_task", cpuUsed / 1000.0 / tasks, "us");
        out.emit("vcsw_per_task", slept / (double) tasks, "1");
        finish(executor);
    }

    // ---- W5: periodic tasks.

    private void w5(int tasks, long us, long ms, int workers) throws Exception {
        Figures out = figures("W5", "N", tasks, "us", us, "ms", ms, "W", workers);
        long period = us * 1000;
        ScheduledExecutorService executor = executor(workers);
        settle(executor);
        Periodic[] periodic = new Periodic[tasks];
        AtomicLong total = new AtomicLong();
        int capacity = (int) (ms * 1000 / us) + 50;
        for (int i = 0; i < tasks; i++) periodic[i] = new Periodic(capacity, period, total);
        Random random = new Random(3);
        long base = System.nanoTime() + 50_000_000L;
        long cpu = Gauges.cpu();
        long sleeps = Gauges.sleeps();
        for (Periodic task : periodic) {
            task.due = base + random.below(period);
            long initial = Math.max(0, task.due - System.nanoTime());
            executor.scheduleAtFixedRate(task, initial, period, TimeUnit.NANOSECONDS);
        }
        Threads.sleepUntil(base + ms * 1_000_000);
        double runs = total.get();
        long cpuUsed = Gauges.cpu() - cpu;
        long slept = Gauges.sleeps() - sleeps;
        finish(executor);
        out.distribution("late",
            Arrays.stream(periodic).flatMapToLong(p -> Arrays.stream(p.late, 0, p.runs)).toArray());
        out.emit("runs_vs_expected", runs / (tasks * (double) ms * 1000 / us), "1");
        out.emit("cpu_us_per_run", cpuUsed / 1000.0 / runs, "us");
        out.emit("vcsw_per_run", slept / runs, "1");
    }

    private static final class Periodic implements Runnable {
        final long[] late;
        final long period;
        final AtomicLong total;
        long due;
        int runs;

        Periodic(int capacity, long period, AtomicLong total) {
            late = new long[capacity];
            this.period = period;
            this.total = total;
        }

        @Override
        public void run() {
            long now = System.nanoTime();
            if (runs < late.length) late[runs++] = now - due;
            due += period;
            total.incrementAndGet();
        }
    }

    // ---- W6: submit a task and wait for its result.

    private void w6(int pings, int gaps, long gapUs, long piped, int window, int workers)
            throws Exception {
        Figures out = figures("W6", "W", workers);
        ScheduledExecutorService executor = executor(workers);
        for (int i = 0; i < pings / 10; i++) ping(executor);
        long[] trips = new long[pings];
        long cpu = Gauges.cpu();
        for (int i = 0; i < pings; i++) trips[i] = ping(executor);
        long cpuUsed = Gauges.cpu() - cpu;
        out.distribution("ping", trips);
        out.emit("ping_cpu_us", cpuUsed / 1000.0 / pings, "us");
        trips = new long[gaps];
        for (int i = 0; i < gaps; i++) {
            LockSupport.parkNanos(gapUs * 1000);
            trips[i] = ping(executor);
        }
        out.distribution("gap_ping", trips);
        pipeline(executor, piped / 10, window);
        out.emit("pipelined_per_s", pipeline(executor, piped, window), "1/s");
        finish(executor);
    }

    private static long ping(ScheduledExecutorService executor) throws Exception {
        long start = System.nanoTime();
        executor.submit(() -> 1).get();
        return System.nanoTime() - start;
    }

    private static double pipeline(ScheduledExecutorService executor, long count, int window)
            throws Exception {
        ArrayDeque<Future<Integer>> futures = new ArrayDeque<>(window + 1);
        long done = 0;
        long start = System.nanoTime();
        while (done < count) {
            for (int i = 0; i < window; i++) futures.add(executor.submit(() -> 1));
            for (Future<Integer> f = futures.poll(); f != null; f = futures.poll()) f.get();
            done += window;
        }
        return done / ((System.nanoTime() - start) / 1e9);
    }

    // ---- W7: timeouts that nearly never fire.

    private void w7(long operations, long outstanding, long[] threadCounts) throws Exception {
        for (long threads : threadCounts) {
            Figures out = figures("W7", "P", outstanding, "T", threads, "N", operations);
            ScheduledExecutorService executor = executor(2);
            Random random = new Random(1);
            ScheduledFuture<?>[] keep = new ScheduledFuture<?>[(int) outstanding];
            for (int i = 0; i < outstanding; i++) {
                long micros = 25_000_000L + random.below(5_000_000);
                keep[i] = schedule(executor, tiny(), micros * 1000);
            }
            churn(executor, 2, operations / 4);
            long cpu = Gauges.cpu();
            long start = System.nanoTime();
            Threads.together((int) threads,
                number -> churn(executor, 50 + number, operations / threads));
            settle(executor);
            long took = System.nanoTime() - start;
            long cpuUsed = Gauges.cpu() - cpu;
            out.emit("ns_per_op", took / (double) operations, "ns");
            out.emit("cpu_ns_per_op", cpuUsed / (double) operations, "ns");
            finish(executor);
            Threads.keepAlive(keep);
        }
    }

    private static void churn(ScheduledExecutorService executor, long seed, long operations) {
        Random random = new Random(seed);
        List<List<ScheduledFuture<?>>> buckets = new ArrayList<>();
        for (int i = 0; i < 128; i++) buckets.add(new ArrayList<>(8));
        for (long i = 0; i < operations; i++) {
            ScheduledFuture<?> timeout = executor.schedule(tiny(), 30, TimeUnit.SECONDS);
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

    private void w8(long pending) throws Exception {
        ScheduledExecutorService executor = executor(2);
        ScheduledFuture<?>[] keep = fill(executor, pending);
        settle(executor);
        Thread.sleep(50);
        figures("W8", "P", pending).emit("shutdown_ms", finish(executor), "ms");
        Threads.keepAlive(keep);
    }

    // ---- The command line.

    private interface Workload {
        void run(Bench bench) throws Exception;
    }

    /** Runs the first some times unmeasured, then the second. */
    private static void warmed(String peer, Args args, Workload warmUp, Workload measured)
            throws Exception {
        for (long i = 0; i < args.number("warm", 4); i++) warmUp.run(new Bench(peer, true));
        measured.run(new Bench(peer, false));
    }

    public static void main(String[] words) throws Exception {
        Args args = new Args();
        for (String word : Arrays.asList(words).subList(2, words.length)) {
            args.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
        }
        run(words[0], words[1], args);
        System.exit(0);
    }

    private static final long[] TWO = {2};
    private static final long[] ONE_AND_TWO = {1, 2};

    private static void run(String peer, String workload, Args args) throws Exception {
        switch (workload) {
            case "w1", "w2", "w7", "w8", "w11" -> runCalls(peer, workload, args);
            case "w3", "w4", "w5", "w6" -> runTasks(peer, workload, args);
            case "w9" -> runDelayQueue(peer, args);
            default -> throw new IllegalArgumentException("no workload is called " + workload);
        }
    }

    /** The workloads in which no task runs. */
    private static void runCalls(String peer, String workload, Args args) throws Exception {
        switch (workload) {
            case "w1" -> {
                long n = args.number("N", 400_000);
                long[] pendings = args.list("P", "1000,100000,1000000");
                long[] threads = args.list("T", "1,2,4");
                warmed(peer, args, b -> b.w1(n / 2, new long[] {1000}, ONE_AND_TWO),
                    b -> b.w1(n, pendings, threads));
            }
            case "w11" -> {
                long n = args.number("N", 400_000);
                long[] pendings = args.list("P", "1000,100000");
                long[] threads = args.list("T", "1,2");
                warmed(peer, args, b -> b.w11(n / 2, new long[] {1000}, ONE_AND_TWO),
                    b -> b.w11(n, pendings, threads));
            }
            case "w2" -> {
                long n = args.number("N", 1_000_000);
                long[] threads = args.list("T", "1,2,4");
                warmed(peer, args, b -> b.w2(n / 4, ONE_AND_TWO), b -> b.w2(n, threads));
            }
            case "w7" -> {
                long n = args.number("N", 200_000);
                warmed(peer, args, b -> b.w7(n, 10_000, ONE_AND_TWO),
                    b -> b.w7(n, args.number("P", 10_000), args.list("T", "1,2")));
            }
            default -> warmed(peer, args, b -> b.w8(100_000),
                b -> b.w8(args.number("P", 1_000_000)));
        }
    }

    private static void runTasks(String peer, String workload, Args args) throws Exception {
        int workers = (int) args.number("W", 2);
        switch (workload) {
            case "w3" -> {
                long n = args.number("N", 1_000_000);
                long ms = args.number("ms", 1000);
                String mode = args.getOrDefault("mode", "zero");
                warmed(peer, args, b -> b.w3(n / 4, mode, ONE_AND_TWO, 250),
                    b -> b.w3(n, mode, args.list("W", "1,2"), ms));
            }
            case "w4" -> warmed(peer, args, b -> {
                b.w3(50_000, "zero", TWO, 0);
                b.w3(20_000, "spread", TWO, 100);
                b.w4(2000, 200, workers);
            }, b -> {
                Thread.sleep(300);
                b.w4(args.number("N", 1000), args.number("ms", 10_000), workers);
            });
            case "w5" -> warmed(peer, args, b -> {
                b.w3(50_000, "zero", TWO, 0);
                b.w5(100, 200, 300, workers);
            }, b -> {
                Thread.sleep(300);
                b.w5((int) args.number("N", 100), args.number("us", 10_000),
                    args.number("ms", 10_000), workers);
            });
            default -> warmed(peer, args, b -> b.w6(10_000, 20, 100, 100_000, 256, workers),
                b -> b.w6((int) args.number("N", 20_000), (int) args.number("gaps", 1000),
                    args.number("gap_us", 300), args.number("pipe", 300_000),
                    (int) args.number("win", 256), workers));
        }
    }

    private static void runDelayQueue(String peer, Args args) throws Exception {
        long[] threads = args.list("T", "1,2");
        if (args.getOrDefault("mode", "fill").equals("fill")) {
            long n = args.number("N", 1_000_000);
            warmed(peer, args, b -> DelayQueues.fill(b, n / 4, ONE_AND_TWO),
                b -> DelayQueues.fill(b, n, threads));
        } else {
            long n = args.number("N", 400_000);
            warmed(peer, args, b -> DelayQueues.mixed(b, 1000, n, ONE_AND_TWO),
                b -> DelayQueues.mixed(b, args.number("P", 100_000), n, threads));
        }
    }
}
