//! No wake-up is lost, on the system clock: submitters and takers wait for each other, and every
//! thread that should be woken is needed.

use std::task::{Poll, Waker};

use super::*;
use crate::sync::atomic::AtomicBool;

/// A queue on the system clock, and the number of elements taken from each of two submitters.
struct Scene {
    clock: Clock,
    queue: AnyQueue<usize>,
    taken: [AtomicU64; 2],
}

/// The submitter of elements that are not to be taken.
const NOBODY: usize = 2;

impl Scene {
    fn new() -> Self {
        let clock = Clock::system();
        let stripes = if Dice::new().below(2) == 0 { 1 } else { STRIPES };
        let queue = queue_on(&clock, stripes);
        Self { clock, queue, taken: [const { AtomicU64::new(0) }; 2] }
    }

    fn put(&self, dice: &mut Dice, by: usize, delay: Duration) -> Ticket {
        let (now, stripe) = (self.clock.read(), dice.stripe() % self.queue.stripes());
        self.queue.offer(stripe, now, now.after(delay), by).expect("it is open")
    }

    /// Counts an element that was taken, and returns how many of its submitter's elements have been taken so far.
    fn note(&self, (entry, now): (QueueEntry<usize>, Timestamp)) -> u64 {
        assert!(now >= entry.deadline, "too early");
        self.taken[entry.element].fetch_add(1, Ordering::SeqCst) + 1
    }

    fn taken(&self, by: usize) -> u64 {
        self.taken[by].load(Ordering::SeqCst)
    }

    fn wait_for(&self, by: usize, count: u64) {
        until(|| self.taken(by) >= count);
    }

    fn take_all(&self) {
        while let Some(taken) = self.queue.take() {
            self.note(taken);
        }
    }
}

/// Runs `act` while `takers` threads each run `take`; closing the queue must end them all.
fn play_with(
    takers: usize,
    take: impl Fn(&Scene) + Send + Sync + 'static,
    act: impl FnOnce(&Scene) + Send + 'static,
) {
    in_time(move || {
        let scene = Scene::new();
        thread::scope(|scope| {
            let (scene, take) = (&scene, &take);
            let _end = End(&scene.queue);
            for _ in 0..takers {
                scope.spawn(move || take(scene));
            }
            act(scene);
        });
    });
}

fn play(takers: usize, act: impl FnOnce(&Scene) + Send + 'static) {
    play_with(takers, Scene::take_all, act);
}

/// Offers each element only when all earlier ones have been taken.
fn offer_one_by_one(scene: &Scene, by: usize, rounds: u64, delay: impl Fn(&mut Dice) -> Duration) {
    let mut dice = Dice::new();
    for round in 1..=rounds {
        dice.dawdle();
        let delay = delay(&mut dice);
        scene.put(&mut dice, by, delay);
        scene.wait_for(by, round);
    }
}

#[test]
fn an_immediately_due_element_is_taken() {
    for takers in 1..=4 {
        play(takers, |scene| offer_one_by_one(scene, 0, 2_000, |_| Duration::ZERO));
    }
}

/// Takes by polling, like an async waiter, with an alarm that rings at once.
fn await_all(scene: &Scene) {
    let (parker, mut waiter) = (Parker::current(), AsyncWaiter::new());
    let alarm = |_, waker: Waker| -> Option<()> {
        waker.wake();
        None
    };
    loop {
        match scene.queue.poll_take(&mut waiter, parker.waker(), alarm) {
            Poll::Ready(Some(entry)) => _ = scene.note((entry, scene.clock.read())),
            Poll::Ready(None) => return,
            Poll::Pending => scene.clock.wait(&parker).park_until(Timestamp::NEVER),
        }
    }
}

#[test]
fn an_immediately_due_element_is_taken_by_an_async_waiter() {
    for takers in 1..=3 {
        play_with(takers, await_all, |scene| {
            offer_one_by_one(scene, 0, 5_000, |_| Duration::ZERO);
        });
    }
}

/// The sleepers are armed already, for an element far away.
#[test]
fn an_element_nearer_than_the_awaited_one_is_taken() {
    for takers in 1..=4 {
        play(takers, |scene| {
            let mut dice = Dice::new();
            for _ in 0..2 {
                scene.put(&mut dice, NOBODY, HOUR);
            }
            offer_one_by_one(scene, 0, 1_500, |_| Duration::ZERO);
        });
    }
}

/// Each element is nearer than the one before; all are taken.
#[test]
fn ever_nearer_elements_are_taken() {
    for takers in 1..=4 {
        play(takers, |scene| {
            let mut dice = Dice::new();
            scene.put(&mut dice, NOBODY, HOUR);
            for round in 1..=60 {
                for (from, to) in [(120, 200), (50, 120), (0, 50)] {
                    let delay = dice.micros(from, to);
                    scene.put(&mut dice, 0, delay);
                    dice.dawdle();
                }
                scene.wait_for(0, 3 * round);
            }
        });
    }
}

#[test]
fn two_submitters_at_once_are_both_served() {
    for takers in 1..=3 {
        play(takers, |scene| {
            scene.put(&mut Dice::new(), NOBODY, HOUR);
            let short = |dice: &mut Dice| {
                if dice.below(8) == 0 { dice.micros(50, 100) } else { Duration::ZERO }
            };
            thread::scope(|scope| {
                scope.spawn(|| offer_one_by_one(scene, 0, 600, short));
                offer_one_by_one(scene, 1, 600, short);
            });
        });
    }
}

/// Threads that time out leave, and stay away until another has taken the element.
#[test]
fn no_element_is_lost_when_pollers_time_out() {
    for (takers, pollers) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        play(takers, move |scene| {
            let is_over = AtomicBool::new(false);
            let is_over_now = || is_over.load(Ordering::SeqCst);
            let poll = || {
                let mut dice = Dice::new();
                while !is_over_now() {
                    let polled = scene.queue.poll_timeout(dice.micros(0, 60));
                    let seen = polled.map_or_else(|| scene.taken(0), |taken| scene.note(taken));
                    until(|| scene.taken(0) > seen || is_over_now());
                }
            };
            thread::scope(|scope| {
                (0..pollers).for_each(|_| drop(scope.spawn(poll)));
                offer_one_by_one(scene, 0, 250, |dice| dice.micros(0, 80));
                is_over.store(true, Ordering::SeqCst);
            });
        });
    }
}

/// A thread polls once at just that moment and then stays away: another is woken for what it
/// missed.
#[test]
fn no_element_is_lost_to_a_thread_that_only_polls() {
    const ROUNDS: u64 = 1_000;
    for takers in 1..=2 {
        play(takers, |scene| {
            let begun = AtomicU64::new(0);
            let poll_each_round = || {
                let mut dice = Dice::new();
                for round in 1..=ROUNDS {
                    until(|| begun.load(Ordering::SeqCst) >= round);
                    dice.dawdle();
                    scene.queue.poll_timeout(Duration::ZERO).map(|taken| scene.note(taken));
                    scene.wait_for(0, round);
                }
            };
            thread::scope(|scope| {
                scope.spawn(poll_each_round);
                let mut dice = Dice::new();
                for round in 1..=ROUNDS {
                    // Gives the others time to fall asleep.
                    (0..3).for_each(|_| dice.dawdle());
                    begun.store(round, Ordering::SeqCst);
                    dice.dawdle();
                    scene.put(&mut dice, 0, Duration::ZERO);
                    scene.wait_for(0, round);
                }
            });
        });
    }
}

/// A thread that was armed for a removed head wakes too early or is armed anew; the next element is
/// taken in any case.
#[test]
fn the_head_may_be_removed() {
    for takers in 1..=4 {
        play(takers, |scene| {
            let mut dice = Dice::new();
            let mut expected = 0;
            for _ in 0..80 {
                let delay = dice.micros(0, 40);
                let head = scene.put(&mut dice, 0, delay);
                if dice.below(2) == 0 {
                    dice.dawdle();
                    let delay = dice.micros(40, 80);
                    scene.put(&mut dice, 0, delay);
                    expected += 1;
                }
                dice.dawdle();
                expected += u64::from(scene.queue.remove(head).is_none());
                scene.wait_for(0, expected);
            }
            assert_eq!(scene.taken(0), expected);
        });
    }
}

/// Each of several elements that are due together gets a thread, whichever threads offer them and
/// however: a thread that has taken one stays away until all have been taken.
#[test]
fn each_of_several_elements_due_together_wakes_a_thread() {
    const ROUNDS: u64 = 250;
    for (takers, width) in [(2, 2), (3, 2), (4, 2), (3, 3), (4, 4)] {
        let take_together = move |scene: &Scene| {
            while let Some(taken) = scene.queue.take() {
                let count = scene.note(taken);
                until(|| scene.taken(0) >= count.next_multiple_of(width));
            }
        };
        play_with(takers, take_together, move |scene| {
            let begun = AtomicU64::new(0);
            let put = |dice: &mut Dice, round: u64, count: u64| {
                let together = dice.micros(0, 50);
                for _ in 0..count {
                    let delay = match round % 4 {
                        0 => Duration::ZERO,
                        1 => together,
                        2 => Duration::from_nanos(dice.below(3_000)),
                        _ => dice.micros(0, 50),
                    };
                    scene.put(dice, 0, delay);
                }
            };
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut dice = Dice::new();
                    for round in 1..=ROUNDS {
                        until(|| begun.load(Ordering::SeqCst) >= round);
                        dice.dawdle();
                        put(&mut dice, round, 1);
                    }
                });
                let mut dice = Dice::new();
                for round in 1..=ROUNDS {
                    begun.store(round, Ordering::SeqCst);
                    dice.dawdle();
                    put(&mut dice, round, width - 1);
                    scene.wait_for(0, width * round);
                }
            });
        });
    }
}

/// The thread that takes the first element of a round stays away until the others have taken the
/// rest.
#[test]
fn no_element_waits_for_a_thread_that_stays_away() {
    const ROUNDS: u64 = 100;
    const WIDTH: u64 = 24;
    for takers in 2..=4 {
        let take = move |scene: &Scene| {
            while let Some(taken) = scene.queue.take() {
                let count = scene.note(taken);
                if count % WIDTH == 1 {
                    until(|| scene.taken(0) >= count.next_multiple_of(WIDTH));
                }
            }
        };
        play_with(takers, take, |scene| {
            let begun = AtomicU64::new(0);
            let submit = |is_first: bool| {
                let mut dice = Dice::new();
                for round in 1..=ROUNDS {
                    if is_first {
                        begun.store(round, Ordering::SeqCst);
                    } else {
                        until(|| begun.load(Ordering::SeqCst) >= round);
                    }
                    dice.dawdle();
                    for _ in 0..WIDTH / 2 {
                        scene.put(&mut dice, 0, Duration::ZERO);
                    }
                    scene.wait_for(0, WIDTH * round);
                }
            };
            thread::scope(|scope| {
                scope.spawn(|| submit(false));
                submit(true);
            });
        });
    }
}

/// A polling thread moves due elements to the ready list, perhaps just when the first taker leaves
/// with its element; both stay away. The other taker is woken for the rest.
#[test]
fn a_batch_in_transit_to_the_list_is_not_forgotten() {
    const ROUNDS: u64 = 2_000;
    const WIDTH: u64 = 8;
    static AWAY: AtomicU64 = AtomicU64::new(0);
    let take = |scene: &Scene| {
        while let Some(taken) = scene.queue.take() {
            let round = scene.note(taken).div_ceil(WIDTH);
            if AWAY.fetch_max(round, Ordering::SeqCst) < round {
                until(|| scene.taken(0) >= WIDTH * round);
            }
        }
    };
    play_with(2, take, |scene| {
        let begun = AtomicU64::new(0);
        let poll_each_round = || {
            for round in 1..=ROUNDS {
                until(|| begun.load(Ordering::SeqCst) >= round);
                scene.queue.try_take().map(|entry| scene.note((entry, scene.clock.read())));
                scene.wait_for(0, WIDTH * round);
            }
        };
        thread::scope(|scope| {
            scope.spawn(poll_each_round);
            let mut dice = Dice::new();
            for round in 1..=ROUNDS {
                // Gives the others time to fall asleep.
                (0..3).for_each(|_| dice.dawdle());
                for _ in 0..WIDTH {
                    scene.put(&mut dice, 0, Duration::ZERO);
                }
                begun.store(round, Ordering::SeqCst);
                scene.wait_for(0, WIDTH * round);
            }
        });
    });
}

/// Whenever the queue is closed, and whatever becomes of its last elements: all threads return, and
/// every admitted element was taken or removed.
#[test]
fn closing_the_queue_ends_every_taker() {
    for takers in 1..=4 {
        in_time(move || {
            let mut dice = Dice::new();
            for _ in 0..40 {
                let scene = &Scene::new();
                let removed = thread::scope(|scope| {
                    for _ in 0..takers {
                        scope.spawn(move || scene.take_all());
                    }
                    let delays = [0, 30].map(|micros| dice.micros(micros, micros + 10));
                    let tickets = delays.map(|delay| scene.put(&mut dice, 0, delay));
                    scope.spawn(|| {
                        Dice::new().dawdle();
                        scene.queue.close(Admission::CLOSED);
                    });
                    dice.dawdle();
                    let removed = tickets.map(|ticket| scene.queue.remove(ticket));
                    removed.into_iter().flatten().count() as u64
                });
                assert_eq!(scene.taken(0) + removed, 2);
            }
        });
    }
}
