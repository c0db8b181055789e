use super::{
    retiring::{PoolView, Retirement},
    *,
};

fn new_workers(core: usize, core_timeout: bool) -> Workers {
    Workers::new(core, core_timeout, Duration::from_secs(1))
}

fn add_worker(workers: &Workers) -> usize {
    let permit = workers.spawn_permit(&|_| true).expect("nobody else starts a worker");
    permit.add_worker().0
}

/// Adds `count` workers that have finished their first search.
fn start_workers(workers: &Workers, count: usize) -> Vec<usize> {
    let numbers: Vec<_> = (0..count).map(|_| add_worker(workers)).collect();
    for number in &numbers {
        workers.mark_started(*number);
        workers.search_done(*number);
    }
    numbers
}

/// Returns what a worker sees beside `idle` idle ones, while `pending` tasks are pending.
fn seen(idle: usize, pending: usize) -> PoolView {
    PoolView { joined: 0, idle, pending }
}

/// Returns `true` if a worker whose keep-alive is over retires.
fn goes(workers: &Workers, number: usize, look: impl FnOnce() -> PoolView) -> bool {
    workers.try_retire(number, true, look, || ()) == Retirement::Retired(())
}

/// Returns `true` if an idle worker may retire once its keep-alive is over.
fn try_retire(workers: &Workers, look: impl FnOnce() -> PoolView) -> bool {
    workers.try_retire(1, false, look, || unreachable!("it is not over yet"))
        == Retirement::<()>::NotYet
}

/// Returns how many workers are live, how many are started, and the most that were ever started at once.
fn heads(workers: &Workers) -> [usize; 3] {
    assert_eq!((workers.started(), workers.live()), (workers.size(), workers.worker_stats().len()));
    let (started, largest, ()) = workers.count(|_| ());
    assert_eq!(started, workers.size());
    [workers.live(), started, largest]
}

#[test]
fn a_worker_is_live_once_added_and_started_once_it_begins() {
    let workers = new_workers(2, false);
    assert_eq!(heads(&workers), [0, 0, 0]);
    let numbers = [add_worker(&workers), add_worker(&workers), add_worker(&workers)];
    assert_eq!(heads(&workers), [3, 0, 0]);
    workers.mark_started(numbers[0]);
    workers.mark_started(numbers[1]);
    assert_eq!(heads(&workers), [3, 2, 2]);
    workers.mark_started(numbers[1]);
    workers.remove(numbers[2]);
    assert_eq!(heads(&workers), [2, 2, 2]);
    workers.remove(numbers[0]);
    assert_eq!(heads(&workers), [1, 1, 2]);
    workers.remove(numbers[0]);
    workers.mark_started(numbers[2]);
    assert_eq!(heads(&workers), [1, 1, 2], "a removed worker stays removed");
}

/// Idle workers check again if there are too many of them now, or if one has stayed because all others were joining
/// tasks.
#[test]
fn a_starting_worker_reports_whether_others_must_check_again() {
    let differences = |core, core_timeout| {
        let workers = new_workers(core, core_timeout);
        [(); 4].map(|()| workers.mark_started(add_worker(&workers)))
    };
    assert_eq!(differences(2, false), [false, false, true, true]);
    assert_eq!(differences(3, false), [false, false, false, true]);
    assert_eq!(differences(3, true), [false, false, false, true]);
    assert!(!new_workers(0, false).mark_started(1), "it was never added");

    let workers = new_workers(3, true);
    start_workers(&workers, 2);
    assert!(!try_retire(&workers, || PoolView { joined: 1, idle: 0, pending: 0 }));
    assert!(workers.mark_started(add_worker(&workers)));
    assert!(!workers.staying.ends_beside_joins(), "the notification is consumed");
}

/// A surplus worker retires whatever is pending. A worker within the pool's size stops counting before it looks for
/// work, so a submission that still counted it has put its task where the worker looks.
#[test]
fn a_surplus_worker_may_retire_and_the_last_one_only_without_work() {
    let workers = new_workers(1, false);
    let numbers = start_workers(&workers, 2);
    assert!(workers.may_have_surplus());
    assert!(goes(&workers, numbers[0], || seen(0, 9)));
    assert_eq!(heads(&workers), [1, 1, 2]);
    assert!(!workers.may_have_surplus());
    assert!(!goes(&workers, numbers[1], || unreachable!("it is a core worker")));
    workers.set_core_size(0);
    let looks = |finds| {
        assert_eq!(workers.started(), 0, "a worker that may retire does not count");
        seen(0, finds)
    };
    assert!(!goes(&workers, numbers[1], || looks(1)));
    assert_eq!(heads(&workers), [1, 1, 2]);
    assert!(goes(&workers, numbers[1], || looks(0)));
    assert_eq!(heads(&workers), [0, 0, 2]);
}

/// One worker stays idle for one pending task, and two for several, however many are busy.
#[test]
fn workers_that_time_out_leave_a_leader_and_a_deputy() {
    let stays = |idle, pending| {
        let workers = new_workers(9, true);
        let numbers = start_workers(&workers, 5);
        let stays = !try_retire(&workers, || seen(idle, pending));
        let has_gone = goes(&workers, numbers[0], || {
            assert_eq!(workers.started(), 4);
            seen(idle, pending)
        });
        assert_eq!((stays, workers.size()), (!has_gone, if has_gone { 4 } else { 5 }));
        stays
    };
    assert_eq!([0, 1, 2, 9].map(|pending| stays(0, pending)), [false, true, true, true]);
    assert_eq!([0, 1, 2, 9].map(|pending| stays(1, pending)), [false, false, true, true]);
    assert_eq!([0, 1, 2, 9].map(|pending| stays(2, pending)), [false; 4]);
}

/// A worker that stays is notified when there are fewer tasks than it stays for, and only once.
#[test]
fn a_worker_that_stays_for_tasks_is_notified_when_fewer_remain() {
    let workers = new_workers(9, true);
    start_workers(&workers, 5);
    let is_notified = |pending| workers.staying.ends_for_tasks(|least| pending >= least);
    assert!(!is_notified(0), "no worker stays");
    assert!(!try_retire(&workers, || seen(0, 5)));
    assert_eq!([5, 1, 0, 0].map(is_notified), [false, false, true, false]);
    assert!(!try_retire(&workers, || seen(1, 5)));
    assert!(!try_retire(&workers, || seen(0, 5)));
    assert_eq!([2, 1, 0].map(is_notified), [false, true, false]);
    assert!(!try_retire(&workers, || {
        assert!(is_notified(1), "while it looks, it may stay for any reason");
        seen(0, 1)
    }));
    assert!(try_retire(&workers, || seen(1, 1)));
    assert_eq!([1, 0].map(is_notified), [false, true]);
}

/// A relief worker is started for the remaining tasks if the pool may have one more and no worker is about to search.
#[test]
fn at_most_one_relief_worker_is_started_at_a_time() {
    let workers = new_workers(3, true);
    let may_start = |is_left| workers.try_spawn_permit(|| is_left).is_some();
    let numbers = start_workers(&workers, 2);
    assert_eq!([false, true].map(may_start), [false, true]);
    let permit = workers.spawn_permit(&|_| true).expect("no other thread starts a worker");
    assert!(!may_start(true), "another thread starts one");
    let (new, _) = permit.add_worker();
    drop(permit);
    assert!(!may_start(true), "one is being started");
    workers.remove(numbers[0]);
    assert!(!may_start(true));
    workers.mark_started(new);
    assert!(!may_start(true), "one has not searched yet");
    workers.search_done(new);
    assert!(may_start(true));
    workers.announce_search(new);
    workers.announce_search(new);
    assert!(!may_start(true), "one searches again");
    workers.search_done(new);
    workers.search_done(new);
    assert!(may_start(true));
    workers.announce_search(new);
    workers.remove(new);
    assert!(may_start(true));
    start_workers(&workers, 2);
    assert!(!may_start(true), "the pool has its full size");
}

/// A worker that joins a task runs nothing meanwhile, so one that joins none has to stay.
#[test]
fn a_surplus_worker_stays_if_all_others_join_tasks() {
    let workers = new_workers(1, true);
    let numbers = start_workers(&workers, 3);
    let beside = |joined| move || PoolView { joined, idle: 0, pending: 0 };
    assert!(!goes(&workers, numbers[0], beside(2)));
    assert!(goes(&workers, numbers[0], beside(1)));
    assert!(!try_retire(&workers, beside(1)));
    assert!(workers.staying.ends_beside_joins());
    assert!(!workers.staying.ends_beside_joins());
    assert!(!goes(&workers, numbers[1], beside(1)));
    assert!(goes(&workers, numbers[1], beside(0)));
}
