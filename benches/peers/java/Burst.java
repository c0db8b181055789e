import java.util.Arrays;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicInteger;

/** W15: tasks that are all due at one instant. */
final class Burst {
    private Burst() {}

    /** Small bursts are repeated, until there were enough tasks. */
    static void w15(Bench bench, long enough, long[] taskCounts, long[] workerCounts)
            throws Exception {
        for (long tasks : taskCounts) {
            for (long workers : workerCounts) {
                w15(bench, (int) Math.max(1, enough / tasks), (int) tasks, (int) workers);
            }
        }
    }

    private static void w15(Bench bench, int repeats, int tasks, int workers) throws Exception {
        Figures out = bench.figures("W15", "W", workers, "N", tasks);
        ScheduledExecutorService executor = bench.executor(workers);
        Bench.zero(executor, 20_000, null);
        double[] rates = new double[repeats];
        double worst = 0;
        for (int i = 0; i < rates.length; i++) {
            int[] order = new int[workers == 1 ? tasks : 0];
            rates[i] = tasks / (burst(executor, tasks, order) / 1e9);
            worst = Math.max(worst, inversions(order));
        }
        Arrays.sort(rates);
        out.emit("tasks_per_s", rates[rates.length / 2], "1/s");
        if (workers == 1) out.emit("inversions", worst, "1");
        Pool.finish(executor);
    }

    /** Where there is one worker, the tasks write down in which order they start. */
    private static long burst(ScheduledExecutorService executor, int tasks, int[] order) {
        Done done = new Done(tasks);
        AtomicInteger started = new AtomicInteger();
        long due = System.nanoTime() + tasks * 1000L;
        for (int i = 0; i < tasks; i++) {
            int index = i;
            Runnable task = order.length == 0 ? () -> done.hit() : () -> {
                order[started.getAndIncrement()] = index;
                done.hit();
            };
            Pool.schedule(executor, task, due - System.nanoTime());
        }
        long start = Math.max(System.nanoTime(), due);
        done.await();
        return System.nanoTime() - start;
    }

    /** How many pairs are in the wrong order. The numbers are those below the count of them. */
    private static double inversions(int[] order) {
        // A Fenwick tree: how many numbers of a range have come so far.
        int[] come = new int[order.length + 1];
        long inversions = 0;
        for (int before = 0; before < order.length; before++) {
            int smaller = 0;
            for (int i = order[before]; i > 0; i &= i - 1) smaller += come[i];
            inversions += before - smaller;
            for (int i = order[before] + 1; i < come.length; i += i & -i) come[i]++;
        }
        return inversions;
    }
}
