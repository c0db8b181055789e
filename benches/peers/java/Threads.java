import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Threads that begin together, and this thread. */
final class Threads {
    private Threads() {}

    interface Body {
        void run(int number) throws Exception;
    }

    interface Begin {
        void run() throws Exception;
    }

    /** Runs the body on threads that begin together. Gives how long they took. */
    static long together(int threads, Body body) throws Exception {
        return prepared(threads, number -> {}, () -> {}, body);
    }

    /**
     * The same, but each thread prepares itself first. When all have, this thread does what comes
     * before they begin.
     */
    static long prepared(int threads, Body prepare, Begin begin, Body body) throws Exception {
        CountDownLatch ready = new CountDownLatch(threads);
        CountDownLatch go = new CountDownLatch(1);
        List<Thread> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int number = i;
            Thread thread = new Thread(() -> {
                try {
                    prepare.run(number);
                    ready.countDown();
                    go.await();
                    body.run(number);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            thread.start();
            running.add(thread);
        }
        ready.await();
        begin.run();
        long start = System.nanoTime();
        go.countDown();
        for (Thread thread : running) thread.join();
        return System.nanoTime() - start;
    }

    static void sleepUntil(long instant) {
        while (System.nanoTime() < instant) LockSupport.parkNanos(instant - System.nanoTime());
    }

    /** To be called after the measurement, so that the collector leaves the futures alone. */
    static void keepAlive(Object[] futures) {
        if (futures.length > 0 && futures[0] == null) throw new IllegalStateException();
    }
}
