//! The process: which events end it, by Rust's rules, and which do not, and how an executor behaves
//! if the process is stopped, starts other processes, or runs out of threads.
//!
//! Each test runs itself again as a program of its own, which is then looked at.

#![allow(clippy::print_stdout, reason = "a program says what it does")]

use std::{
    cell::RefCell,
    env, hint,
    io::{BufRead, BufReader},
    process::{self, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use punctual::{DelayQueue, MissedRuns, ScheduledThreadPoolExecutor as Executor, current_task};

use crate::{
    support::awaiting::block_on,
    support::{
        Bomb, Counter, LONG, Log,
        child::{self, assert_fine, run, said},
        eventually, hold, in_time, ms, next_of, worker_of,
    },
};

/// The test of this name as a program of its own; inside that program `None`.
fn again(test: &str) -> Option<Command> {
    child::again(module_path!(), test)
}

/// Checks that the program was ended by a signal, and has printed why.
fn assert_aborted(output: &Output, why: &str) {
    let said = said(output);
    assert!(!output.status.success() && said.contains(why), "{:?}: {said}", output.status);
    #[cfg(unix)]
    assert!(std::os::unix::process::ExitStatusExt::signal(&output.status).is_some(), "{said}");
}

/// Makes a worker do it, in a program that would otherwise continue.
fn have_a_worker(act: impl FnOnce() + Send + 'static) {
    let executor = Executor::new(1);
    executor.execute(act).expect("accepted");
    worker_of(&executor);
}

/// F4, G28: a one-shot body that panics while a capture panics aborts the process, as Rust
/// prescribes.
#[test]
fn a_body_and_a_capture_that_panic_at_once_abort() {
    let Some(program) = again("a_body_and_a_capture_that_panic_at_once_abort") else {
        let bomb = Bomb("a capture");
        return have_a_worker(move || {
            hold(&bomb);
            std::panic::panic_any("the body");
        });
    };
    assert_aborted(&run(program), "a capture");
}

/// F4: if the body catches it, such a panic is like any other.
#[test]
fn a_body_that_catches_its_panic_may_have_a_capture_that_panics() {
    let executor = Executor::new(1);
    let bomb = Bomb("a capture");
    let body = move || {
        hold(&bomb);
        std::panic::catch_unwind(|| std::panic::panic_any("the body")).is_err()
    };
    let ended = executor.submit(body).expect("accepted").join();
    let panic = ended.expect_err("the capture panics").into_failure().expect("a panic");
    assert_eq!(panic.message(), "a capture");
}

/// F9: a thread-local that panics in its drop when a worker ends aborts the process, as Rust
/// prescribes.
#[test]
fn a_thread_local_of_a_worker_that_panics_aborts() {
    thread_local!(static LOCAL: Bomb = const { Bomb("a thread-local") });
    let Some(program) = again("a_thread_local_of_a_worker_that_panics_aborts") else {
        let executor = Executor::new(1);
        executor.execute(|| LOCAL.with(hold)).expect("accepted");
        return executor.close().expect("not on a worker");
    };
    assert_aborted(&run(program), "a thread-local");
}

/// F16, G25, M66: a worker that owns its executor, in a thread-local, may end: the drop of the
/// executor waits for every thread except this one.
#[test]
fn a_worker_may_own_its_executor_in_a_thread_local() {
    type Owned = (Executor, mpsc::Sender<()>);
    thread_local!(static OWNED: RefCell<Option<Owned>> = const { RefCell::new(None) });
    let Some(program) = again("a_worker_may_own_its_executor_in_a_thread_local") else {
        for workers in [1, 2] {
            let executor = Executor::new(workers);
            executor.prestart_all_core_threads().expect("there are threads");
            let (handle, (goes, gone)) = (executor.handle(), mpsc::channel());
            let owning = handle.submit(move || OWNED.set(Some((executor, goes))));
            owning.expect("accepted").join().expect("it runs");
            handle.shutdown();
            assert_eq!(next_of(&gone, "the worker ends, and drops what it owns"), None);
            assert!(handle.is_terminated());
        }
        return;
    };
    assert_fine(&run(program));
}

/// This never returns.
#[expect(unconditional_recursion, reason = "that is the fault")]
fn recur(depth: u64) -> u64 {
    hint::black_box(recur(hint::black_box(depth) + 1)) + 1
}

/// F50: a task that overflows its stack, runs out of memory, or aborts, ends the process.
#[test]
fn a_stack_overflow_or_exhausted_memory_in_a_task_aborts() {
    const FAULT: &str = "PUNCTUAL_TEST_FAULT";
    let Some(_) = again("a_stack_overflow_or_exhausted_memory_in_a_task_aborts") else {
        return match &*env::var(FAULT).expect("it is set") {
            "stack" => have_a_worker(|| _ = recur(0)),
            "memory" => have_a_worker(|| drop(Vec::<u8>::with_capacity(isize::MAX as usize))),
            _ => have_a_worker(|| process::abort()),
        };
    };
    for (fault, why) in [("stack", "overflow"), ("memory", "memory allocation"), ("abort", "")] {
        let program = again("a_stack_overflow_or_exhausted_memory_in_a_task_aborts");
        let mut program = program.expect("not inside it");
        assert_aborted(
            &run({
                program.env(FAULT, fault);
                program
            }),
            why,
        );
    }
}

/// An executor without an owner that has a running task, a pending task that is due, one that is
/// not, and a periodic task.
fn abandon_an_executor() {
    let executor = Executor::new(1);
    let begun = Counter::new();
    let begins = begun.clone();
    executor
        .execute(move || {
            begins.add();
            loop {
                thread::park();
            }
        })
        .expect("accepted");
    executor.execute(|| println!("it ran")).expect("accepted");
    drop(executor.schedule(ms(20), || println!("it ran")).expect("accepted"));
    drop(executor.schedule_at_fixed_rate(LONG, LONG, || println!("it ran")).expect("accepted"));
    begun.wait_for(1);
    std::mem::forget(executor);
}

/// F43: a process whose main function returns ends at once, whatever its executors have to do.
#[test]
fn a_process_that_is_through_does_not_wait_for_tasks() {
    let Some(program) = again("a_process_that_is_through_does_not_wait_for_tasks") else {
        return abandon_an_executor();
    };
    let output = run(program);
    assert_fine(&output);
    assert!(!said(&output).contains("it ran"), "{}", said(&output));
}

/// F43: a process that calls `exit` ends at once too, also when a task calls it.
#[test]
fn a_process_that_exits_does_not_wait_for_tasks() {
    let Some(program) = again("a_process_that_exits_does_not_wait_for_tasks") else {
        abandon_an_executor();
        return have_a_worker(|| process::exit(7));
    };
    let output = run(program);
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert!(!said(&output).contains("it ran"), "{}", said(&output));
}

fn start_a_program() -> bool {
    let mut program = Command::new(env::current_exe().expect("a test is a program"));
    program.args(["--list", "no such test"]).stdout(Stdio::null());
    program.status().expect("it starts").success()
}

/// F42: programs can be started while threads submit and workers run, by these threads and by
/// others, and no task is lost.
#[test]
fn programs_can_be_started_under_load() {
    const SUBMISSIONS: u64 = 10_000;
    let executor = Executor::new(2);
    let programs = thread::scope(|scope| {
        let submit = || {
            for _ in 0..SUBMISSIONS {
                executor.execute(|| ()).expect("it is open");
                drop(executor.schedule(LONG, || ()).expect("it is open").cancel_on_drop());
            }
        };
        let submitters = [(); 2].map(|()| scope.spawn(submit));
        let mut programs = 0;
        while programs < 5 || !submitters.iter().all(thread::ScopedJoinHandle::is_finished) {
            let inside = executor.submit(start_a_program).expect("it is open");
            assert!(start_a_program());
            assert!(inside.join_within(LONG).expect("it ends").expect("it does not panic"));
            programs += 1;
        }
        programs
    });
    executor.shutdown();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    let now = executor.statistics();
    assert_eq!(now.completed, 2 * SUBMISSIONS + programs);
    assert_eq!(now.cancelled, 2 * SUBMISSIONS);
}

/// F20, M33: if the thread that wakes async waiters cannot be started, an element can be awaited
/// all the same, and is not taken early.
#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn without_a_thread_for_the_alarms_elements_can_be_awaited() {
    let Some(mut program) = again("without_a_thread_for_the_alarms_elements_can_be_awaited") else {
        let thread = thread::Builder::new().spawn(|| ());
        thread.expect_err("no thread can be started");
        for delay in 1..4 {
            let (queue, start) = (DelayQueue::new(), Instant::now());
            queue.insert(ms(delay), delay).expect("it is open");
            let expired = block_on(queue.next()).expect("it is open");
            assert!(expired.element == delay && start.elapsed() >= ms(delay));
        }
        return;
    };
    // More than the address space has room for.
    program.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
    assert_fine(&run(program));
}

const PERIOD: Duration = ms(5);
const PAUSE: Duration = ms(200);

/// One run: the moment it was planned for, and how late it began.
type Run = (Instant, Duration);

fn this_run() -> Run {
    let task = current_task().expect("inside a task");
    (task.planned().expect("it has a moment"), task.lateness())
}

/// Records the runs of tasks of every kind until some are as late as after a pause. A pause of the machine before is none of
/// this test's, and one after it is as good.
fn work_until_it_was_paused() {
    let executor = Executor::new(1);
    let [once, made_up, skipped, delayed] = [(); 4].map(|()| Log::<Run>::new());
    let (works, late) = (Counter::new(), Counter::new());
    let noting = |log: &Log<Run>| {
        let log = log.clone();
        move || log.push(this_run())
    };
    for number in 0..2_000 {
        // The submissions are not in the order of their deadlines.
        let delay = ms(5 * (number * 7 % 2_000));
        drop(executor.schedule(delay, noting(&once)).expect("accepted"));
    }
    let (note, has_worked, notices) = (noting(&made_up), works.clone(), late.clone());
    let made_up_for = executor.schedule_at_fixed_rate(PERIOD, PERIOD, move || {
        note();
        if has_worked.get() > 0 && this_run().1 >= PAUSE / 2 {
            notices.add();
        }
    });
    let skipping = executor.task().missed_runs(MissedRuns::Skip);
    let skipping = skipping.schedule_at_fixed_rate(PERIOD, PERIOD, noting(&skipped));
    let after = executor.schedule_with_fixed_delay(PERIOD, PERIOD, noting(&delayed));
    // A run is counted as skipped only between two runs, so the first must have taken place.
    for log in [&once, &made_up, &skipped] {
        eventually("it runs again and again", || log.entries().len() > 22);
    }
    works.add();
    println!("it works");
    late.wait_for(1);
    for log in [&made_up, &skipped, &delayed] {
        let seen = log.entries().len();
        eventually("it goes on", || log.entries().len() > seen + 2);
    }
    for series in [made_up_for, skipping, after] {
        assert!(series.expect("accepted").cancel());
    }
    executor.shutdown_now().for_each(drop);
    assert_eq!(executor.await_termination(LONG), Ok(true));

    let once = once.entries();
    assert!(once.len() > 20 && once.is_sorted_by_key(|run| run.0), "{once:?}");
    let gaps = |log: Log<Run>| {
        let runs = log.entries();
        let gap = |two: &[Run]| two[1].0 - two[0].0;
        runs.windows(2).map(gap).collect::<Vec<_>>()
    };
    let (made_up, skipped, delayed) = (gaps(made_up), gaps(skipped), gaps(delayed));
    assert!(made_up.len() > 20 && made_up.iter().all(|gap| *gap == PERIOD), "{made_up:?}");
    let on_the_grid = |gap: &Duration| gap.as_nanos() % PERIOD.as_nanos() == 0;
    assert!(skipped.iter().all(on_the_grid), "{skipped:?}");
    assert!(skipped.iter().any(|gap| *gap >= PAUSE / 2), "{skipped:?}");
    assert!(delayed.iter().all(|gap| *gap >= PERIOD), "{delayed:?}");
}

/// F41, M56: a process that was stopped and continued runs the tasks that it has missed in the
/// order of the deadlines: each run of a periodic task that makes up for all, none of a periodic
/// task that skips, and one with fixed delay.
#[test]
#[cfg(unix)]
fn a_process_that_was_stopped_catches_up() {
    let Some(mut program) = again("a_process_that_was_stopped_catches_up") else {
        return work_until_it_was_paused();
    };
    let mut program = program.spawn().expect("it starts");
    let id = program.id().to_string();
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &id]).status().expect("there is a `kill`");
        assert!(status.success(), "{name}");
    };
    let lines = BufReader::new(program.stdout.take().expect("it has one")).lines();
    let mut lines = lines.map(|line| line.expect("it can be read"));
    assert!(lines.any(|line| line.ends_with("it works")));
    signal("-STOP");
    // This test measures elapsed time.
    thread::sleep(PAUSE);
    signal("-CONT");
    let output = in_time("the program", || program.wait_with_output()).expect("it ends");
    assert_fine(&output);
}
