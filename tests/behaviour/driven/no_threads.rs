//! No thread is started, whatever is used. Linux says how many there are; the test is a program of its own, where
//! no other test has any.

#![cfg(target_os = "linux")]

use std::{env, fs, process::Command};

use punctual::{
    CancellationToken, FailurePolicy, ScheduledThreadPoolExecutor, current_task,
    gate::{Entry, from_fn},
    trigger::at,
};

use super::SECOND;
use crate::support::{in_time, ms};

const CHILD: &str = "PUNCTUAL_TEST_CHILD";

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("Linux has it").count()
}

/// G57: neither a worker nor a timer thread nor a watcher is started.
#[test]
fn no_thread_is_started() {
    if env::var_os(CHILD).is_some() {
        return use_everything();
    }
    let (_, module) = module_path!().split_once("::").expect("not the root");
    let mut program = Command::new(env::current_exe().expect("a test is a program"));
    let test = format!("{module}::no_thread_is_started");
    program.args(["--exact", &test, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    let output = in_time("the program", move || program.output()).expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// On the system's clock: tasks, rates, limits, gates, timers, the wall clock, and every way to stop.
fn use_everything() {
    let before = threads();
    let factory = |_| panic!("no thread is to be started");
    let builder = ScheduledThreadPoolExecutor::builder().thread_factory(factory).core_pool_size(4);
    let mut executor = builder.prestart_core_threads(true).build_driven().unwrap();
    let check = |what: &str| assert_eq!(threads(), before, "{what}");
    let answer = executor.schedule(ms(1), || 7).unwrap();
    let limited = executor.task().timeout(ms(1)).schedule(3_600 * SECOND, || ()).unwrap();
    let budget = executor.task().timeout(ms(1)).on_failure(FailurePolicy::resume());
    let beat = budget.schedule_at_fixed_rate(ms(1), ms(1), || {
        let token: CancellationToken = current_task().unwrap().token().clone();
        assert!(token.sleep(ms(2)).is_err() || token.is_cancelled());
    });
    let beat = beat.unwrap();
    executor.task().gate(from_fn(|_| Entry::Run)).execute(|| ()).unwrap();
    // Far enough ahead for a thread that loses its core before the next line.
    let soon = executor.clock().wall_time() + ms(200);
    let on_wall = executor.repeat(at([soon]), || ()).unwrap();
    check("submitted");
    assert_eq!(executor.run_until(answer).unwrap(), 7);
    executor.run_until(on_wall).unwrap();
    let sleep = executor.sleep(ms(2));
    executor.run_until(sleep).unwrap();
    assert!(limited.run_now());
    while !limited.is_done() {
        executor.run_due();
    }
    executor.set_core_pool_size(9);
    assert!(executor.statistics().runs >= 4);
    check("run");
    let other = ScheduledThreadPoolExecutor::builder().build_driven().unwrap();
    other.execute(|| ()).unwrap();
    drop(other);
    beat.cancel();
    executor.schedule(ms(1), || ()).unwrap();
    executor.close();
    check("closed");
}
