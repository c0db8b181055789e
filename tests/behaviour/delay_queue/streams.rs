//! The stream of expiring elements, as a `Stream`.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures_core::{FusedStream, Stream};
use punctual::delay_queue::ExpirationStream;

use crate::{
    delay_queue::support::{element, fill, queue_by_hand},
    support::awaiting::Wakes,
    support::ms,
};

fn poll_next(stream: &mut ExpirationStream<'_, u32>, wakes: &Arc<Wakes>) -> Poll<Option<u32>> {
    let waker = Waker::from(Arc::clone(wakes));
    Pin::new(stream).poll_next(&mut Context::from_waker(&waker)).map(element)
}

/// A stream wakes at the deadline, yields one element after the other, and is fused at the end.
#[test]
fn a_stream_ends_with_the_queue() {
    let (clock, queue) = queue_by_hand();
    queue.insert_all([(ms(2), 2), (ms(1), 1)]).expect("the queue is open");
    let (mut stream, wakes) = (queue.stream(), Wakes::new());
    assert_eq!((poll_next(&mut stream, &wakes), wakes.count()), (Poll::Pending, 0));
    clock.advance(ms(1));
    assert_eq!((wakes.count(), poll_next(&mut stream, &wakes)), (1, Poll::Ready(Some(1))));
    queue.close();
    assert_eq!(poll_next(&mut stream, &wakes), Poll::Pending);
    assert!(!stream.is_terminated());
    clock.advance(ms(1));
    assert_eq!((wakes.count(), poll_next(&mut stream, &wakes)), (2, Poll::Ready(Some(2))));
    for _ in 0..3 {
        assert_eq!(poll_next(&mut stream, &wakes), Poll::Ready(None));
        assert!(stream.is_terminated());
    }
    assert_eq!(Arc::strong_count(&wakes), 1);
}

/// Closing the queue ends a stream that waits, after which it is not woken again.
#[test]
fn closing_wakes_a_stream() {
    let (_clock, queue) = queue_by_hand();
    let (mut stream, wakes) = (queue.stream(), Wakes::new());
    assert_eq!(poll_next(&mut stream, &wakes), Poll::Pending);
    queue.close();
    assert_eq!((wakes.count(), poll_next(&mut stream, &wakes)), (1, Poll::Ready(None)));
}

/// Streams of one queue share its elements; a stream that is dropped after it was woken passes the
/// wake-up on.
#[test]
fn a_woken_stream_that_is_dropped_passes_the_element_on() {
    let (_clock, queue) = queue_by_hand();
    let mut streams = [queue.stream(), queue.stream()].map(|stream| (stream, Wakes::new()));
    for (stream, wakes) in &mut streams {
        assert_eq!(poll_next(stream, wakes), Poll::Pending);
    }
    fill(&queue, [1]);
    let [mut first, mut second] = streams;
    if first.1.count() > 0 {
        std::mem::swap(&mut first, &mut second);
    }
    assert_eq!((first.1.count(), second.1.count()), (0, 1));
    drop(second);
    assert_eq!((first.1.count(), poll_next(&mut first.0, &first.1)), (1, Poll::Ready(Some(1))));
}
