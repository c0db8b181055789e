import java.util.Arrays;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** W9: {@link DelayQueue}, of numbers. */
final class DelayQueues {
    private static final int WARM_UPS = 2;
    private static final int MEASURED = 5;

    /** {@code remove(Object)} searches the whole queue: more operations would take minutes. */
    private static final long MOST_REMOVALS = 20_000;

    private DelayQueues() {}

    /** An element: the queue asks it for its delay. */
    private static final class Element implements Delayed {
        final long number;
        final long deadline;

        Element(long number, long delay) {
            this.number = number;
            deadline = System.nanoTime() + delay;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.signum(deadline - ((Element) other).deadline);
        }
    }

    // ---- Fill the queue, wait until all have expired, empty it.

    static void fill(Bench bench, long elements, long[] threadCounts) throws Exception {
        for (long threads : threadCounts) {
            Figures out = bench.figures("W9", "T", threads, "N", elements);
            double[] both = new double[MEASURED];
            double[] push = new double[MEASURED];
            double[] take = new double[MEASURED];
            for (int i = -WARM_UPS; i < MEASURED; i++) {
                long[] took = fillAndEmpty(elements, (int) threads);
                if (i < 0) continue;
                push[i] = took[0] / (double) elements;
                take[i] = took[1] / (double) elements;
                both[i] = push[i] + take[i];
            }
            out.emit("ns_per_op", median(both), "ns");
            out.emit("push_ns", median(push), "ns");
            out.emit("take_ns", median(take), "ns");
            if (threads == 1) memory(out, elements);
        }
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }

    /** Gives how long it took to insert all elements, and to take all. */
    private static long[] fillAndEmpty(long elements, int threads) throws Exception {
        DelayQueue<Element> queue = new DelayQueue<>();
        long push = Threads.together(threads, number -> push(queue, elements, number, threads));
        letExpire(elements);
        AtomicLong taken = new AtomicLong();
        long take = Threads.together(threads, number -> taken.addAndGet(takeAll(queue)));
        if (taken.get() != elements) {
            throw new IllegalStateException(taken + " of " + elements + " elements came out");
        }
        return new long[] {push, take};
    }

    /** With two threads every second element for each: the delays of both grow alike. */
    private static void push(DelayQueue<Element> queue, long elements, int number, int threads) {
        for (long i = number; i < elements; i += threads) queue.put(new Element(i, i));
    }

    /** As long as in the other languages. */
    private static void letExpire(long elements) {
        Threads.sleepUntil(System.nanoTime() + elements + 2_000_000);
    }

    private static long takeAll(DelayQueue<Element> queue) {
        long taken = 0;
        long sum = 0;
        for (Element e = queue.poll(); e != null; e = queue.poll()) {
            taken++;
            sum += e.number;
        }
        if (sum < 0) throw new IllegalStateException();
        return taken;
    }

    private static void memory(Figures out, long elements) {
        long before = out.heap();
        DelayQueue<Element> queue = new DelayQueue<>();
        push(queue, elements, 0, 1);
        out.emit("bytes_per_element", (out.heap() - before) / (double) elements, "B");
        // The collector must not take the queue before it is weighed.
        queue.clear();
    }

    // ---- Insert and remove, while others are pending.

    static void mixed(Bench bench, long pending, long wanted, long[] threadCounts)
            throws Exception {
        long operations = Math.min(wanted, MOST_REMOVALS);
        for (long threads : threadCounts) {
            Figures out = bench.figures("W9-mixed",
                "P", pending, "T", threads, "N", operations);
            DelayQueue<Element> queue = new DelayQueue<>();
            Threads.Body prepare = number -> {
                Random random = new Random(1 + 1000 * number);
                long end = pending * (number + 1) / threads;
                for (long i = pending * number / threads; i < end; i++) {
                    queue.put(new Element(i, random.far()));
                }
                churn(queue, 2 + 1000 * number, operations / 4 / threads);
            };
            long took = Threads.prepared((int) threads, prepare, () -> {},
                number -> churn(queue, 50 + number, operations / threads));
            out.emit("ns_per_op", took / (double) operations, "ns");
        }
    }

    private static void churn(DelayQueue<Element> queue, long seed, long operations) {
        Random random = new Random(seed);
        Element[] elements = new Element[100];
        for (long i = 0; i < operations; i++) {
            int slot = (int) (i % elements.length);
            Element element = new Element(i, random.far());
            queue.put(element);
            if (elements[slot] != null) queue.remove(elements[slot]);
            elements[slot] = element;
        }
        for (Element element : elements) {
            if (element != null) queue.remove(element);
        }
    }
}
