//! A wait leaves no waker on the token that could have ended it.

use std::time::Duration;

use super::*;
use crate::{
    DelayQueue, ExecutorCompletionService, Limit, ScheduledFuture, ScheduledThreadPoolExecutor,
    TaskSet,
};

const SOON: Duration = Duration::from_millis(5);

/// Takes the wakers off the lists of the token, and returns how many there were.
fn left_on(token: &CancellationToken) -> usize {
    let take = |signal: &Signal| {
        let left = signal.waiters.lock().take_wakers();
        left.len()
    };
    token.signals().map(take).sum()
}

fn task(executor: &ScheduledThreadPoolExecutor) -> ScheduledFuture<()> {
    executor.schedule(SOON, || ()).expect("it is open")
}

/// A call that waits and soon ends by itself.
type Wait = fn(ScheduledThreadPoolExecutor, &CancellationToken);

const WAITS: [(&str, Wait); 9] = [
    ("sleep", |_, token| _ = token.sleep(SOON)),
    ("join", |executor, token| drop(task(&executor).join_within(token))),
    ("close", |executor, token| {
        task(&executor);
        executor.close_within(token).expect("not on a worker");
    }),
    ("join all", |executor, token| {
        let mut both: TaskSet<()> = [task(&executor), task(&executor)].into_iter().collect();
        drop(both.join_all_within(token));
    }),
    ("take completed", |executor, token| {
        let service = ExecutorCompletionService::new(&executor);
        service.push(task(&executor));
        drop(service.take_within(token));
    }),
    ("invoke all", |executor, token| drop(executor.invoke_all_within(vec![sleep], token))),
    ("invoke any", |executor, token| {
        let sleep = || {
            sleep();
            Ok::<_, ()>(())
        };
        drop(executor.invoke_any_within(vec![sleep], token));
    }),
    ("take", |_, token| {
        let queue = DelayQueue::new();
        queue.insert(SOON, ()).expect("it is open");
        drop(queue.take_within(token));
    }),
    ("poll", |_, token| drop(DelayQueue::<()>::new().take_within(Limit::from(SOON).unless(token)))),
];

fn sleep() {
    CancellationToken::new().sleep(SOON).expect("it is never raised");
}

/// M34: no kind of wait leaves a waker on the token or its parent, whether it ends by itself or because the token is
/// cancelled.
#[test]
fn a_wait_leaves_nothing_on_its_token() {
    for (what, wait) in WAITS {
        for is_raised in [false, true] {
            let parent = CancellationToken::new();
            let token = parent.child();
            if is_raised {
                parent.cancel();
            }
            wait(ScheduledThreadPoolExecutor::new(1), &token);
            assert_eq!(left_on(&token), 0, "{what}, raised: {is_raised}");
        }
    }
}
