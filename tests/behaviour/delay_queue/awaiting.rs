//! Awaits elements with futures that are polled by hand: which async task is woken, when, and which
//! one gets an element if the woken task no longer wants it.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use punctual::{DelayQueue, ManualClock, delay_queue::NextExpired};

use crate::{
    delay_queue::support::{DAY, drained, element, fill, poll, queue_by_hand, until_asleep},
    support::awaiting::{Wakes, block_on},
    support::{LONG, elsewhere, eventually, ms},
};

/// An async task that is polled by hand.
struct Task<'a> {
    next: NextExpired<'a, u32>,
    wakes: Arc<Wakes>,
}

impl<'a> Task<'a> {
    /// Returns a task that waits.
    fn asleep(queue: &'a DelayQueue<u32>) -> Self {
        let mut task = Self { next: queue.next(), wakes: Wakes::new() };
        assert_eq!((task.poll(), task.wakes.count()), (Poll::Pending, 0));
        task
    }

    fn poll(&mut self) -> Poll<Option<u32>> {
        poll(&mut self.next, &self.wakes)
    }

    fn is_woken(&self) -> bool {
        self.wakes.count() > 0
    }
}

fn tasks(queue: &DelayQueue<u32>, count: usize) -> Vec<Task<'_>> {
    (0..count).map(|_| Task::asleep(queue)).collect()
}

/// The only one of them that has been woken.
fn woken(tasks: &[Task<'_>]) -> usize {
    let woken: Vec<_> = (0..tasks.len()).filter(|n| tasks[*n].is_woken()).collect();
    let [one] = woken[..] else { panic!("{woken:?} are woken") };
    one
}

/// The clock wakes a task at the deadline, and not before; then the task gets the element.
#[test]
fn a_task_is_woken_at_the_deadline() {
    let (clock, queue) = queue_by_hand();
    let key = queue.insert(ms(10), 1).expect("the queue is open");
    let mut next = queue.next();
    let wakes = Wakes::new();
    assert!(poll(&mut next, &wakes).is_pending());
    assert_eq!(clock.next_deadline(), Some(ms(10)));
    clock.advance(ms(10) - Duration::from_nanos(1));
    assert_eq!(wakes.count(), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(wakes.count(), 1);
    let expired = block_on(next).expect("the queue is open");
    assert_eq!((expired.element, expired.key, expired.deadline), (1, key, clock.now()));
    assert_eq!((Arc::strong_count(&wakes), clock.next_deadline()), (1, None));
}

/// On the system clock the alarm wakes a task, and not before the deadline.
#[test]
fn the_alarm_wakes_on_the_systems_clock() {
    let queue = DelayQueue::new();
    for n in 0..5 {
        let start = Instant::now();
        queue.insert(ms(n), n).expect("the queue is open");
        assert_eq!(element(block_on(queue.next())), Some(n));
        assert!(start.elapsed() >= ms(n));
    }
    queue.insert(DAY, 5).expect("the queue is open");
    let wakes = Wakes::new();
    let mut next = queue.next();
    assert!(poll(&mut next, &wakes).is_pending());
    assert!(queue.reset(queue.keys()[0], ms(1)));
    eventually("it is woken", || wakes.count() > 0);
    assert_eq!(element(block_on(next)), Some(5));
}

/// On the system clock an insertion ahead of a distant head wakes the waiter, thread or task.
#[test]
fn an_insertion_wakes_on_the_systems_clock() {
    for is_awaited in [false, true] {
        let queue = Arc::new(DelayQueue::new());
        queue.insert(DAY, 1).expect("the queue is open");
        let waiter = Arc::clone(&queue);
        let taken = elsewhere(move || {
            let taken = if is_awaited { block_on(waiter.next()) } else { waiter.take() };
            (taken, Instant::now())
        });
        let key = queue.insert(ms(2), 2).expect("the queue is open");
        let (expired, at) = taken.get();
        let expired = expired.expect("the queue is open");
        assert_eq!((expired.element, expired.key), (2, key));
        assert!(at >= expired.deadline);
    }
}

/// A manual clock that moves from deadline to deadline stops at an alarm.
#[test]
fn the_clock_goes_to_the_alarm_of_a_task() {
    let (clock, queue) = queue_by_hand();
    queue.insert_all([(ms(10), 1), (ms(30), 2)]).expect("the queue is open");
    for (step, n) in [(ms(10), 1), (ms(20), 2)] {
        let mut task = Task::asleep(&queue);
        assert_eq!(clock.advance_to_next_deadline(), Some(step));
        assert_eq!((task.wakes.count(), task.poll()), (1, Poll::Ready(Some(n))));
    }
    assert_eq!(clock.advance_to_next_deadline(), None);
}

/// Alarms of many queues on the system clock, set in the opposite order, all go off.
#[test]
fn many_alarms_all_ring() {
    let waits = (0..20).rev().map(|n| {
        elsewhere(move || {
            let start = Instant::now();
            let queue: DelayQueue<u64> = [(ms(n), n)].into_iter().collect();
            (element(block_on(queue.next())), start.elapsed() >= ms(n), n)
        })
    });
    for wait in waits.collect::<Vec<_>>() {
        let (taken, is_late_enough, n) = wait.get();
        assert_eq!((taken, is_late_enough), (Some(n), true));
    }
}

/// An element that expires at once is returned by the first poll, which keeps no waker.
#[test]
fn an_expired_element_is_ready_at_the_first_poll() {
    let (_clock, queue) = queue_by_hand();
    fill(&queue, [1]);
    let (mut next, wakes) = (queue.next(), Wakes::new());
    assert_eq!(poll(&mut next, &wakes), Poll::Ready(Some(1)));
    assert_eq!((Arc::strong_count(&wakes), wakes.count()), (1, 0));
}

/// A nearer insertion wakes the task, which then waits for that element; so does a reset to a
/// nearer deadline.
#[test]
fn a_nearer_head_wakes_a_task() {
    let (clock, queue) = queue_by_hand();
    queue.insert(DAY, 1).expect("the queue is open");
    let mut task = Task::asleep(&queue);
    queue.insert(ms(20), 2).expect("the queue is open");
    assert_eq!((task.wakes.count(), task.poll()), (1, Poll::Pending));
    assert_eq!(clock.next_deadline(), Some(ms(20)));
    queue.insert(ms(30), 3).expect("the queue is open");
    assert_eq!(task.wakes.count(), 1, "later is no news");
    assert!(queue.reset(queue.keys()[2], ms(10)));
    assert_eq!((task.wakes.count(), task.poll()), (2, Poll::Pending));
    assert_eq!(clock.next_deadline(), Some(ms(10)));
    clock.advance(ms(10));
    assert_eq!((task.wakes.count(), task.poll()), (3, Poll::Ready(Some(1))));
}

/// If the head is removed, the task is woken spuriously at most once, and waits for the next
/// element.
#[test]
fn a_task_follows_its_head_away() {
    let (clock, queue) = queue_by_hand();
    let key = queue.insert(ms(10), 1).expect("the queue is open");
    let mut task = Task::asleep(&queue);
    assert!(queue.reset(key, ms(20)));
    clock.advance(ms(10));
    assert!(task.wakes.count() <= 1);
    assert_eq!((task.poll(), clock.next_deadline()), (Poll::Pending, Some(ms(10))));
    assert_eq!(queue.remove(key), Some(1));
    clock.advance(DAY);
    assert_eq!((task.poll(), clock.next_deadline()), (Poll::Pending, None));
    fill(&queue, [2]);
    assert_eq!(task.poll(), Poll::Ready(Some(2)));
}

/// The waker of the last poll is woken, and earlier wakers are dropped at once.
#[test]
fn the_waker_of_the_last_poll_is_woken() {
    let (clock, queue) = queue_by_hand();
    queue.insert(ms(10), 1).expect("the queue is open");
    let (first, last, mut next) = (Wakes::new(), Wakes::new(), queue.next());
    for waker in [&first, &last, &first, &last] {
        assert!(poll(&mut next, waker).is_pending());
    }
    assert_eq!(Arc::strong_count(&first), 1);
    clock.advance(ms(10));
    assert_eq!((first.count(), last.count()), (0, 1));
    assert_eq!(poll(&mut next, &first), Poll::Ready(Some(1)));
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&last)), (1, 1));
}

/// Polling without having been woken changes nothing: there is one place in the list, one alarm,
/// one waker.
#[test]
fn polling_often_waits_once() {
    let (clock, queue) = queue_by_hand();
    queue.insert(ms(10), 1).expect("the queue is open");
    let mut task = Task::asleep(&queue);
    let held = Arc::strong_count(&task.wakes);
    for _ in 0..100 {
        assert_eq!(task.poll(), Poll::Pending);
        assert_eq!(Arc::strong_count(&task.wakes), held);
    }
    clock.advance(ms(10));
    assert_eq!((task.wakes.count(), task.poll()), (1, Poll::Ready(Some(1))));
}

/// M31: a future that is dropped before it is polled leaves no trace, and one that is dropped while
/// it waits drops its waker and its alarm; neither takes an element.
#[test]
fn a_dropped_task_leaves_nothing() {
    let (clock, queue) = queue_by_hand();
    queue.insert(ms(10), 1).expect("the queue is open");
    drop(queue.next());
    let task = Task::asleep(&queue);
    let wakes = Arc::clone(&task.wakes);
    drop(task);
    assert_eq!((Arc::strong_count(&wakes), clock.next_deadline()), (1, None));
    clock.advance(ms(10));
    assert_eq!((wakes.count(), element(queue.poll())), (0, Some(1)));
}

/// An insertion wakes one of many. If that one is dropped, another is woken in its place, and so on
/// until one takes the element.
#[test]
fn a_woken_task_that_is_dropped_passes_the_element_on() {
    let (_clock, queue) = queue_by_hand();
    let mut tasks = tasks(&queue, 5);
    fill(&queue, [1]);
    while tasks.len() > 1 {
        tasks.remove(woken(&tasks));
    }
    let last = woken(&tasks);
    assert_eq!(tasks[last].poll(), Poll::Ready(Some(1)));
}

/// The same holds for a leader, whether the clock has woken it or not.
#[test]
fn a_leader_that_is_dropped_passes_the_element_on() {
    let (clock, queue) = queue_by_hand();
    queue.insert(ms(10), 1).expect("the queue is open");
    for is_woken in [false, true] {
        let mut tasks = tasks(&queue, 3);
        clock.advance(if is_woken { ms(10) } else { ms(0) });
        drop(tasks.remove(0));
        let successor = woken(&tasks);
        let expected = if is_woken { Poll::Ready(Some(1)) } else { Poll::Pending };
        assert_eq!(tasks[successor].poll(), expected);
        // The current leader has set its alarm.
        assert_eq!(clock.next_deadline(), (!is_woken).then_some(ms(10)));
    }
}

/// If a task is dropped after it was woken for an element, a blocked thread gets the element.
#[test]
fn a_woken_task_that_is_dropped_passes_the_element_on_to_a_thread() {
    let (clock, queue) = queue_by_hand();
    let waiter = Arc::clone(&queue);
    let taken = elsewhere(move || element(waiter.take_within(DAY).ok().flatten()));
    until_asleep(&clock, DAY);
    // The waiter that began to wait last is woken first.
    let task = Task::asleep(&queue);
    fill(&queue, [1]);
    assert!(task.is_woken());
    drop(task);
    assert_eq!(taken.get(), Some(1));
}

/// The same holds for a leading task that has a thread as its follower.
#[test]
fn a_leading_task_that_is_dropped_leaves_the_lead_to_a_thread() {
    for is_woken in [false, true] {
        let (clock, queue) = queue_by_hand();
        queue.insert(ms(10), 1).expect("the queue is open");
        let task = Task::asleep(&queue);
        let waiter = Arc::clone(&queue);
        let taken = elsewhere(move || element(waiter.take_within(DAY).ok().flatten()));
        clock.advance(if is_woken { ms(10) } else { ms(0) });
        assert_eq!(task.is_woken(), is_woken);
        drop(task);
        if !is_woken {
            until_asleep(&clock, ms(10));
            clock.advance(ms(10));
        }
        assert_eq!(taken.get(), Some(1));
    }
}

/// Many tasks wait at one queue: each gets one element, in the order of the deadlines if they are
/// polled as they are woken.
#[test]
fn each_task_gets_one() {
    let (clock, queue) = queue_by_hand();
    queue.insert_all((0..20).map(|n| (ms(u64::from(n)), n))).expect("the queue is open");
    let mut tasks: Vec<_> =
        (0..20).map(|_| Task { next: queue.next(), wakes: Wakes::new() }).collect();
    assert_eq!(tasks[0].poll(), Poll::Ready(Some(0)));
    tasks.remove(0);
    for task in &mut tasks {
        assert_eq!(task.poll(), Poll::Pending);
    }
    for n in 1..20 {
        clock.advance(ms(1));
        let woken: Vec<_> = (0..tasks.len()).filter(|i| tasks[*i].is_woken()).collect();
        let mut taken = Vec::new();
        for index in woken.into_iter().rev() {
            match tasks[index].poll() {
                Poll::Ready(got) => {
                    tasks.remove(index);
                    taken.extend(got);
                }
                Poll::Pending => tasks[index].wakes = Wakes::new(),
            }
        }
        assert_eq!(taken, [n]);
    }
    assert!(tasks.is_empty() && queue.is_empty());
}

/// Threads and tasks wait at one queue: each of them gets one element.
#[test]
fn threads_and_tasks_wait_together() {
    let queue = Arc::new(DelayQueue::new());
    let waiters = (0..8).map(|n| {
        let queue = Arc::clone(&queue);
        elsewhere(move || match n % 3 {
            0 => element(queue.take()),
            1 => element(queue.take_within(LONG).ok().flatten()),
            _ => element(block_on(queue.next())),
        })
    });
    let waiters: Vec<_> = waiters.collect();
    for n in 0..8 {
        queue.insert(Duration::from_micros(n % 3), n).expect("the queue is open");
    }
    let mut taken: Vec<_> = waiters.into_iter().map(|waiter| waiter.get()).collect();
    taken.sort_unstable();
    assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6, 7].map(Some));
}

/// Closing an empty queue wakes every waiter, and every wait ends.
#[test]
fn closing_wakes_all_tasks() {
    let (_clock, queue) = queue_by_hand();
    let mut tasks = tasks(&queue, 5);
    queue.close();
    for task in &mut tasks {
        assert_eq!((task.wakes.count(), task.poll()), (1, Poll::Ready(None)));
    }
}

/// A future that is dropped because another one was faster has taken nothing, at whichever point it
/// is dropped.
#[test]
fn a_lost_race_loses_no_element() {
    let (clock, queue) = queue_by_hand();
    queue.insert_all((0..10).map(|n| (ms(1), n))).expect("the queue is open");
    for point in 0..3 {
        let mut task = Task { next: queue.next(), wakes: Wakes::new() };
        if point > 0 {
            assert_eq!(task.poll(), Poll::Pending);
        }
        if point > 1 {
            clock.advance(ms(1));
            assert!(task.is_woken());
        }
    }
    assert_eq!(drained(&queue), Vec::from_iter(0..10));
}

/// The future of a stream's next element may be dropped and created again; the stream keeps its
/// place.
#[test]
fn a_stream_outlives_its_futures() {
    let clock = ManualClock::new();
    let queue = Arc::new(DelayQueue::with_clock(clock.clone()));
    queue.insert(ms(1), 1).expect("the queue is open");
    let mut stream = queue.stream();
    let wakes = Wakes::new();
    let waker = Waker::from(Arc::clone(&wakes));
    for _ in 0..3 {
        assert!(pin!(stream.next()).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    clock.advance(ms(1));
    assert_eq!(wakes.count(), 1);
    assert_eq!(element(block_on(stream.next())), Some(1));
    queue.close();
    assert_eq!((block_on(stream.next()), block_on(stream.next())), (None, None));
}
