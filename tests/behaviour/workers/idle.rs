//! An idle pool does nothing: its threads sleep, and nothing wakes them. Linux reports how often a
//! thread has given up its core.

#![cfg(target_os = "linux")]

use std::{fs, thread, time::Duration};

use punctual::ScheduledThreadPoolExecutor;

use crate::support::{Counter, eventually};

/// State and number of context switches of each thread with this name, by thread.
fn workers(name: &str) -> Vec<(String, char, u64)> {
    let mut workers = Vec::new();
    for task in fs::read_dir("/proc/self/task").expect("the kernel lists threads").flatten() {
        let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_default().trim_start_matches(':').trim().to_owned()
        };
        if field("Name").starts_with(name) {
            let switches = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
            let count = switches.iter().filter_map(|key| field(key).parse::<u64>().ok()).sum();
            workers.push((field("Pid"), field("State").chars().next().unwrap_or('?'), count));
        }
    }
    workers.sort();
    workers
}

/// Waits until all the threads with this name sleep, and checks that they are not scheduled.
fn assert_asleep(name: &str, count: usize) {
    eventually("all sleep", || {
        let now = workers(name);
        now.len() == count && now.iter().all(|(_, state, _)| *state == 'S')
    });
    // This test measures elapsed time. A thread appears asleep a moment before its switch is counted, and a process
    // that is continued has had all of its threads scheduled: then the next span counts.
    let mut seen = workers(name);
    let is_still = |_| {
        thread::sleep(Duration::from_millis(200));
        let before = std::mem::replace(&mut seen, workers(name));
        seen == before
    };
    assert!((0..20).any(is_still), "in no span of twenty: {seen:?}");
}

/// G7: with only far-off tasks the workers are not scheduled at all.
#[test]
fn an_idle_pool_does_nothing() {
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(3).thread_name("idlers");
    let executor = builder.build().expect("the settings are good");
    let ran = Counter::new();
    for _ in 0..3 {
        let ran = ran.clone();
        executor.execute(move || ran.add()).expect("it is open");
    }
    ran.wait_for(3);
    for hours in 1..4 {
        let far = Duration::from_secs(hours * 3600);
        drop(executor.schedule(far, || ()).expect("it is open"));
    }
    assert_asleep("idlers", 3);
}

/// CN-041: without core threads, and with one that may time out, the worker that stays for a
/// far-off task is not scheduled either: it does not wake to check whether it may retire.
#[test]
fn a_worker_that_stays_for_a_task_does_nothing() {
    for (core, name) in [(0, "coreless"), (1, "fleeting")] {
        let executor = ScheduledThreadPoolExecutor::builder()
            .core_pool_size(core)
            .keep_alive(Duration::from_millis(1))
            .allows_core_thread_timeout(core > 0)
            .thread_name(name)
            .build()
            .expect("the settings are good");
        // The worker itself schedules it, so that it finds the task when it checks whether it may
        // retire.
        let (handle, far) = (executor.handle(), Duration::from_secs(3600));
        let scheduling = executor.submit(move || handle.schedule(far, || ()).map(drop));
        scheduling.expect("it is open").join().expect("it runs").expect("it is open");
        assert_asleep(name, 1);
        let now = executor.statistics();
        assert_eq!((now.pool_size, now.largest_pool_size), (1, 1));
        assert_eq!((now.pending, now.completed), (1, 1));
    }
}
