//! Taking from a completion service inside a task: which waits are refused, and which are not.

use std::sync::mpsc;

use punctual::{
    ExecutorCompletionService, ScheduledFuture, ScheduledThreadPoolExecutor, TaskError,
};

use crate::support::{Counter, LONG, in_time, ms, receive};

fn joined<T: 'static>(task: ScheduledFuture<T>) -> T {
    task.join_within(LONG).expect("it ends").unwrap()
}

/// The only worker is refused a wait for a task that it alone could run, but not one with a limit;
/// the service is unaffected.
#[test]
fn the_last_worker_does_not_take() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let handle = executor.handle();
    let service = joined(
        executor
            .submit(move || {
                let service = ExecutorCompletionService::new(&handle);
                service.submit(|| 7).unwrap();
                assert!(matches!(service.take(), Err(TaskError::WouldDeadlock)));
                assert!(service.take_within(ms(1)).ok().flatten().is_none());
                service
            })
            .unwrap(),
    );
    assert_eq!(joined(service.take().unwrap().unwrap()), 7);
}

/// A worker can wait for a task that another worker, or another executor, runs.
#[test]
fn tasks_run_by_other_workers_can_be_taken() {
    let (one, other) = (ScheduledThreadPoolExecutor::new(1), ScheduledThreadPoolExecutor::new(1));
    let two = ScheduledThreadPoolExecutor::new(2);
    for (executor, runner) in [(&two, &two), (&one, &other)] {
        let service = ExecutorCompletionService::new(executor);
        service.push(runner.schedule(ms(5), || 7).unwrap());
        let take = move || service.take().unwrap().unwrap().join().unwrap();
        assert_eq!(joined(executor.submit(take).unwrap()), 7);
    }
}

/// If two workers both wait for tasks that neither runs, the second is refused.
#[test]
fn of_two_takers_one_goes_on() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let both = Counter::new();
    let takers = [1, 2].map(|number| {
        let (handle, both) = (executor.handle(), both.clone());
        let take = move || {
            both.add();
            both.wait_for(2);
            let service = ExecutorCompletionService::new(&handle);
            service.submit(move || number).unwrap();
            service.take().map(|future| joined(future.expect("it was submitted")))
        };
        executor.submit(take).unwrap()
    });
    let results = takers.map(joined);
    let refused = results.iter().filter(|it| matches!(it, Err(TaskError::WouldDeadlock))).count();
    assert_eq!(refused, 1, "{results:?}");
    assert!(matches!(results, [Ok(1), _] | [_, Ok(2)]), "{results:?}");
}

/// A task that is the last one in the service does not wait for itself; tasks beside it are taken
/// first.
#[test]
fn a_task_does_not_take_itself() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let service = ExecutorCompletionService::new(&executor);
    let beside = service.submit(|| ()).unwrap();
    let (give, given) = mpsc::channel::<ExecutorCompletionService<()>>();
    let (tell, told) = mpsc::channel();
    let own = executor.submit(move || {
        let service = receive(&given, "it is given");
        let first = service.take().map(|future| future.map(|future| future.id()));
        tell.send((first, service.take().map(|future| future.map(|future| future.id())))).unwrap();
    });
    service.push(own.unwrap());
    give.send(service).unwrap();
    let (first, second) = receive(&told, "no wait is for ever");
    assert_eq!(first.unwrap(), Some(beside));
    assert!(matches!(second, Err(TaskError::WouldDeadlock)));
}

/// A task that wakes a taker can wait for the tasks that the taker will run: the taker counts as
/// awake from the wake-up on, and not only when it gets a core.
#[test]
fn a_taker_counts_as_awake_from_its_answer_on() {
    in_time("the rounds", || {
        let executor = ScheduledThreadPoolExecutor::new(2);
        for _ in 0..500 {
            let handle = executor.handle();
            let task = executor.submit(move || {
                let service = ExecutorCompletionService::new(&handle);
                service.submit(|| ()).unwrap();
                let inner = handle.clone();
                let next = handle.submit(move || inner.submit(|| 7).unwrap().join());
                assert!(service.take().unwrap().is_some());
                next.unwrap()
            });
            let next = joined(task.unwrap());
            assert_eq!(joined(next).unwrap(), 7);
        }
    });
}
