//! How many instructions each call executes, and how many of them are read-modify-writes or fences:
//! run by `ci/instructions.sh`, under callgrind.
//!
//! Counts are exact, and the same on every machine with the same compiler. So nothing here may
//! depend on which thread is faster: there is only one thread. The executor's thread factory keeps
//! the worker, which runs on this thread when there are tasks to run; its last task ends it.
//!
//! Each `counted_…` function makes `CALLS` calls of one kind and nothing else, and is never
//! inlined: callgrind collects inside of these functions alone, and the script divides by the
//! number of calls. They run with the given number of other tasks or elements pending for an hour.

#![allow(clippy::expect_used, reason = "it measures")]
#![allow(clippy::print_stdout, reason = "it says what it counts")]

use std::{
    collections::VecDeque,
    env,
    hint::black_box,
    mem,
    pin::Pin,
    sync::mpsc,
    task::{Context, Waker},
    time::Duration,
};

use punctual::{
    CancellationToken, Debounced, DelayQueue, Extender, Handle, ScheduledFuture,
    ScheduledThreadPoolExecutor, WaitForCancellation, Worker, delay_queue::Key,
};

/// The number of calls of each kind.
const CALLS: u64 = 2_000;
/// The entries of a stripe that is nearly empty.
const FEW: u64 = 8;
const HOUR: Duration = Duration::from_secs(3_600);
const NEAR: Duration = Duration::from_millis(1);

/// A delay of more than an hour, never in order, so that such entries are in the heap.
fn far(number: u64) -> Duration {
    HOUR + Duration::from_nanos(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24)
}

/// An executor whose only worker is run by hand, with pending tasks.
struct Subject {
    executor: ScheduledThreadPoolExecutor,
    worker: mpsc::Receiver<Worker>,
    /// The futures of the pending tasks, kept as a user keeps them.
    _waiting: Futures,
}

impl Subject {
    fn new(pending: u64) -> Self {
        let (keep, worker) = mpsc::channel();
        let factory = move |worker: Worker| {
            keep.send(worker).expect("the subject has the other end");
            Ok(None)
        };
        let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
        let executor = builder.thread_factory(factory).build().expect("the settings are good");
        assert!(executor.prestart_core_thread().expect("the factory does not fail"));
        let schedule = |number| executor.schedule(far(number), move || number);
        let _waiting = (0..pending).map(|number| schedule(number).expect("it is open")).collect();
        Self { executor, worker, _waiting }
    }

    /// Submits a task behind all due ones, which ends the worker, and returns the worker.
    fn ending_worker(&self) -> Worker {
        let handle = self.executor.handle();
        self.executor.execute(move || end(&handle)).expect("it is open");
        self.worker()
    }

    fn worker(&self) -> Worker {
        self.worker.try_recv().expect("there is one")
    }
}

/// Ends the executor without dropping its pending tasks, because those drops would be counted.
fn end(handle: &Handle) {
    mem::forget(handle.shutdown_now());
}

type Futures = Vec<ScheduledFuture<u64>>;

#[inline(never)]
fn counted_schedule(executor: &Handle, futures: &mut Futures) {
    for number in 0..CALLS {
        futures.push(executor.schedule(far(number), move || number).expect("it is open"));
    }
}

#[inline(never)]
fn counted_cancel(futures: &Futures) {
    for future in futures {
        black_box(future.cancel());
    }
}

#[inline(never)]
fn counted_drop_of_a_future_of_a_waiting_task(futures: Futures) {
    drop(futures);
}

#[inline(always)]
fn schedule_and_cancel(executor: &Handle) {
    for number in 0..CALLS {
        let future = executor.schedule(far(number), move || number).expect("it is open");
        black_box(future.cancel());
    }
}

#[inline(never)]
fn counted_schedule_and_cancel_far(executor: &Handle) {
    schedule_and_cancel(executor);
}

#[inline(never)]
fn counted_schedule_and_cancel_near(executor: &Handle) {
    for number in 0..CALLS {
        let future = executor.schedule(NEAR, move || number).expect("it is open");
        black_box(future.cancel());
    }
}

/// As `far`, into a stripe that has no entry: each task becomes the head, and leaves nothing behind.
#[inline(never)]
fn counted_schedule_and_cancel_into_empty(executor: &Handle) {
    schedule_and_cancel(executor);
    // Otherwise it would be identical to the function below, and merged with it.
    black_box(executor);
}

/// As `far`, into a stripe with `FEW` entries.
#[inline(never)]
fn counted_schedule_and_cancel_into_few(executor: &Handle) {
    schedule_and_cancel(executor);
    black_box(CALLS);
}

/// A timer that is made, polled once and dropped, as that of a request that is in time.
#[inline(never)]
fn counted_sleep_and_drop(executor: &Handle) {
    let mut context = Context::from_waker(Waker::noop());
    for number in 0..CALLS {
        let mut timer = executor.sleep(far(number));
        assert!(Pin::new(&mut timer).poll(&mut context).is_pending());
    }
}

#[inline(never)]
fn counted_reschedule(future: &ScheduledFuture<u64>) {
    for number in 0..CALLS {
        assert!(future.reschedule(far(number)));
    }
}

#[inline(never)]
fn counted_extend(extender: &Extender) {
    for _ in 0..CALLS {
        assert!(extender.extend(HOUR));
    }
}

#[inline(never)]
fn counted_debounced_call(task: &Debounced) {
    for _ in 0..CALLS {
        assert!(task.call());
    }
}

#[inline(never)]
fn counted_submit(executor: &Handle, futures: &mut Futures) {
    for number in 0..CALLS {
        futures.push(executor.submit(move || number).expect("it is open"));
    }
}

#[inline(never)]
fn counted_execute(executor: &Handle) {
    for number in 0..CALLS {
        executor.execute(move || _ = black_box(number)).expect("it is open");
    }
}

#[inline(never)]
fn counted_take_and_run(worker: Worker) {
    worker.run();
}

#[inline(never)]
fn counted_join(futures: &Futures) {
    for future in futures {
        black_box(future.join().expect("it has run"));
    }
}

#[inline(never)]
fn counted_drop_of_a_future_of_a_task_that_has_ended(futures: Futures) {
    drop(futures);
    // As above.
    black_box(CALLS);
}

#[inline(never)]
fn counted_fixed_rate_run(worker: Worker) {
    worker.run();
    // Otherwise it would be identical to the function above, and merged with it.
    black_box(CALLS);
}

#[inline(never)]
fn counted_shutdown_now(executor: &Handle) {
    drop(executor.shutdown_now());
}

#[inline(never)]
fn counted_delay_queue_insert(queue: &DelayQueue<u64>, keys: &mut Vec<Key>) {
    for number in 0..CALLS {
        keys.push(queue.insert(far(number), number).expect("it is open"));
    }
}

#[inline(never)]
fn counted_delay_queue_reset(queue: &DelayQueue<u64>, keys: &[Key]) {
    for (key, number) in keys.iter().zip(CALLS..) {
        assert!(queue.reset(*key, far(number)));
    }
}

#[inline(never)]
fn counted_delay_queue_remove(queue: &DelayQueue<u64>, keys: &[Key]) {
    for key in keys {
        black_box(queue.remove(*key));
    }
}

#[inline(never)]
fn counted_delay_queue_take(queue: &DelayQueue<u64>) {
    for _ in 0..CALLS {
        black_box(queue.take());
    }
}

fn count_submission(pending: u64) {
    let subject = Subject::new(pending);
    let capacity = || Vec::with_capacity(CALLS as usize);
    let mut futures = capacity();
    counted_schedule(&subject.executor, &mut futures);
    counted_cancel(&futures);
    let mut detached = capacity();
    for number in 0..CALLS {
        let future = subject.executor.schedule(far(number), move || number);
        detached.push(future.expect("it is open"));
    }
    counted_drop_of_a_future_of_a_waiting_task(detached);
    counted_schedule_and_cancel_far(&subject.executor);
    counted_schedule_and_cancel_near(&subject.executor);
    counted_sleep_and_drop(&subject.executor);
    let moved = subject.executor.schedule(far(0), || 0).expect("it is open");
    counted_reschedule(&moved);
    let (task, extender) = subject.executor.task().extender();
    let extended = task.schedule(HOUR, || 0).expect("it is open");
    counted_extend(&extender);
    let called = subject.executor.task().debounce(HOUR, || ()).expect("it is open");
    assert!(called.call());
    counted_debounced_call(&called);
    // Its worker does not run, so nothing may wait for it.
    mem::forget((subject, called, extended));
}

/// Whatever the number of other tasks is: a program with few timers, or with a stripe for each thread,
/// finds its stripe like this. On one core there is one stripe, so the subject's tasks are in it.
fn count_submission_into_small_stripes() {
    let subject = Subject::new(0);
    counted_schedule_and_cancel_into_empty(&subject.executor);
    mem::forget(subject);

    let subject = Subject::new(FEW);
    counted_schedule_and_cancel_into_few(&subject.executor);
    mem::forget(subject);
}

fn count_runs(pending: u64) {
    let subject = Subject::new(pending);
    let mut futures = Vec::with_capacity(CALLS as usize);
    counted_submit(&subject.executor, &mut futures);
    counted_take_and_run(subject.ending_worker());
    counted_join(&futures);
    counted_drop_of_a_future_of_a_task_that_has_ended(futures);
    mem::forget(subject);

    let subject = Subject::new(pending);
    counted_execute(&subject.executor);
    mem::forget(subject);

    let subject = Subject::new(pending);
    let (handle, mut runs) = (subject.executor.handle(), 0);
    let body = move || {
        runs += 1;
        if runs == CALLS {
            end(&handle);
        }
    };
    let period = Duration::from_nanos(1);
    let beat = subject.executor.schedule_at_fixed_rate(Duration::ZERO, period, body);
    drop(beat.expect("it is open"));
    counted_fixed_rate_run(subject.worker());
    mem::forget(subject);
}

/// For each task that is pending.
fn count_shutdown() {
    let subject = Subject::new(CALLS);
    counted_shutdown_now(&subject.executor);
    mem::forget(subject);
}

fn count_delay_queue(pending: u64) {
    let queue = DelayQueue::new();
    for number in 0..pending {
        queue.insert(far(number), number).expect("it is open");
    }
    let mut keys = Vec::with_capacity(CALLS as usize);
    counted_delay_queue_insert(&queue, &mut keys);
    counted_delay_queue_reset(&queue, &keys);
    counted_delay_queue_remove(&queue, &keys);
    for number in 0..CALLS {
        queue.insert(Duration::ZERO, number).expect("it is open");
    }
    counted_delay_queue_take(&queue);
}

/// A wait begins, and the one that began before all others is given up.
#[inline(never)]
fn counted_wait_for_token_and_drop(
    token: &CancellationToken,
    waits: &mut VecDeque<WaitForCancellation>,
) {
    for _ in 0..CALLS {
        waits.push_back(begin_wait(token));
        drop(waits.pop_front());
    }
}

fn begin_wait(token: &CancellationToken) -> WaitForCancellation {
    let mut wait = token.cancelled();
    assert!(Pin::new(&mut wait).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    wait
}

/// The list is that of all waits which end otherwise: for a token, for termination, for a completion.
fn count_waits(pending: u64) {
    let token = CancellationToken::new();
    let mut waits = (0..pending).map(|_| begin_wait(&token)).collect();
    counted_wait_for_token_and_drop(&token, &mut waits);
    // In the order of their drops a list that is linear would take minutes, and no count would say so.
    mem::forget(waits);
}

fn main() {
    // All other arguments (`--bench`, `--test`) are cargo's: then one small round shows that the
    // program works.
    let pending = env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(10);
    // First: the cost of a wait's node depends on what earlier calls have left in the allocator, and
    // what the workers free there differs from run to run.
    count_waits(pending);
    count_submission(pending);
    count_submission_into_small_stripes();
    count_runs(pending);
    count_shutdown();
    count_delay_queue(pending);
    println!("{CALLS} calls of each kind");
}
