import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
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
    private final String peer;
    private final boolean isWarmUp;

    private Bench(String peer, boolean isWarmUp) {
        this.peer = peer;
        this.isWarmUp = isWarmUp;
    }

    Figures figures(String workload, Object... params) {
        return new Figures(peer, isWarmUp, workload, params);
    }

    ScheduledExecutorService executor(int workers) {
        return Pool.executor(peer, workers);
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
            Pool.finish(executor);
        }
    }

    static long zero(ScheduledExecutorService executor, long tasks, Figures out) {
        Done done = new Done(tasks);
        long start = System.nanoTime();
        for (long i = 0; i < tasks; i++) Pool.schedule(executor, () -> done.hit(), 0);
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
            Pool.schedule(executor, () -> done.hit(), due - System.nanoTime());
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
            Pool.schedule(executor, () -> {
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
        Pool.settle(executor);
        long[] late = new long[(int) tasks];
        Done done = new Done(tasks);
        Random random = new Random(9);
        long base = System.nanoTime() + 200_000_000L;
        long cpu = Gauges.cpu();
        long sleeps = Gauges.sleeps();
        for (int i = 0; i < tasks; i++) {
            long due = base + random.below(ms * 1000) * 1000;
            int slot = i;
            Pool.schedule(executor, () -> {
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
        Pool.finish(executor);
    }

    // ---- W5: periodic tasks.

    private void w5(int tasks, long us, long ms, int workers) throws Exception {
        Figures out = figures("W5", "N", tasks, "us", us, "ms", ms, "W", workers);
        ScheduledExecutorService executor = executor(workers);
        Pool.settle(executor);
        int capacity = (int) (ms * 1000 / us) + 50;
        long base = System.nanoTime() + 50_000_000L;
        long cpu = Gauges.cpu();
        long sleeps = Gauges.sleeps();
        Periodic[] periodic = Periodic.start(executor, tasks, us * 1000, capacity, base);
        Threads.sleepUntil(base + ms * 1_000_000);
        double runs = Periodic.runs(periodic);
        long cpuUsed = Gauges.cpu() - cpu;
        long slept = Gauges.sleeps() - sleeps;
        Pool.finish(executor);
        out.distribution("late", Periodic.late(periodic));
        out.emit("runs_vs_expected", runs / (tasks * (double) ms * 1000 / us), "1");
        out.emit("cpu_us_per_run", cpuUsed / 1000.0 / runs, "us");
        out.emit("vcsw_per_run", slept / runs, "1");
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
        Pool.finish(executor);
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
            case "w1", "w11", "w12", "w14" -> runPending(peer, workload, args);
            case "w2", "w7", "w8", "w16" -> runCalls(peer, workload, args);
            case "w3", "w4", "w5", "w6", "w13", "w15" -> runTasks(peer, workload, args);
            case "w9" -> runDelayQueue(peer, args);
            default -> throw new IllegalArgumentException("no workload is called " + workload);
        }
    }

    private interface WhilePending {
        void run(Bench bench, long operations, long[] pendings, long[] threads) throws Exception;
    }

    /** Threads call while many tasks are pending. */
    private static void runPending(String peer, String workload, Args args) throws Exception {
        boolean isCrowded = workload.equals("w14");
        long n = args.number("N", isCrowded ? 1_600_000 : 400_000);
        long[] pendings = args.list("P", switch (workload) {
            case "w1" -> "1000,100000,1000000";
            case "w11" -> "1000,100000";
            case "w12" -> "1000,10000,100000,1000000";
            default -> "100000";
        });
        long[] threads = args.list("T", switch (workload) {
            case "w1" -> "1,2,4";
            case "w14" -> "16";
            default -> "1,2";
        });
        WhilePending calls = switch (workload) {
            case "w1" -> Calls::w1;
            case "w11" -> args.getOrDefault("mode", "random").equals("extend")
                ? Calls::w11Extend : Calls::w11;
            case "w12" -> (bench, operations, pendingCounts, threadCounts) -> Calls.w12(bench,
                operations, pendingCounts, threadCounts, args.number("memory", 1) == 1);
            default -> Calls::w14;
        };
        warmed(peer, args,
            b -> calls.run(b, Math.min(n / 2, 200_000), new long[] {1000}, ONE_AND_TWO),
            b -> calls.run(b, n, pendings, threads));
    }

    /** The other workloads in which no task runs. */
    private static void runCalls(String peer, String workload, Args args) throws Exception {
        switch (workload) {
            case "w2" -> {
                long n = args.number("N", 1_000_000);
                long[] threads = args.list("T", "1,2,4");
                boolean isAgain = args.getOrDefault("mode", "first").equals("again");
                warmed(peer, args, b -> Calls.w2(b, n / 4, ONE_AND_TWO, isAgain),
                    b -> Calls.w2(b, n, threads, isAgain));
            }
            case "w7" -> {
                long n = args.number("N", 200_000);
                warmed(peer, args, b -> Calls.w7(b, n, 10_000, ONE_AND_TWO),
                    b -> Calls.w7(b, n, args.number("P", 10_000), args.list("T", "1,2")));
            }
            case "w8" -> warmed(peer, args, b -> Calls.w8(b, 100_000),
                b -> Calls.w8(b, args.number("P", 1_000_000)));
            default -> warmed(peer, args, b -> Calls.w16(b, 200_000),
                b -> Calls.w16(b, (int) args.number("N", 5_000_000)));
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
            case "w13" -> warmed(peer, args, b -> Trace.w13(b, 3, 20_000, 32, 0, workers),
                b -> Trace.w13(b, (int) args.number("S", 3), (int) args.number("N", 100_000),
                    (int) args.number("burst", 32), args.number("us", 1000), workers));
            case "w15" -> warmed(peer, args,
                b -> Burst.w15(b, 100_000, new long[] {50_000}, ONE_AND_TWO),
                b -> Burst.w15(b, 500_000, args.list("N", "100000,1000000"),
                    args.list("W", "1,2")));
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
