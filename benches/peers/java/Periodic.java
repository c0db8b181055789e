import java.util.Arrays;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** A task at a fixed rate, which writes down how late its runs are. */
final class Periodic implements Runnable {
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

    /** Makes some, with random phases. Their first runs come within a period after the instant. */
    static Periodic[] start(ScheduledExecutorService executor, int tasks, long period,
            int capacity, long base) {
        Periodic[] periodic = new Periodic[tasks];
        AtomicLong total = new AtomicLong();
        for (int i = 0; i < tasks; i++) periodic[i] = new Periodic(capacity, period, total);
        Random random = new Random(3);
        for (Periodic task : periodic) {
            task.due = base + random.below(period);
            long initial = Math.max(0, task.due - System.nanoTime());
            executor.scheduleAtFixedRate(task, initial, period, TimeUnit.NANOSECONDS);
        }
        return periodic;
    }

    /** How often all have run so far. */
    static double runs(Periodic[] periodic) {
        return periodic[0].total.get();
    }

    /** How late each run was. No task may run any more. */
    static long[] late(Periodic[] periodic) {
        return Arrays.stream(periodic)
            .flatMapToLong(p -> Arrays.stream(p.late, 0, p.runs)).toArray();
    }
}
