//! The protocols of the queue under a model checker, in as many orders of steps as it tries.
//!
//! Time advances one step at a time, and every element that is due at a step must have been taken
//! before the next. A queue is closed only when everything has been taken, because closing wakes
//! every waiter and would hide a lost wake-up. A lost wake-up is a deadlock, which shuttle reports
//! with the schedule that leads to it.

use std::{
    task::{Poll, Waker},
    time::Duration,
};

use shuttle::{
    rand::RngCore,
    sync::{Barrier, Condvar, Mutex},
    thread::{self, JoinHandle},
};

use super::{
    any_queue::AnyQueue,
    linearizable::{self, Recorder},
    *,
};
use crate::{
    ManualClock,
    sync::{
        Arc, Parker,
        atomic::{AtomicBool, Ordering},
    },
    time::{Clock, PlaceId, Timestamp},
    unwind::wake_all,
};

/// Tries as many schedules of each kind as `PUNCTUAL_SCHEDULES` says; or only the one in `PUNCTUAL_SCHEDULE`, which a
/// failure has printed.
fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    if let Ok(schedule) = std::env::var("PUNCTUAL_SCHEDULE") {
        return shuttle::replay(model, &schedule);
    }
    let schedules = std::env::var("PUNCTUAL_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let schedules = schedules.unwrap_or(1_000);
    shuttle::check_pct(model.clone(), schedules, 3);
    shuttle::check_random(model, schedules);
}

/// Like [`check`], for each kind of queue: the single queue, and those with one stripe and with two.
fn check_kinds(model: impl Fn(Kind) + Send + Sync + Copy + 'static) {
    for kind in [Kind::Single, Kind::Stripes(1), Kind::Stripes(2)] {
        check(move || model(kind));
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Single,
    Stripes(usize),
}

const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A queue, and the elements that have been taken from it.
#[derive(Clone)]
struct Scene {
    clock: ManualClock,
    queue: Arc<AnyQueue<char>>,
    taken: Arc<(Mutex<Vec<char>>, Condvar)>,
}

impl Scene {
    fn new(kind: Kind) -> Self {
        let clock = ManualClock::from_zero();
        let on = Clock::from(clock.clone());
        let queue = match kind {
            Kind::Single => AnyQueue::new(on, None, Duration::ZERO),
            Kind::Stripes(stripes) => AnyQueue::new(on, Some(stripes), Duration::ZERO),
        };
        Self { clock, queue: Arc::new(queue), taken: Arc::default() }
    }

    /// Runs `act` on a thread of its own.
    fn spawn(&self, act: impl FnOnce(&Self) + Send + 'static) -> JoinHandle<()> {
        let scene = self.clone();
        thread::spawn(move || act(&scene))
    }

    /// Starts a thread that takes elements until the queue is finished.
    fn taker(&self) -> JoinHandle<()> {
        self.spawn(|scene| {
            while let Some(entry) = scene.queue.take() {
                scene.note(entry);
            }
        })
    }

    /// Like [`taker`](Self::taker), with an async waiter: the thread polls, and sets its alarms on the clock.
    fn awaiting_taker(&self) -> JoinHandle<()> {
        self.spawn(|scene| {
            let (parker, mut waiter) = (Parker::current(), AsyncWaiter::new());
            while let Some(entry) = scene.await_one(&parker, &mut waiter) {
                scene.note((entry, scene.queue.clock().read()));
            }
        })
    }

    fn await_one(
        &self,
        parker: &Parker,
        waiter: &mut AsyncWaiter<PlaceId>,
    ) -> Option<QueueEntry<char>> {
        loop {
            let alarm = |moment, waker: Waker| Some(self.clock.set_alarm(moment, waker));
            match self.queue.poll_take(waiter, parker.waker(), alarm) {
                Poll::Ready(taken) => return taken,
                Poll::Pending => self.queue.clock().wait(parker).park_until(Timestamp::NEVER),
            }
        }
    }

    fn note(&self, (entry, now): (QueueEntry<char>, Timestamp)) {
        assert!(entry.deadline <= now, "too early");
        self.taken.0.lock().expect("nobody panics").push(entry.element);
        self.taken.1.notify_all();
    }

    fn offer(&self, stripe: usize, nanos: u64, element: char) -> Ticket {
        let stripe = stripe % self.queue.stripes();
        self.queue.offer(stripe, self.queue.clock().read(), at(nanos), element).expect("it is open")
    }

    fn wait_for(&self, count: usize) -> Vec<char> {
        let mut taken = self.taken.0.lock().expect("nobody panics");
        while taken.len() < count {
            taken = self.taken.1.wait(taken).expect("nobody panics");
        }
        taken.clone()
    }

    fn advance(&self, nanos: u64) {
        self.clock.advance(Duration::from_nanos(nanos));
    }

    fn end(&self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        self.queue.close(Admission::CLOSED);
        threads.into_iter().for_each(|thread| thread.join().expect("nobody panics"));
        assert_eq!(self.queue.len(), 0);
    }
}

/// F35, G1, G35, M10: a nearer element arrives while the leader waits for a farther one.
#[test]
fn a_nearer_head_is_waited_for() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let takers = [scene.taker(), scene.taker()];
        scene.offer(0, 100, 'z');
        scene.offer(1, 10, 'a');
        scene.advance(10);
        assert_eq!(scene.wait_for(1), ['a']);
        scene.advance(90);
        scene.wait_for(2);
        scene.end(takers);
    });
}

/// F35, G35, M7: the awaited element gets a nearer deadline while the leader goes to sleep.
#[test]
fn a_nearer_deadline_is_waited_for() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let ticket = scene.offer(0, 100, 'a');
        let takers = [scene.taker(), scene.awaiting_taker()];
        assert_eq!(scene.queue.reset(ticket, at(10)), Some(ticket));
        scene.advance(10);
        assert_eq!(scene.wait_for(1), ['a']);
        scene.end(takers);
    });
}

/// F35, G35: two submitters displace the leader at once, each with an element nearer than the
/// awaited one.
#[test]
fn two_nearer_submissions_displace_the_leader() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let takers = [scene.taker(), scene.taker()];
        scene.offer(0, 100, 'z');
        let submitter = scene.spawn(|scene| _ = scene.offer(1, 20, 'b'));
        scene.offer(0, 10, 'a');
        scene.advance(10);
        assert_eq!(scene.wait_for(1), ['a']);
        submitter.join().expect("nobody panics");
        scene.advance(10);
        assert_eq!(scene.wait_for(2), ['a', 'b']);
        scene.advance(80);
        scene.wait_for(3);
        scene.end(takers);
    });
}

/// F36, G3, G36, M9, M13: threads that wait for each other take elements that are due together:
/// each thread that leaves with one ensures that another wakes.
#[test]
fn a_leaving_taker_wakes_the_next() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let meeting = Arc::new(Barrier::new(3));
        let takers = [0, 1, 2].map(|_| {
            let meeting = Arc::clone(&meeting);
            scene.spawn(move |scene| {
                assert!(scene.queue.take().is_some());
                meeting.wait();
            })
        });
        (0..3).for_each(|stripe| _ = scene.offer(stripe, 10, 'a'));
        scene.advance(10);
        takers.into_iter().for_each(|taker| taker.join().expect("nobody panics"));
    });
}

/// ST-011, G3, G37, M1: a submission meets a thread that has found nothing and is about to sleep.
#[test]
fn no_thread_sleeps_through_a_submission() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let taker = scene.taker();
        for count in 1..=3 {
            scene.offer(count, 0, 'a');
            scene.wait_for(count);
        }
        scene.end([taker]);
    });
}

/// F36, G38: a thread times out and leaves; the other thread takes the element that it might have
/// been woken for.
#[test]
fn a_waiter_that_times_out_loses_no_wake_up() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let poller = scene.spawn(|scene| {
            let polled = scene.queue.take_until(at(5));
            polled.into_iter().for_each(|entry| scene.note(entry));
        });
        let taker = scene.taker();
        let submitter = scene.spawn(|scene| _ = scene.offer(1, 5, 'a'));
        scene.advance(5);
        scene.wait_for(1);
        scene.offer(0, 6, 'b');
        scene.advance(1);
        scene.wait_for(2);
        submitter.join().expect("nobody panics");
        scene.end([poller, taker]);
    });
}

/// G32, G41, M26: the last element is removed while the queue is being closed: every waiter is
/// woken.
#[test]
fn every_waiter_is_woken_at_the_end() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let ticket = scene.offer(0, 10, 'a');
        let takers = [scene.taker(), scene.taker(), scene.awaiting_taker()];
        let remover = scene.spawn(move |scene| _ = scene.queue.remove(ticket));
        scene.queue.close(Admission::CLOSED);
        remover.join().expect("nobody panics");
        scene.end(takers);
        assert_eq!(scene.wait_for(0), []);
    });
}

/// G40: an element is removed while it moves from its stripe to the ready list: it is removed or
/// taken, and an element that is reset is taken later.
#[test]
fn an_element_in_transit_to_the_list_is_found() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let tickets = ['a', 'b', 'c', 'd'].map(|element| scene.offer(0, 0, element));
        let remover = scene.spawn(move |scene| {
            if let Some(element) = scene.queue.remove(tickets[2]) {
                scene.note((QueueEntry { deadline: at(0), sequence: 0, element }, at(0)));
            }
            scene.queue.reset(tickets[3], at(10));
        });
        let taker = scene.taker();
        remover.join().expect("nobody panics");
        scene.advance(10);
        let mut taken = scene.wait_for(4);
        taken.sort_unstable();
        assert_eq!(taken, ['a', 'b', 'c', 'd']);
        scene.end([taker]);
    });
}

/// G41, M5: one of several threads takes the last element of a closed queue: the other threads return.
#[test]
fn taking_the_last_element_wakes_the_other_waiters() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        scene.offer(0, 10, 'a');
        let takers = [scene.taker(), scene.taker(), scene.awaiting_taker()];
        scene.queue.close(Admission::CLOSED);
        scene.advance(10);
        scene.end(takers);
        assert_eq!(scene.wait_for(1), ['a']);
    });
}

/// G40, M4: one element is taken while those behind it move or are about to move: they can be
/// removed.
#[test]
fn an_element_can_be_removed_while_it_moves_to_the_list() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let tickets = ['a', 'b', 'c'].map(|element| scene.offer(0, 0, element));
        let taker = scene.spawn(|scene| {
            assert_eq!(scene.queue.try_take().map(|entry| entry.element), Some('a'));
        });
        assert_eq!(scene.queue.remove(tickets[2]), Some('c'));
        assert!(scene.queue.deadline(tickets[1]).is_some());
        taker.join().expect("nobody panics");
        assert_eq!(scene.queue.try_take().map(|entry| entry.element), Some('b'));
    });
}

/// G40, M104: a closed queue is not finished while its last element moves from the list to a later
/// deadline.
#[test]
fn an_element_that_leaves_the_list_keeps_the_queue_unfinished() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let tickets = ['a', 'b'].map(|element| scene.offer(0, 0, element));
        assert_eq!(scene.queue.try_take().map(|entry| entry.element), Some('a'));
        scene.queue.close(Admission::CLOSED);
        let mover = scene.spawn(move |scene| _ = scene.queue.reset(tickets[1], at(10)));
        let taker = scene.taker();
        mover.join().expect("nobody panics");
        scene.advance(10);
        assert_eq!(scene.wait_for(1), ['b']);
        taker.join().expect("nobody panics");
    });
}

/// G3, G40, M13: while a thread that is not counted as searching moves a batch, a searching thread
/// leaves: it sees the batch in transit and wakes the sleeper for it.
#[test]
fn moving_a_batch_hides_no_element() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let taker = scene.taker();
        let poll = |scene: &Scene| {
            let now = scene.queue.clock().read();
            scene.queue.try_take().into_iter().for_each(|entry| scene.note((entry, now)));
        };
        let give_up = |scene: &Scene| {
            scene.queue.take_until(at(0)).into_iter().for_each(|entry| scene.note(entry));
        };
        let others = [scene.spawn(poll), scene.spawn(give_up)];
        scene.offer(0, 0, 'a');
        scene.offer(0, 0, 'b');
        scene.offer(0, 0, 'c');
        scene.wait_for(3);
        scene.end(others.into_iter().chain([taker]));
    });
}

/// F46, G2, G39, M3: an element that was submitted earlier and is due no later is taken first, even
/// if it went into another stripe.
#[test]
fn an_earlier_submission_is_taken_first() {
    for (one, other) in [(0, 1), (1, 0)] {
        check_kinds(move |kind| {
            let scene = Scene::new(kind);
            let is_over = Arc::new(AtomicBool::new(false));
            let first = Arc::clone(&is_over);
            let submitter = scene.spawn(move |scene| {
                scene.offer(one, 0, 'a');
                first.store(true, Ordering::SeqCst);
            });
            let taker = scene.taker();
            let is_ordered = is_over.load(Ordering::SeqCst);
            scene.offer(other, 0, 'b');
            let taken = scene.wait_for(2);
            assert!(!is_ordered || taken == ['a', 'b'], "out of order");
            submitter.join().expect("nobody panics");
            scene.end([taker]);
        });
    }
}

/// G2, G39, M2: a taker has read the heads and wants the nearest. Before it holds the lock, A
/// arrives in the other stripe and then B in this one: the taker finds B there, and yet takes A.
#[test]
fn an_element_that_arrives_between_look_and_lock_is_seen() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        scene.advance(2);
        scene.offer(0, 2, 'c');
        let taker = scene.taker();
        scene.offer(1, 0, 'a');
        scene.offer(0, 1, 'b');
        let taken = scene.wait_for(3);
        let place = |element| taken.iter().position(|one| *one == element);
        assert!(place('a') < place('b'), "out of order: {taken:?}");
        scene.end([taker]);
    });
}

/// G33, G42: an async waiter is woken as reliably as a thread.
#[test]
fn an_async_waiter_is_not_missed() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let takers = [scene.awaiting_taker(), scene.taker()];
        let submitter = scene.spawn(|scene| _ = scene.offer(1, 10, 'b'));
        scene.offer(0, 0, 'a');
        scene.wait_for(1);
        scene.advance(10);
        scene.wait_for(2);
        submitter.join().expect("nobody panics");
        scene.end(takers);
    });
}

/// F36, G33, G42, M27: an async waiter that has been woken and gives up passes its wake-up on.
#[test]
fn an_async_waiter_that_gives_up_passes_its_wake_up_on() {
    check_kinds(|kind| {
        let scene = Scene::new(kind);
        let taker = scene.taker();
        let fickle = scene.spawn(|scene| {
            let mut waiter: AsyncWaiter<PlaceId> = AsyncWaiter::new();
            let alarm = |moment, waker: Waker| Some(scene.clock.set_alarm(moment, waker));
            let polled = scene.queue.poll_take(&mut waiter, Waker::noop(), alarm);
            if let Poll::Ready(Some(entry)) = polled {
                scene.note((entry, scene.queue.clock().read()));
            }
            scene.queue.cancel_wait(&mut waiter);
        });
        scene.offer(0, 0, 'a');
        scene.offer(1, 10, 'b');
        scene.wait_for(1);
        scene.advance(10);
        scene.wait_for(2);
        scene.end([taker, fickle]);
    });
}

/// G43, M21: another thread takes the element that was due when the clock was last read; the
/// element that has become due since is found.
#[test]
fn a_taker_that_loses_the_first_element_reads_the_clock_again() {
    check(|| {
        let scene = Scene::new(Kind::Single);
        assert!(scene.queue.try_take().is_none());
        scene.advance(1);
        scene.offer(0, 0, 'a');
        scene.offer(0, 1, 'b');
        let other = scene.spawn(|scene| assert!(scene.queue.try_take().is_some()));
        assert!(scene.queue.try_take().is_some());
        scene.end([other]);
    });
}

/// F36, G52: threads that are woken spuriously, at any time, look again: nothing is taken early,
/// and a later wake-up still reaches one of them.
#[test]
fn a_spuriously_woken_thread_looks_again() {
    check_kinds(|kind| {
        let (scene, wakers) = (Scene::new(kind), Arc::new(Mutex::new(Vec::new())));
        let takers = [(); 2].map(|()| {
            let wakers = Arc::clone(&wakers);
            scene.spawn(move |scene| {
                let own = Parker::current().waker().clone();
                wakers.lock().expect("nobody panics").push(own);
                while let Some(entry) = scene.queue.take() {
                    scene.note(entry);
                }
            })
        });
        let ringer = thread::spawn(move || {
            for _ in 0..3 {
                let all = wakers.lock().expect("nobody panics").clone();
                wake_all(all);
            }
        });
        scene.offer(0, 100, 'z');
        scene.offer(1, 10, 'a');
        scene.advance(10);
        assert_eq!(scene.wait_for(1), ['a']);
        scene.advance(90);
        scene.wait_for(2);
        ringer.join().expect("nobody panics");
        scene.end(takers);
    });
}

/// G2: each history of three threads is one that a sorted list could have had.
#[test]
fn every_history_is_that_of_a_sorted_list() {
    for stripes in [None, Some(1), Some(2)] {
        check(move || {
            let recorder = Recorder::new(stripes, true);
            let seed: u64 = shuttle::rand::thread_rng().next_u64();
            let run = |thread: u64| {
                let recorder = Arc::clone(&recorder);
                thread::spawn(move || recorder.run(seed.wrapping_add(thread)))
            };
            let threads = [0, 1, 2].map(run);
            linearizable::check(seed, threads.map(|thread| thread.join().expect("nobody panics")));
        });
    }
}
