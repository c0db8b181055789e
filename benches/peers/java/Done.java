import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** Waits until so many tasks have run. */
final class Done {
    private final AtomicLong count = new AtomicLong();
    private final long target;
    private final Thread waiter = Thread.currentThread();

    Done(long target) {
        this.target = target;
    }

    void hit() {
        if (count.incrementAndGet() == target) LockSupport.unpark(waiter);
    }

    void await() {
        while (count.get() < target) LockSupport.parkNanos(500_000_000L);
    }
}
