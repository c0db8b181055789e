//! One measurement of one revision: `ci/compare.sh` builds this program against each of two
//! revisions, and runs the two programs in turn.
//!
//! The argument names a workload, and the program prints the nanoseconds that one operation took. The
//! workloads are those of `benches/peers` with the same numbers, cut down to about a second. As there,
//! the thread that is measured has scheduled the pending tasks itself, so that they are in the part of
//! the queue that it uses. `memory` prints the bytes of a pending task and the size of its future.
//!
//! Both revisions have to compile this, so it uses the public interface only, and the oldest part of it.

use std::{
    env,
    hint::black_box,
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use punctual::{DelayQueue, ScheduledFuture, ScheduledThreadPoolExecutor};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// The tasks that are pending while W1 schedules and cancels.
const PENDING: u64 = 1_000;

/// The random numbers of `benches/peers`: splitmix64.
struct Rng(u64);

impl Rng {
    /// One to two hours: nothing falls due meanwhile.
    #[inline]
    fn far(&mut self) -> Duration {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        Duration::from_micros(3_600_000_000 + (((z >> 32) * 3_600_000_000) >> 32))
    }
}

/// Counts runs down, and wakes the thread that waits for the last.
struct Done {
    left: AtomicU64,
    waiter: Thread,
}

impl Done {
    /// It lives as long as the process, so that a task captures a plain reference.
    fn new(count: u64) -> &'static Self {
        let left = AtomicU64::new(count);
        Box::leak(Box::new(Self { left, waiter: thread::current() }))
    }

    fn hit(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waiter.unpark();
        }
    }

    fn wait(&self) {
        while self.left.load(Ordering::Acquire) > 0 {
            thread::park();
        }
    }
}

fn pool() -> ScheduledThreadPoolExecutor {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(2);
    let pool = builder.build().expect("the settings are good");
    // Its threads have begun when a task has run.
    pool.submit(|| 1).expect("it is open").join().expect("it runs");
    pool
}

fn end(pool: ScheduledThreadPoolExecutor) {
    drop(pool.shutdown_now());
}

/// It captures a word, as a task of a program does.
fn tiny() -> impl FnOnce() + Send + 'static {
    static SINK: AtomicU64 = AtomicU64::new(0);
    let sink = &SINK;
    move || _ = sink.fetch_add(1, Ordering::Relaxed)
}

type Futures = Vec<ScheduledFuture<()>>;

fn schedule(pool: &ScheduledThreadPoolExecutor, rng: &mut Rng, count: u64) -> Futures {
    let mut futures = Vec::with_capacity(count as usize);
    for _ in 0..count {
        futures.push(pool.schedule(rng.far(), tiny()).expect("it is open"));
    }
    futures
}

fn schedule_and_cancel(pool: &ScheduledThreadPoolExecutor, rng: &mut Rng, count: u64) {
    for _ in 0..count {
        let future = pool.schedule(rng.far(), tiny()).expect("it is open");
        black_box(future.cancel());
    }
}

/// W1: each thread schedules its part of the pending tasks, and then schedules and cancels.
fn w1(threads: u64) -> f64 {
    let (pool, each) = (pool(), 4_000_000 / threads);
    let (ready, go) = (Barrier::new(threads as usize + 1), Barrier::new(threads as usize + 1));
    let work = |number: u64| {
        let mut rng = Rng(100 + number);
        let pending = schedule(&pool, &mut rng, PENDING / threads);
        schedule_and_cancel(&pool, &mut rng, each / 10);
        ready.wait();
        go.wait();
        schedule_and_cancel(&pool, &mut rng, each);
        pending
    };
    let took = thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        ready.wait();
        let start = Instant::now();
        go.wait();
        let pending: Vec<_> =
            running.into_iter().map(|thread| thread.join().expect("it ends")).collect();
        let took = start.elapsed();
        drop(pending);
        took
    });
    end(pool);
    nanos(took, each * threads)
}

/// W2: far tasks into an empty queue, several times.
fn w2() -> f64 {
    repeated(4, 1_000_000, |count| {
        let (pool, mut rng) = (pool(), Rng(100));
        let start = Instant::now();
        let futures = schedule(&pool, &mut rng, count);
        let took = start.elapsed();
        end(pool);
        drop(futures);
        took
    })
}

/// W3: tasks without delay, from the first call to the last run.
fn w3_zero() -> f64 {
    repeated(3, 1_000_000, |count| {
        let (pool, done) = (pool(), Done::new(count));
        let start = Instant::now();
        for _ in 0..count {
            drop(pool.schedule(Duration::ZERO, move || done.hit()).expect("it is open"));
        }
        done.wait();
        let took = start.elapsed();
        end(pool);
        took
    })
}

/// W3: tasks that are all due at one instant, from that instant to the last run.
fn w3_at_once() -> f64 {
    repeated(3, 500_000, |count| {
        let (pool, done) = (pool(), Done::new(count));
        let due = Instant::now() + Duration::from_millis(250);
        for _ in 0..count {
            let delay = due.saturating_duration_since(Instant::now());
            drop(pool.schedule(delay, move || done.hit()).expect("it is open"));
        }
        let start = Instant::now().max(due);
        done.wait();
        let took = start.elapsed();
        end(pool);
        took
    })
}

/// W6: a result at a time.
fn w6_ping() -> f64 {
    let pool = pool();
    repeated(2, 50_000, |count| in_windows(&pool, count, 1))
}

/// W6: results in windows of 256.
fn w6_pipelined() -> f64 {
    let pool = pool();
    repeated(2, 1_000_000, |count| in_windows(&pool, count, 256))
}

/// All futures are kept, and then joined.
fn futures_kept() -> f64 {
    let pool = pool();
    repeated(5, 300_000, |count| in_windows(&pool, count, count))
}

fn in_windows(pool: &ScheduledThreadPoolExecutor, count: u64, window: u64) -> Duration {
    let mut futures = Vec::with_capacity(window as usize);
    let mut done = 0;
    let start = Instant::now();
    while done < count {
        futures.extend((0..window).map(|_| pool.submit(|| 1_u32).expect("it is open")));
        futures.drain(..).for_each(|future| _ = black_box(future.join().expect("it runs")));
        done += window;
    }
    start.elapsed()
}

/// W9: elements of a delay queue, inserted and taken, without the wait in between.
fn w9_queue() -> f64 {
    repeated(4, 1_000_000, |count| {
        let queue = DelayQueue::new();
        let start = Instant::now();
        for element in 0..count {
            queue.insert(Duration::from_nanos(element), element).expect("it is open");
        }
        let inserted = start.elapsed();
        thread::sleep(Duration::from_nanos(count) + Duration::from_millis(2));
        let start = Instant::now();
        let mut taken = 0;
        while let Some(element) = queue.poll() {
            black_box(element);
            taken += 1;
        }
        assert_eq!(taken, count, "every element comes out");
        inserted + start.elapsed()
    })
}

/// W8: a million tasks are pending; shut down now, until the threads are gone and the tasks dropped.
fn w8() -> f64 {
    repeated(4, 1_000_000, |count| {
        let pool = pool();
        let futures = schedule(&pool, &mut Rng(100), count);
        let start = Instant::now();
        end(pool);
        let took = start.elapsed();
        drop(futures);
        took
    })
}

/// Does a workload once to warm up, and so many times to be measured. Returns nanoseconds for each
/// of its `count` operations.
fn repeated(times: u64, count: u64, mut work: impl FnMut(u64) -> Duration) -> f64 {
    work(count);
    let took: Duration = (0..times).map(|_| work(count)).sum();
    nanos(took, times * count)
}

fn nanos(took: Duration, count: u64) -> f64 {
    took.as_nanos() as f64 / count as f64
}

/// The bytes that are allocated for a pending task, without the caller's list of futures.
fn bytes_per_task() -> f64 {
    const COUNT: u64 = 100_000;
    let (pool, mut rng) = (pool(), Rng(100));
    counting::start();
    let futures = schedule(&pool, &mut rng, COUNT);
    let bytes = counting::so_far().bytes;
    counting::stop();
    let list = futures.capacity() * size_of::<ScheduledFuture<()>>();
    end(pool);
    (bytes - list as i64) as f64 / COUNT as f64
}

fn main() {
    let workload = env::args().nth(1).expect("usage: compare WORKLOAD");
    let ns_per_op = match workload.as_str() {
        "w1-one-thread" => w1(1),
        "w1-two-threads" => w1(2),
        "w2" => w2(),
        "w3-zero" => w3_zero(),
        "w3-atonce" => w3_at_once(),
        "w6-ping" => w6_ping(),
        "w6-pipelined" => w6_pipelined(),
        "w8" => w8(),
        "w9-kept" => futures_kept(),
        "w9-queue" => w9_queue(),
        "memory" => {
            println!("{:.1} {}", bytes_per_task(), size_of::<ScheduledFuture<()>>());
            return;
        }
        _ => panic!("no workload is called {workload}"),
    };
    println!("{ns_per_op:.2}");
}
