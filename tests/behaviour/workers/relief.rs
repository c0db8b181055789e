//! A due task never waits while the pool may have another worker, although idle workers retire: two
//! of the workers that wait for tasks stay, and a worker that leaves behind a task which no other
//! will take starts another worker.

use std::{
    io,
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use punctual::{
    Builder, Handle, ManualClock, ScheduledFuture, ScheduledThreadPoolExecutor, Submission,
    TaskRun, Worker, current_task,
};

use crate::{
    support::start,
    support::{Counter, LONG, Log, elsewhere, eventually, manual_with, ms},
};

const HOUR: Duration = Duration::from_secs(3600);

/// An executor that asks its tasks to stop when it is dropped, because no thread advances the clock
/// for them then.
struct Fleeting(ScheduledThreadPoolExecutor);

impl Deref for Fleeting {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.0
    }
}

impl Drop for Fleeting {
    fn drop(&mut self) {
        drop(self.shutdown_now());
    }
}

fn made(settings: impl FnOnce(Builder) -> Builder) -> (ManualClock, Fleeting) {
    let (clock, executor) = manual_with(settings);
    (clock, Fleeting(executor))
}

/// An executor with this many workers, which retire when they have been idle for ten milliseconds.
fn fleeting(core_pool_size: usize) -> (ManualClock, Fleeting) {
    made(|builder| fleeting_with(builder, core_pool_size))
}

fn fleeting_with(builder: Builder, core_pool_size: usize) -> Builder {
    builder.core_pool_size(core_pool_size).keep_alive(ms(10)).allows_core_thread_timeout(true)
}

/// The same with a log of the started threads; the threads with these numbers fail to start.
fn counted(core_pool_size: usize, fails: fn(usize) -> bool) -> (ManualClock, Fleeting, Counter) {
    let started = Counter::new();
    let count = started.clone();
    let (clock, executor) = made(|builder| {
        fleeting_with(builder, core_pool_size).thread_factory(move |worker: Worker| {
            count.add();
            if fails(count.get()) { Err(io::Error::other("not now")) } else { start(worker) }
        })
    });
    (clock, executor, started)
}

/// In a task: is busy for this long, on the executor's clock.
fn work(span: Duration) {
    let _ = current_task().expect("this is a task").token().sleep(span);
}

/// Schedules a task that is busy for this long, and records when it begins.
fn note_in(
    executor: &Handle,
    delay: Duration,
    span: Duration,
    clock: &ManualClock,
    begun: &Log<Duration>,
) -> ScheduledFuture<()> {
    let (clock, begun) = (clock.clone(), begun.clone());
    let task = move || {
        begun.push(clock.elapsed());
        work(span);
    };
    executor.schedule(delay, task).expect("it is open")
}

/// Advances from deadline to deadline. This does not use `run_for`, which makes every worker check
/// again.
fn go_on(clock: &ManualClock, span: Duration) {
    let end = clock.elapsed() + span;
    clock.run_until_idle();
    while clock.elapsed() < end {
        let left = end - clock.elapsed();
        clock.advance(clock.next_deadline().map_or(left, |next| next.min(left)));
        clock.run_until_idle();
    }
}

/// One of two workers is busy for long, the other has nothing to do for longer than the keep-alive:
/// a periodic task is on time all the same, and so is a single task, whichever worker was first.
#[test]
fn a_task_due_while_one_of_two_workers_is_busy_is_on_time() {
    for is_busy_first in [false, true] {
        let (clock, executor) = fleeting(2);
        let (beats, single) = (Log::new(), Log::new());
        let busy = || executor.submit(|| work(ms(850))).unwrap();
        let first = is_busy_first.then(busy);
        clock.run_until_idle();
        let (time, log) = (clock.clone(), beats.clone());
        let beat = move || log.push(time.elapsed());
        let beat = executor.schedule_at_fixed_rate(ms(100), ms(100), beat).unwrap();
        let once = note_in(&executor, ms(450), ms(0), &clock, &single);
        let first = first.unwrap_or_else(busy);
        go_on(&clock, ms(849));
        assert!(!first.is_done());
        assert_eq!(beats.entries(), (1..=8).map(|n| n * ms(100)).collect::<Vec<_>>());
        assert_eq!(single.entries(), [ms(450)]);
        assert!(once.is_done());
        assert!(beat.cancel());
        go_on(&clock, ms(11));
        assert_eq!(executor.pool_size(), 0);
    }
}

/// A task that waits for one that is due later is not refused, and gets its result in time: the
/// other worker has stayed for the later task.
#[test]
fn a_task_may_wait_for_one_that_is_due_later() {
    let waits: [fn(ScheduledFuture<i32>) -> i32; 2] = [
        |inner| {
            inner.wait().expect("the pool may have another worker");
            inner.join().unwrap()
        },
        |inner| inner.join().expect("the pool may have another worker"),
    ];
    for wait in waits {
        let (clock, executor) = fleeting(2);
        let handle = Handle::clone(&executor);
        let outer = executor.submit(move || {
            let inner = handle.schedule(ms(100), || 7).unwrap();
            // Long enough for an idle worker to retire.
            work(ms(50));
            wait(inner)
        });
        go_on(&clock, ms(100));
        assert_eq!(outer.unwrap().try_join().expect("it has ended").unwrap(), 7);
    }
}

/// If there is no other worker because none could be started, the joining worker starts one.
#[test]
fn joining_a_task_starts_the_missing_worker() {
    for fails in [|number| number == 2, |number| number >= 2] {
        let (clock, executor, started) = counted(2, fails);
        let handle = Handle::clone(&executor);
        let outer = executor.submit(move || handle.schedule(ms(100), || 7).unwrap().join());
        go_on(&clock, ms(100));
        let joined = outer.unwrap().try_join().expect("it has ended").unwrap();
        let is_refused = fails(3);
        assert_eq!((joined.is_err(), started.get()), (is_refused, 3));
    }
}

/// Several due tasks that take a while begin at once, as many as there may be workers; also after a
/// shutdown.
#[test]
fn tasks_due_at_once_begin_at_once() {
    for (tasks, shuts_down) in [(3, false), (5, false), (3, true), (5, true)] {
        let (clock, executor, started) = counted(tasks, |_| false);
        let begun = Log::new();
        for _ in 0..tasks {
            drop(note_in(&executor, ms(100), ms(50), &clock, &begun));
        }
        go_on(&clock, ms(50));
        assert_eq!(executor.pool_size(), 2, "a leader and a deputy");
        if shuts_down {
            executor.shutdown();
        }
        go_on(&clock, ms(50));
        assert_eq!(begun.entries(), vec![ms(100); tasks]);
        go_on(&clock, ms(60));
        assert_eq!((executor.pool_size(), executor.pending_count()), (0, 0));
        assert_eq!((executor.is_terminated(), started.get()), (shuts_down, 2 * tasks - 2));
    }
}

/// If the core grows while its only worker is busy, another worker starts for the pending tasks,
/// also after a shutdown.
#[test]
fn a_larger_core_runs_waiting_tasks() {
    for shuts_down in [false, true] {
        let (clock, executor) = fleeting(1);
        let begun = Log::new();
        let _busy = executor.submit(|| work(ms(200))).unwrap();
        drop(note_in(&executor, ms(100), ms(0), &clock, &begun));
        go_on(&clock, ms(50));
        if shuts_down {
            executor.shutdown();
        }
        executor.set_core_pool_size(2);
        go_on(&clock, ms(60));
        assert_eq!(begun.entries(), [ms(100)]);
    }
}

/// If core threads may no longer time out, and then may again, the needed ones stay.
#[test]
fn core_thread_timeouts_that_change_retire_no_needed_worker() {
    let (clock, executor) = fleeting(3);
    let begun = Log::new();
    let _busy = executor.submit(|| work(HOUR)).unwrap();
    drop(note_in(&executor, ms(100), ms(50), &clock, &begun));
    drop(note_in(&executor, ms(100), ms(50), &clock, &begun));
    for allow in [false, true, false, true] {
        executor.set_allows_core_thread_timeout(allow).unwrap();
        go_on(&clock, ms(20));
    }
    go_on(&clock, ms(20));
    assert_eq!(begun.entries(), [ms(100); 2]);
}

/// While two periodic tasks continue no thread starts or retires, and none wakes between their
/// runs; without them no thread is left.
#[test]
fn no_thread_comes_or_goes_with_two_beats() {
    let (clock, executor, started) = counted(4, |_| false);
    let beats = [ms(30), ms(50)]
        .map(|period| executor.schedule_at_fixed_rate(period, period, || ()).unwrap());
    go_on(&clock, ms(1_500));
    assert_eq!((started.get(), executor.pool_size()), (2, 2));
    assert_eq!(executor.statistics().runs, 50 + 30);
    assert!(beats[0].cancel());
    go_on(&clock, ms(10));
    assert_eq!(executor.pool_size(), 1, "one beat needs one worker");
    go_on(&clock, ms(1_500));
    assert_eq!((started.get(), executor.pool_size()), (2, 1));
    assert!(beats[1].cancel());
    go_on(&clock, ms(10));
    assert_eq!(executor.pool_size(), 0);
}

/// Two workers have stayed for two tasks, and each takes one: the first to finish stays for the
/// other's task, and retires when that is done as well.
#[test]
fn an_idle_worker_goes_when_another_has_run_the_last_task() {
    for span in [ms(0), ms(5), ms(500)] {
        let (clock, executor) = fleeting(2);
        let begun = Log::new();
        executor.prestart_all_core_threads().unwrap();
        let late = note_in(&executor, ms(101), span, &clock, &begun);
        let soon = note_in(&executor, ms(100), ms(0), &clock, &begun);
        go_on(&clock, ms(101));
        assert_eq!(begun.entries(), [ms(100), ms(101)]);
        assert_eq!((soon.is_done(), late.is_done()), (true, span.is_zero()));
        go_on(&clock, span + ms(10));
        assert_eq!(executor.pool_size(), 0);
    }
}

/// If two workers have stayed for two tasks, one retires when one of the tasks is cancelled, in
/// whichever way, and the other when the other task is.
#[test]
fn an_idle_worker_goes_when_the_last_task_is_cancelled() {
    let ways: [fn(&Handle, &ScheduledFuture<()>); 3] = [
        |_, task| assert!(task.cancel()),
        |executor, task| assert!(executor.remove(task)),
        |executor, _| {
            executor.set_executes_existing_delayed_tasks_after_shutdown(false);
            executor.set_continues_existing_periodic_tasks_after_shutdown(true);
            executor.shutdown();
        },
    ];
    for (number, end) in ways.into_iter().enumerate() {
        let (clock, executor) = fleeting(3);
        executor.prestart_all_core_threads().unwrap();
        let beat = executor.schedule_at_fixed_rate(HOUR, HOUR, || ()).unwrap();
        let far = executor.schedule(2 * HOUR, || ()).unwrap();
        go_on(&clock, ms(20));
        assert_eq!(executor.pool_size(), 2);
        end(&executor, &far);
        clock.run_until_idle();
        assert_eq!(executor.pool_size(), 1);
        assert!(beat.cancel());
        clock.run_until_idle();
        assert_eq!((executor.pool_size(), executor.is_terminated()), (0, number == 2));
    }
}

/// A submission for which no thread can be started tries that once, if the other workers are busy.
#[test]
fn a_failing_thread_start_is_tried_once_for_each_task() {
    for core_timeout in [false, true] {
        let (clock, executor, tried) = counted(3, |number| number > 1);
        executor.set_allows_core_thread_timeout(core_timeout).unwrap();
        let _busy = executor.submit(|| work(ms(100))).unwrap();
        clock.run_until_idle();
        let futures = [2, 3, 4].map(|number| {
            let future = executor.submit(|| ()).unwrap();
            assert_eq!(tried.get(), number);
            future
        });
        go_on(&clock, ms(100));
        assert!(futures.iter().all(|task| task.is_done()));
    }
}

/// While the timer thread is being started no worker can be: the thread that starts it makes up for
/// that, although its own submission is refused.
#[test]
fn starting_the_timer_thread_makes_up_for_a_worker() {
    let (begun, gate, called) = (Log::new(), Counter::new(), Counter::new());
    let (wait, call) = (gate.clone(), called.clone());
    let (clock, executor) = made(|builder| {
        let builder = fleeting_with(builder, 5).thread_factory(move |worker: Worker| {
            if worker.name().ends_with("timeouts") {
                call.add();
                wait.wait_for(1);
            }
            start(worker)
        });
        builder.decorate_task(|task: &Submission<'_>| {
            assert!(task.name() != Some("impossible"), "no such task");
            |next: TaskRun<'_>| next.run()
        })
    });
    for _ in 0..4 {
        drop(note_in(&executor, ms(100), ms(50), &clock, &begun));
    }
    go_on(&clock, ms(50));
    assert_eq!(executor.pool_size(), 2);
    let handle = Handle::clone(&executor);
    let submitting = elsewhere(move || {
        let submit = || handle.task().name("impossible").timeout(LONG).execute(|| ());
        catch_unwind(AssertUnwindSafe(submit)).is_err()
    });
    called.wait_for(1);
    clock.advance(ms(50));
    // One more worker was there for the submission, but its keep-alive may expire before it has
    // checked the queue.
    eventually("two have begun", || begun.entries().len() >= 2);
    gate.add();
    eventually("the fourth has begun", || begun.entries().len() == 4);
    assert!(submitting.get());
    assert_eq!(begun.entries(), [ms(100); 4]);
    go_on(&clock, ms(60));
    assert_eq!(executor.pool_size(), 0);
}
