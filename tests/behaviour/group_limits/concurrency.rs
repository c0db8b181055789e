//! Many tasks, many workers and many threads at once: the order and the limit hold, and nothing is left over.

use std::{thread, time::Duration};

use punctual::{Group, ScheduledThreadPoolExecutor as Executor};

use super::support::{Overlap, assert_sound};
use crate::{
    rounds::rounds,
    support::{LONG, Log, eventually},
};

fn executor(workers: usize) -> Executor {
    Executor::new(workers)
}

fn drained(group: &Group) {
    eventually("all have ended", || {
        let now = group.statistics();
        now.pending == 0 && now.active == 0
    });
    assert_sound(group.statistics());
}

/// G61, G62, M178: with a limit of one the tasks of a group run in the order of their submission, on as many workers as there are.
#[test]
fn the_order_is_strict() {
    for _ in rounds("groups: the order is strict", 400) {
        let executor = executor(4);
        let group = executor.group("g").limit(1).build().unwrap();
        let (log, overlap) = (Log::new(), Overlap::default());
        for number in 0..300 {
            let (log, overlap) = (log.clone(), overlap.clone());
            group.task().execute(move || overlap.run(|| log.push(number))).unwrap();
            if number % 5 == 0 {
                executor.execute(|| ()).unwrap();
            }
        }
        drained(&group);
        assert_eq!((log.entries(), overlap.most()), ((0..300).collect::<Vec<_>>(), 1));
    }
}

/// G61, G62: each submitter finds its own tasks in order, and no more run at once than the limit says.
#[test]
fn several_submitters() {
    for round in rounds("groups: several submitters", 400) {
        let executor = executor(4);
        let limit = 1 + round % 3;
        let group = executor.group("g").limit(limit).build().unwrap();
        let (log, overlap) = (Log::new(), Overlap::default());
        thread::scope(|scope| {
            for thread in 0..3 {
                let (group, log, overlap) = (&group, &log, &overlap);
                scope.spawn(move || {
                    for number in 0..100 {
                        let (log, overlap) = (log.clone(), overlap.clone());
                        group
                            .task()
                            .execute(move || overlap.run(|| log.push((thread, number))))
                            .unwrap();
                    }
                });
            }
        });
        drained(&group);
        assert!(overlap.most() <= limit);
        let log = log.entries();
        assert_eq!(log.len(), 300);
        if limit == 1 {
            for thread in 0..3 {
                assert!(log.iter().filter(|entry| entry.0 == thread).is_sorted());
            }
        }
    }
}

/// G61, G63: everything at once: tasks are submitted, moved, paused and cancelled, the limit, the pool and the pause of the
/// group change, and nothing is lost or stranded.
#[test]
fn nothing_is_stranded() {
    for round in rounds("groups: nothing is stranded", 300) {
        let executor = executor(3);
        let group = executor.group("g").limit(2).build().unwrap();
        let overlap = Overlap::default();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for number in 0..150_u64 {
                        let overlap = overlap.clone();
                        let delay = Duration::from_micros(number % 4 * 20);
                        let task =
                            group.task().schedule(delay, move || overlap.run(|| ())).unwrap();
                        match number % 10 {
                            1 => _ = task.cancel(),
                            2 => _ = task.reschedule(Duration::from_micros(50)),
                            3 => _ = (task.pause(), task.resume()),
                            4 => _ = task.run_now(),
                            _ => {}
                        }
                    }
                });
            }
            scope.spawn(|| {
                for number in 0..60 {
                    match number % 6 {
                        0 => _ = group.pause(),
                        1 | 3 => _ = group.resume(),
                        2 => group.set_limit(1 + number % 2).unwrap(),
                        4 => executor.set_core_pool_size(1 + number % 3),
                        _ if round % 4 == 0 => _ = group.cancel_all(),
                        _ => group.set_reserved(number % 2),
                    }
                    thread::yield_now();
                }
                group.resume();
            });
        });
        drained(&group);
        assert!(overlap.most() <= 2);
        assert_eq!(group.statistics().submitted, 300);
    }
}

/// G63: periodic tasks share a limit while the group is paused and resumed, and each goes on.
#[test]
fn series_share_a_limit() {
    for _ in rounds("groups: series share a limit", 100) {
        let executor = executor(3);
        let group = executor.group("g").limit(1).build().unwrap();
        let (log, overlap) = (Log::new(), Overlap::default());
        let micros = Duration::from_micros(50);
        let series: Vec<_> = (0..4)
            .map(|number| {
                let (log, overlap) = (log.clone(), overlap.clone());
                let tick = move || overlap.run(|| log.push(number));
                group.task().schedule_with_fixed_delay(micros, micros, tick).unwrap()
            })
            .collect();
        for _ in 0..20 {
            group.pause();
            thread::yield_now();
            group.resume();
        }
        eventually("each has run", || {
            let log = log.entries();
            (0..4).all(|number| log.iter().filter(|entry| **entry == number).count() >= 10)
        });
        series.iter().for_each(|one| _ = one.cancel());
        drained(&group);
        assert_eq!(overlap.most(), 1);
    }
}

/// G64: the executor ends while its group is busy: everything has ended.
#[test]
fn an_end_in_the_middle() {
    for round in rounds("groups: an end in the middle", 800) {
        let executor = executor(3);
        let group = executor.group("g").limit(1 + round % 2).build().unwrap();
        let tasks: Vec<_> =
            (0..50).map(|number| group.task().submit(move || number).unwrap()).collect();
        if round % 5 == 4 {
            group.pause();
        }
        match round % 4 {
            0 => drop(executor),
            1 => drop((executor.shutdown_now(), executor)),
            2 => drop((group.shutdown_now(), executor)),
            _ => {
                group.shutdown();
                assert_eq!(group.await_termination(LONG), Ok(true));
                assert!(tasks.iter().all(|task| task.is_done()));
            }
        }
        assert!(tasks.iter().all(|task| task.join_within(LONG).is_some()));
        drained(&group);
        assert!(group.is_terminated());
    }
}
