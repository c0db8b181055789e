import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** W13: the mix of calls that a service makes. */
final class Trace {
    private static final int BUCKETS = 128;

    /** One operation of so many schedules a task that runs. */
    private static final int ONE_SHOT = 10;

    /** One operation of so many schedules a timeout that stays. */
    private static final int STAYS = 100;

    private static final int PERIODIC_TASKS = 100;
    private static final long PERIOD = 10_000_000;

    private final ScheduledExecutorService executor;
    private final Done done;
    private final long[] late;
    private final Stopwatch schedules;
    private final Stopwatch cancels;
    private final List<List<ScheduledFuture<?>>> buckets = new ArrayList<>();

    private Trace(ScheduledExecutorService executor, int operations, Done done) {
        this.executor = executor;
        this.done = done;
        late = new long[operations / ONE_SHOT + 1];
        schedules = new Stopwatch(1, operations);
        cancels = new Stopwatch(1, operations);
        for (int i = 0; i < BUCKETS; i++) buckets.add(new ArrayList<>(8));
    }

    /** Threads that each make so many operations, in bursts. */
    static void w13(Bench bench, int submitters, int operations, int burst, long us, int workers)
            throws Exception {
        Figures out = bench.figures("W13", "S", submitters, "W", workers, "N", operations);
        ScheduledExecutorService executor = bench.executor(workers);
        Pool.settle(executor);
        int oneShots = (operations + ONE_SHOT - 1) / ONE_SHOT;
        new Trace(executor, operations / 10, new Done(Long.MAX_VALUE))
            .submit(7, operations / 10, burst, 0);

        Done done = new Done((long) oneShots * submitters);
        Trace[] traces = new Trace[submitters];
        Arrays.setAll(traces, i -> new Trace(executor, operations, done));
        int capacity = (int) (operations / burst * us * 1000 / PERIOD) + 50;
        long base = System.nanoTime() + 50_000_000L;
        Periodic[] periodic = Periodic.start(executor, PERIODIC_TASKS, PERIOD, capacity, base);
        Threads.sleepUntil(base);
        Threads.together(submitters,
            number -> traces[number].submit(50 + number, operations, burst, us * 1000));
        done.await();
        Pool.finish(executor);
        out.distribution("schedule",
            Stopwatch.all(Stream.of(traces).map(t -> t.schedules).toArray(Stopwatch[]::new)));
        out.distribution("cancel",
            Stopwatch.all(Stream.of(traces).map(t -> t.cancels).toArray(Stopwatch[]::new)));
        out.distribution("late", Stream.of(traces)
            .flatMapToLong(t -> Arrays.stream(t.late, 0, oneShots)).toArray());
        out.distribution("periodic_late", Periodic.late(periodic));
    }

    private void submit(long seed, int operations, int burst, long period) {
        Random random = new Random(seed);
        long next = System.nanoTime();
        for (int now = 0; now < operations; now++) {
            if (now % ONE_SHOT == 0) {
                oneShot(now / ONE_SHOT, (1000 + random.below(19_000)) * 1000);
            } else {
                timeout(now, (int) random.below(101));
            }
            List<ScheduledFuture<?>> bucket = buckets.get(now & (BUCKETS - 1));
            for (int i = 0; i < bucket.size(); i++) {
                ScheduledFuture<?> timeout = bucket.get(i);
                long begin = cancels.begin();
                timeout.cancel(false);
                cancels.end(begin);
            }
            bucket.clear();
            if ((now + 1) % burst == 0) {
                next += period;
                Threads.sleepUntil(next);
            }
        }
        for (List<ScheduledFuture<?>> bucket : buckets) {
            for (ScheduledFuture<?> timeout : bucket) timeout.cancel(false);
        }
    }

    private void oneShot(int slot, long delay) {
        long begin = schedules.begin();
        long due = begin + delay;
        executor.schedule(() -> {
            late[slot] = System.nanoTime() - due;
            done.hit();
        }, delay, TimeUnit.NANOSECONDS);
        schedules.end(begin);
    }

    private void timeout(int now, int later) {
        long begin = schedules.begin();
        ScheduledFuture<?> timeout = executor.schedule(Pool.tiny(), 30, TimeUnit.SECONDS);
        schedules.end(begin);
        if (now % STAYS != STAYS - 1) buckets.get((now + later) & (BUCKETS - 1)).add(timeout);
    }
}
