//! Far entries, as the queues see them. In tests a bucket has several chunks once it has nine entries, and an entry is
//! far if it is 64 ns behind the first one.

use super::*;

/// The entries of one bucket of three chunks. It begins at 992 and is 32 nanoseconds wide, so that it is
/// brought near from 988 on.
const BUCKET: [u64; 20] = [
    1_007, 1_003, 1_003, 1_001, 1_006, 1_002, 1_005, 1_003, 1_007, 1_002, 1_004, 1_006, 1_001,
    1_003, 1_005, 1_002, 1_001, 1_007, 1_004, 1_006,
];

const NEAR: [u64; 3] = [1, 2, 3];

fn sorted() -> Vec<u64> {
    let mut sorted = BUCKET.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Makes a queue with one stripe, in which only the bucket is left.
fn with_bucket() -> (ManualClock, Queue<u64>) {
    let clock = ManualClock::from_zero();
    let queue = Arc::new(DelayedWorkQueue::new(Clock::from(clock.clone()), 1, Duration::ZERO));
    for nanos in NEAR.into_iter().chain(BUCKET) {
        queue.put(at(nanos), nanos).expect("it is open");
    }
    clock.advance(Duration::from_nanos(3));
    assert_eq!(NEAR.map(|_| queue.try_take().map(|entry| entry.element)), NEAR.map(Some));
    (clock, queue)
}

fn single_with_bucket() -> (ManualClock, Arc<SingleQueue<u64>>) {
    let clock = ManualClock::from_zero();
    let queue = Arc::new(SingleQueue::new(Clock::from(clock.clone())));
    for nanos in NEAR.into_iter().chain(BUCKET) {
        queue.insert(at(nanos), nanos).expect("it is open");
    }
    clock.advance(Duration::from_nanos(3));
    assert_eq!(NEAR.map(|_| queue.try_take().map(|entry| entry.element)), NEAR.map(Some));
    (clock, queue)
}

/// M152: the threads wait for the bucket, bring it near, and then wait for its entries.
#[test]
fn a_taker_that_finds_a_bound_brings_the_bucket_near_and_waits_on() {
    let (clock, queue) = with_bucket();
    let takers: Vec<_> = (0..2).map(|_| taker(&clock, &queue)).collect();
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(988), Timestamp::NEVER]);
    clock.advance(Duration::from_nanos(985));
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(1_001), Timestamp::NEVER]);
    clock.advance(Duration::from_nanos(13));
    assert_eq!(results(&takers, 2), [Some(1_001); 2]);
    clock.advance(Duration::from_nanos(10));
    let rest: Vec<_> = std::iter::from_fn(|| queue.try_take()).map(|e| e.element).collect();
    assert_eq!(rest, sorted()[2..]);
}

/// The deputy is armed too late, for a near entry behind the bucket: the leader wakes it for the second of the bucket.
#[test]
fn a_deputy_that_is_armed_too_late_is_woken_for_the_second_of_a_bucket() {
    let (clock, queue) = with_bucket();
    queue.put(at(1_006), 0).expect("it is open");
    let takers: Vec<_> = (0..2).map(|_| taker(&clock, &queue)).collect();
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(988), at(1_006)]);
    clock.advance(Duration::from_nanos(985));
    clock.run_until_idle();
    assert_eq!(clock.sleepers(), [at(1_001), at(1_006)]);
    clock.advance(Duration::from_nanos(13));
    assert_eq!(results(&takers, 2), [Some(1_001); 2]);
}

/// Nothing is early, and a thread that looks late finds everything in order.
#[test]
fn a_bucket_is_taken_in_order() {
    for late in [0, 1, 5, 100_000] {
        let (clock, queue) = with_bucket();
        clock.advance(Duration::from_nanos(985 + late));
        let mut taken = Vec::new();
        while taken.len() < BUCKET.len() {
            while let Some(entry) = queue.try_take() {
                assert!(entry.deadline <= Clock::from(clock.clone()).read(), "it is early");
                taken.push(entry.element);
            }
            assert_eq!(queue.len(), BUCKET.len() - taken.len());
            assert!(queue.len() == 0 || queue.head() <= at(1_007));
            clock.advance(Duration::from_nanos(1));
        }
        assert_eq!(taken, sorted());
        assert!(queue.seems_empty());
    }
}

/// M154.
#[test]
fn the_first_of_a_bucket_is_removed_due_or_not() {
    let (_, queue) = with_bucket();
    let removed: Vec<_> = std::iter::from_fn(|| queue.remove_first()).map(|e| e.element).collect();
    assert_eq!(removed, sorted());
}

/// One stripe's head is a mere bound, and the other's is equal to it.
#[test]
fn a_bound_that_equals_a_head_is_no_tie() {
    let clock = ManualClock::from_zero();
    let queue = DelayedWorkQueue::new(Clock::from(clock.clone()), 2, Duration::ZERO);
    let offer =
        |stripe, nanos| queue.offer_at(stripe, at(1), at(nanos), nanos).expect("it is open");
    NEAR.into_iter().chain(BUCKET).for_each(|nanos| _ = offer(0, nanos));
    clock.advance(Duration::from_nanos(3));
    assert!(NEAR.iter().all(|_| queue.try_take().is_some()));
    [988, 1_001].into_iter().for_each(|nanos| _ = offer(1, nanos));
    clock.advance(Duration::from_nanos(2_000));
    let taken: Vec<_> = std::iter::from_fn(|| queue.try_take()).map(|e| e.element).collect();
    let mut expected = sorted();
    expected.extend([988, 1_001]);
    expected.sort_unstable();
    assert_eq!(taken, expected);
}

/// M156: the bound of a stripe has come, and the first entry of another stripe is due between that bound and the first
/// known entry here.
#[test]
fn an_entry_between_a_bound_and_a_known_entry_is_taken_first() {
    let clock = ManualClock::from_zero();
    let queue = DelayedWorkQueue::new(Clock::from(clock.clone()), 2, Duration::ZERO);
    let offer =
        |stripe, nanos| queue.offer_at(stripe, at(1), at(nanos), nanos).expect("it is open");
    NEAR.into_iter().chain(BUCKET).chain([990]).for_each(|nanos| _ = offer(0, nanos));
    clock.advance(Duration::from_nanos(3));
    assert!(NEAR.iter().all(|_| queue.try_take().is_some()));
    offer(1, 989);
    assert_eq!(queue.head(), at(988));
    clock.advance(Duration::from_nanos(990));
    let taken: Vec<_> = std::iter::from_fn(|| queue.try_take()).map(|e| e.element).collect();
    assert_eq!((taken, queue.len()), (vec![989, 990], BUCKET.len()));
}

/// After a bound has been published, an element opens a bucket that ends before the bound's bucket begins.
#[test]
fn a_nearer_bucket_leaves_a_bound_as_it_is() {
    let clock = ManualClock::from_zero();
    let queue = DelayedWorkQueue::new(Clock::from(clock.clone()), 1, Duration::ZERO);
    let single = SingleQueue::new(Clock::from(clock.clone()));
    let offer = |nanos| {
        queue.offer_at(0, at(1), at(nanos), nanos).expect("it is open");
        single.insert(at(nanos), nanos).expect("it is open");
    };
    NEAR.into_iter().chain(19_456..19_476).chain([19_330; 3]).for_each(offer);
    clock.advance(Duration::from_nanos(3));
    assert!(NEAR.iter().all(|_| queue.try_take().is_some() && single.try_take().is_some()));
    assert_eq!([queue.head(), single.head()], [at(19_328); 2]);
    offer(19_400);
    assert_eq!([queue.head(), single.head()], [at(19_328); 2]);
    clock.advance(Duration::from_nanos(19_326));
    assert!(queue.try_take().is_none() && single.try_take().is_none());
    clock.advance(Duration::from_nanos(100));
    let taken: Vec<_> = std::iter::from_fn(|| queue.try_take()).map(|e| e.element).collect();
    assert_eq!(taken, [19_330, 19_330, 19_330, 19_400]);
    let taken: Vec<_> = std::iter::from_fn(|| single.try_take()).map(|e| e.element).collect();
    assert_eq!(taken, [19_330, 19_330, 19_330, 19_400]);
}

/// M153: the last entry of a bucket is removed: the head must not stay where the bucket began.
#[test]
fn removals_from_a_bucket_move_the_head() {
    let (clock, queue) = with_bucket();
    let far = queue.put(at(5_000), 5_000).expect("it is open");
    let mut listed = queue.snapshot();
    assert_eq!(
        listed.iter().map(|l| l.element).collect::<Vec<_>>(),
        [sorted(), vec![5_000]].concat()
    );
    listed.pop();
    assert!(listed.iter().all(|listed| queue.remove(listed.ticket) == Some(listed.element)));
    assert_eq!(queue.head(), at(5_000));
    clock.advance(Duration::from_nanos(2_000));
    assert!(queue.try_take().is_none());
    assert_eq!((queue.remove(far), queue.seems_empty()), (Some(5_000), true));
}

/// M154.
#[test]
fn a_single_queue_shows_and_takes_a_bucket_in_order() {
    let (_, queue) = single_with_bucket();
    let first = queue.peek(|element| *element).expect("there is one");
    assert_eq!((first.deadline, first.element), (at(1_001), 1_001));

    let (clock, queue) = single_with_bucket();
    clock.advance(Duration::from_nanos(1_996));
    let taken: Vec<_> = std::iter::from_fn(|| queue.try_take()).map(|e| e.element).collect();
    assert_eq!(taken, sorted());
}

/// M155: whatever deadline a far element is moved to, its ticket stays valid.
#[test]
fn a_far_element_is_moved_to_any_deadline() {
    for to in [5, 990, 992, 1_000, 1_004, 1_050, 9_999, u64::MAX] {
        let (clock, queue) = single_with_bucket();
        let listed = queue.snapshot(|element| *element);
        let ticket = listed[7].ticket;
        assert!(queue.reset(ticket, at(to)));
        assert_eq!((queue.deadline(ticket), queue.len()), (Some(at(to)), BUCKET.len()));
        clock.advance(Duration::from_nanos(20_000));
        let taken: Vec<_> =
            std::iter::from_fn(|| queue.try_take()).map(|e| e.deadline.as_nanos()).collect();
        let mut deadlines: Vec<_> = sorted();
        deadlines[7] = to;
        deadlines.sort_unstable();
        deadlines.retain(|nanos| *nanos < u64::MAX);
        assert_eq!(taken, deadlines);
        assert_eq!(queue.remove(ticket), (to == u64::MAX).then_some(listed[7].element));
    }
}

/// M155.
#[test]
fn a_filter_and_a_drain_reach_far_elements() {
    let (_, queue) = single_with_bucket();
    let removed = queue.drain();
    assert_eq!((removed.len(), queue.len()), (BUCKET.len(), 0));
    let mut drained: Vec<_> = removed.map(|e| (e.deadline.as_nanos(), e.element)).collect();
    drained.sort_unstable();
    assert_eq!(drained, sorted().into_iter().map(|nanos| (nanos, nanos)).collect::<Vec<_>>());

    let (_, queue) = with_bucket();
    let removed = queue.remove_where(&mut |_, nanos| nanos % 2 == 0);
    assert!(removed.iter().all(|entry| entry.element % 2 == 0));
    let odd: Vec<_> = std::iter::from_fn(|| queue.remove_first()).map(|e| e.element).collect();
    assert_eq!(odd, sorted().into_iter().filter(|nanos| nanos % 2 == 1).collect::<Vec<_>>());
}

/// The list has all due entries in the order in which a worker would take them, from the ready list, both stripes, the
/// heap, the run and a bucket. Each entry is taken once, as listed, unless it was moved or removed.
#[test]
fn what_is_due_is_listed_and_taken_by_the_list() {
    for moment in [0, 2, 5, 987, 988, 1_000, 1_001, 1_003, 1_006, 1_007, 5_000] {
        let clock = ManualClock::from_zero();
        let queue = DelayedWorkQueue::new(Clock::from(clock.clone()), 2, Duration::ZERO);
        let offer = |stripe, nanos| queue.offer_at(stripe, at(1), at(nanos), nanos);
        for nanos in NEAR.into_iter().chain(BUCKET).chain([4, 5, 5, 2]) {
            offer(nanos as usize % 2, nanos).expect("it is open");
            offer(1, nanos).expect("it is open");
        }
        clock.advance(Duration::from_nanos(2));
        assert!(queue.try_take().is_some(), "others are on the ready list now");
        let seen = queue.snapshot();
        let expected: Vec<_> = seen
            .iter()
            .take_while(|entry| entry.deadline <= at(moment))
            .map(|entry| (entry.deadline, entry.ticket))
            .collect();
        let listed = queue.list_due(at(moment)).into_iter();
        let listed: Vec<_> = listed.map(|entry| (entry.deadline, entry.ticket)).collect();
        assert_eq!(listed, expected, "at {moment}");
        let mut taken = Vec::new();
        for (number, (deadline, ticket)) in listed.iter().enumerate() {
            match number % 3 {
                1 => assert!(queue.remove(*ticket).is_some()),
                2 => assert!(matches!(
                    queue.reset(*ticket, &mut |before, _| Some(
                        before.after(Duration::from_nanos(1)).into()
                    )),
                    (crate::entry::Moved::To(_), _)
                )),
                _ => {}
            }
            let entry = queue.take_at(*deadline, *ticket);
            assert_eq!(entry.is_some(), number % 3 == 0, "at {moment}, number {number}");
            taken.extend(entry);
            assert!(queue.take_at(*deadline, *ticket).is_none());
        }
        assert!(taken.is_sorted_by_key(|entry| (entry.deadline, entry.sequence)));
        let (counts, ()) = queue.counts(|| ());
        assert_eq!(counts.taken, 1 + taken.len() as u64);
        assert_eq!(counts.removed() as usize, (1..listed.len()).step_by(3).count());
    }
}
