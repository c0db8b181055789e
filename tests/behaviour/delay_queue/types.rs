//! The delay queue's types: their auto traits and their `Debug` output.

use std::{cell::Cell, error::Error, rc::Rc, sync::Arc, time::Duration};

use punctual::{DelayQueue, ManualClock, ScheduledThreadPoolExecutor, delay_queue::Key};

use crate::{
    delay_queue::support::{fill, queue_by_hand},
    support::{Log, ms},
};

fn is_send_and_sync<T: Send + Sync>(_: &T) {}
fn is_send_and_unpin<T: Send + Unpin>(_: &T) {}

/// A queue of `Send` elements is `Sync`, and its waits are `Send`.
#[test]
fn a_queue_of_send_elements_is_sync() {
    let queue = Arc::new(DelayQueue::<Cell<u32>>::new());
    is_send_and_sync(&queue);
    is_send_and_unpin(&queue.next());
    is_send_and_unpin(&queue.stream());
    is_send_and_unpin(&queue.expirations());
    is_send_and_unpin(&queue.drain());
    is_send_and_unpin(&Box::pin(async { queue.next().await }));
}

/// Elements need not be sendable, comparable, printable or `'static`, as long as one thread has
/// them.
#[test]
fn elements_may_be_anything() {
    struct Plain<'a>(Rc<Cell<&'a str>>);
    let text = String::from("borrowed");
    let queue = DelayQueue::with_clock(ManualClock::new());
    let key = queue.insert(Duration::ZERO, Plain(Rc::new(Cell::new(&text))));
    let key = key.expect("the queue is open");
    assert!(format!("{queue:?}").contains('1'));
    assert_eq!(queue.peek_key(), Some(key));
    assert_eq!(queue.poll().map(|expired| expired.element.0.get()), Some("borrowed"));
    let shared = DelayQueue::with_clock(ManualClock::new());
    shared.insert(Duration::ZERO, Rc::new(1)).expect("the queue is open");
    assert_eq!(shared.peek().map(|queued| queued.element), Some(Rc::new(1)));
}

/// Every type can be printed, without its elements and without waiting.
#[test]
fn everything_can_be_printed() {
    struct Unprintable;
    let (_clock, queue) = queue_by_hand::<Unprintable>();
    queue.insert(ms(1), Unprintable).expect("the queue is open");
    queue.close();
    let shown = format!("{queue:?}");
    assert!(shown.contains("len: 1") && shown.contains("is_closed: true"), "{shown}");
    let (next, stream) = (queue.next(), queue.stream());
    for text in [format!("{next:?}"), format!("{stream:?}")] {
        assert!(text.contains(&shown), "{text}");
    }
    let refused = queue.insert(ms(1), Unprintable).expect_err("it is closed");
    assert!(format!("{refused:?}").contains("Closed"));
    assert_eq!(refused.to_string(), refused.error().to_string());
}

/// `Refused` is an error like others.
#[test]
fn a_refused_element_is_an_error() {
    fn fails(queue: &DelayQueue<u32>) -> Result<Key, Box<dyn Error + Send + Sync>> {
        Ok(queue.insert(ms(1), 1)?)
    }
    let queue = DelayQueue::new();
    assert!(fails(&queue).is_ok());
    queue.close();
    let error = fails(&queue).expect_err("it is closed");
    assert!(error.to_string().contains("closed"), "{error}");
    let reason =
        queue.insert(ms(1), 1).map_err(|refused| refused.error()).expect_err("it is closed");
    assert_eq!(reason.to_string(), error.to_string());
}

/// A queue and an executor share one clock: a worker that waits for an element is idle, and time
/// advances through the deadlines of both.
#[test]
fn a_queue_shares_its_clock_with_an_executor() {
    let clock = ManualClock::new();
    let executor = ScheduledThreadPoolExecutor::builder().core_pool_size(2).clock(clock.clone());
    let executor = executor.build().expect("the settings are good");
    let queue = Arc::new(DelayQueue::with_clock(clock.clone()));
    let (taker, log, time) = (Arc::clone(&queue), Log::new(), clock.clone());
    let seen = log.clone();
    let taking = executor.submit(move || {
        let taken = taker.expirations().map(|expired| expired.element);
        taken.for_each(|n| seen.push((n, time.elapsed())));
    });
    let putter = Arc::clone(&queue);
    let put = executor.schedule(ms(2), move || fill(&putter, [2]));
    queue.insert_all([(ms(3), 3), (ms(1), 1)]).expect("the queue is open");
    clock.run_for(ms(10));
    assert_eq!(log.entries(), [(1, ms(1)), (2, ms(2)), (3, ms(3))]);
    queue.close();
    taking.expect("it is open").join().expect("it ends");
    put.expect("it is open").join().expect("it ends");
}
