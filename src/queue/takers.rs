//! Leader and followers: which of the threads that want an element waits for what.
//!
//! Of all threads that sleep in `take`, at most one waits for a moment: the **leader**, until
//! the head of the heap is due. The others are **followers** and wait without a time limit. So
//! one deadline wakes one thread, however many there are.
//!
//! The leader's office is a place, held by one thread or vacant:
//!
//! ```text
//!             sleep (heap not empty, office vacant)
//!   vacant ──────────────────────────────────────────▶ held, asleep until d
//!     │  ▲                                               │  ▲
//!     │  │ depart; or sleep (heap empty)           rouse │  │ sleep
//!     │  └─────────────────────── held, awake ◀──────────┘  │
//!     │                             │  ▲  └─────────────────┘
//!     └──── promote a follower ─────┼──┘
//! ```
//!
//! A thread that is rung for keeps, or is given, the office *at that moment*, by the one who
//! rings; it need not get there first. While the office is held by somebody awake nobody else is
//! rung for: that thread is on its way to look.
//!
//! # The invariant, and why nobody is missed
//!
//! > If the heap is not empty and some thread sleeps in `take`, the office is held: by one who
//! > is awake, or by one who sleeps no longer than until the head is due.
//!
//! Everything here happens under the queue's lock, so it is enough that each step keeps it.
//!
//! * *Offer, reset*: a new head nearer than what the leader sleeps until rouses him. If the
//!   office is vacant a follower is promoted. No other offer can break the invariant.
//! * *Sleep*: the thread has just seen that the head is not due. It takes the office if that is
//!   vacant, and sleeps until the head is due. If the heap is empty it is a follower.
//! * *Depart*, with an element or because its own time is up: if it held the office the office
//!   is vacant; if the heap is not empty a follower is promoted. This is the baton: a thread
//!   never leaves without passing it on.
//! * *Remove*: the head may go further away; then the leader wakes too early, and sleeps again.
//!
//! A thread may wake for no reason; `wake` takes it off the list, and it looks like any other.

use std::task::Waker;

use crate::time::Deadline;

/// Who sleeps in `take`, and who leads.
#[derive(Default)]
pub(super) struct Takers {
    leader: Option<Leader>,
    /// The last to come is the first to be promoted: its core is still warm.
    followers: Vec<Sleeper>,
    next: u64,
}

/// Names a thread for the length of one call to `take`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TakerId(u64);

struct Sleeper {
    id: TakerId,
    waker: Waker,
}

struct Leader {
    id: TakerId,
    /// None while awake.
    asleep: Option<(Waker, Deadline)>,
}

impl Takers {
    pub(super) fn enter(&mut self) -> TakerId {
        self.next += 1;
        TakerId(self.next)
    }

    /// A thread lies down. Gives how long it sleeps: until `head` is due if it leads.
    pub(super) fn sleep(&mut self, id: TakerId, waker: Waker, head: Option<Deadline>) -> Deadline {
        let may_lead = self.leader.as_ref().is_none_or(|leader| leader.id == id);
        match head {
            Some(due) if may_lead => {
                self.leader = Some(Leader { id, asleep: Some((waker, due)) });
                due
            }
            _ => {
                if may_lead {
                    self.leader = None;
                }
                self.followers.push(Sleeper { id, waker });
                Deadline::NEVER
            }
        }
    }

    /// A thread is up again, for whatever reason. Gives back its waker, if nobody used it.
    pub(super) fn wake(&mut self, id: TakerId) -> Option<Waker> {
        match &mut self.leader {
            Some(leader) if leader.id == id => leader.asleep.take().map(|(waker, _)| waker),
            _ => {
                let index = self.followers.iter().position(|sleeper| sleeper.id == id)?;
                Some(self.followers.remove(index).waker)
            }
        }
    }

    /// The head has become `due`: somebody has to know. Gives whom to ring for, if anybody.
    #[must_use]
    pub(super) fn rouse(&mut self, due: Deadline) -> Option<Waker> {
        match &mut self.leader {
            None => self.promote(),
            Some(leader) => match leader.asleep {
                Some((_, until)) if due < until => leader.asleep.take().map(|(waker, _)| waker),
                _ => None,
            },
        }
    }

    /// A thread leaves `take`. Gives whom to ring for, if somebody has to take over because there
    /// is `more` in the heap.
    #[must_use]
    pub(super) fn depart(&mut self, id: Option<TakerId>, more: bool) -> Option<Waker> {
        if self.leader.as_ref().is_some_and(|leader| Some(leader.id) == id) {
            self.leader = None;
        }
        if more && self.leader.is_none() { self.promote() } else { None }
    }

    /// Everyone who sleeps: there will be nothing more for anyone, or everyone must look.
    #[must_use]
    pub(super) fn rouse_all(&mut self) -> Vec<Waker> {
        let leader = self.leader.as_mut().and_then(|leader| leader.asleep.take());
        let followers = self.followers.drain(..).map(|sleeper| sleeper.waker);
        followers.chain(leader.map(|(waker, _)| waker)).collect()
    }

    /// Gives the vacant office to a follower, who is to be rung for.
    fn promote(&mut self) -> Option<Waker> {
        let Sleeper { id, waker } = self.followers.pop()?;
        self.leader = Some(Leader { id, asleep: None });
        Some(waker)
    }
}
