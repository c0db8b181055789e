//! A lease, as its holder knows it.
//!
//! A holder must not trust its lease longer than the database does. It counts from *before* it sent the
//! request that granted or renewed it, and the database from when it carried the request out, which is
//! later. It stops a tenth of the lease sooner, since the two clocks need not run at the same speed. It
//! counts on a clock that goes on while the machine sleeps ([`boot_clock`](super::boot_clock)).
//!
//! So a lease ends by the holder's own clock, whether or not the database can be asked. Each look
//! ([`is_lost`](LeaseState::is_lost)) compares the clock: a process that was frozen for a minute sees at
//! its first look that it has lost its lease. The token is cancelled by the gate's thread, which runs as soon
//! as the process does.
//!
//! A lease that was found to be over stays over. A renewal whose answer arrives afterwards changes nothing,
//! though the database holds on to the row until that lease ends as well: what was told once is not taken
//! back.
//!
//! One lock guards all of it. Tokens are cancelled after it is released, since that wakes the threads that wait for them.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use punctual::CancellationToken;

use super::boot_clock::BootClock;

/// How much of the lease a holder trusts, in tenths.
const TRUSTED_TENTHS: u32 = 9;

/// One grant: a fencing token, and until when it may be relied on.
#[derive(Debug)]
pub(crate) struct LeaseState {
    pub(crate) name: Arc<str>,
    pub(crate) fence: i64,
    clock: BootClock,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    standing: Standing,
    has_begun: bool,
    tokens: Vec<CancellationToken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Until then, on the clock of [`boot_clock`](super::boot_clock).
    Until(Duration),
    /// The run has been ended in the database, in a transaction of the body: no lease is needed any more.
    Finished,
    Lost,
}

impl LeaseState {
    /// Makes the state of a lease of this length, whose request was sent at `sent`.
    pub(crate) fn new(
        name: Arc<str>,
        fence: i64,
        sent: Duration,
        lease: Duration,
        clock: BootClock,
    ) -> Self {
        let standing = Standing::Until(end(sent, lease));
        let inner = Inner { standing, has_begun: false, tokens: Vec::new() };
        Self { name, fence, clock, inner: Mutex::new(inner) }
    }

    /// Returns `true` if the lease is over. Reads the clock.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost_at((self.clock)())
    }

    pub(super) fn is_lost_at(&self, now: Duration) -> bool {
        self.change(|standing| {
            if matches!(*standing, Standing::Until(end) if end <= now) {
                *standing = Standing::Lost;
            }
            *standing == Standing::Lost
        })
    }

    /// Notes a renewal whose request was sent at `sent`. Returns `false` if the lease had ended before its
    /// answer arrived.
    pub(crate) fn renewed(&self, sent: Duration, lease: Duration) -> bool {
        self.renewed_at((self.clock)(), sent, lease)
    }

    pub(super) fn renewed_at(&self, now: Duration, sent: Duration, lease: Duration) -> bool {
        if self.is_lost_at(now) {
            return false;
        }
        self.change(|standing| {
            if let Standing::Until(until) = standing {
                *until = (*until).max(end(sent, lease));
            }
            *standing != Standing::Lost
        })
    }

    /// Notes that the run has been ended in the database under this fencing token.
    pub(crate) fn finished(&self) {
        self.change(|standing| {
            if matches!(standing, Standing::Until(_)) {
                *standing = Standing::Finished;
            }
        });
    }

    /// Notes that another replica has the row.
    pub(crate) fn lost(&self) {
        self.change(|standing| *standing = Standing::Lost);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.inner.lock().standing == Standing::Finished
    }

    /// Ends the lease if its run has not begun. Returns `true` if so: then that run does not take place.
    pub(crate) fn lapse_unless_begun(&self) -> bool {
        let mut inner = self.inner.lock();
        let lapses = !inner.has_begun;
        if lapses {
            inner.standing = Standing::Lost;
        }
        lapses
    }

    /// Notes that the run is about to begin. The token is cancelled when the lease is lost; at once if it is.
    pub(crate) fn watch(&self, token: CancellationToken) {
        let mut inner = self.inner.lock();
        inner.has_begun = true;
        inner.tokens.push(token);
        drop(inner);
        // Cancels it, if the lease is lost.
        self.change(|_| ());
    }

    /// Changes the standing, and cancels the tokens if the lease is lost now.
    fn change<R>(&self, change: impl FnOnce(&mut Standing) -> R) -> R {
        let mut inner = self.inner.lock();
        let result = change(&mut inner.standing);
        let is_lost = inner.standing == Standing::Lost;
        let tokens = if is_lost { std::mem::take(&mut inner.tokens) } else { Vec::new() };
        drop(inner);
        for token in tokens {
            token.cancel();
        }
        result
    }
}

fn end(sent: Duration, lease: Duration) -> Duration {
    sent.saturating_add(lease / 10 * TRUSTED_TENTHS)
}

#[cfg(test)]
mod tests {
    use super::{super::boot_clock, *};

    const SECOND: Duration = Duration::from_secs(1);

    fn lease() -> LeaseState {
        LeaseState::new("a".into(), 1, 100 * SECOND, 10 * SECOND, boot_clock::now)
    }

    #[test]
    fn a_lease_is_trusted_for_nine_tenths_from_when_it_was_asked_for() {
        let lease = lease();
        assert!(!lease.is_lost_at(109 * SECOND - Duration::from_nanos(1)));
        assert!(lease.is_lost_at(109 * SECOND));
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_sent() {
        let lease = lease();
        assert!(lease.renewed_at(106 * SECOND, 103 * SECOND, 10 * SECOND));
        assert!(!lease.is_lost_at(111 * SECOND));
        assert!(lease.is_lost_at(112 * SECOND));
    }

    #[test]
    fn a_renewal_that_is_overtaken_by_a_later_one_takes_nothing_away() {
        let lease = lease();
        assert!(lease.renewed_at(106 * SECOND, 105 * SECOND, 10 * SECOND));
        assert!(lease.renewed_at(107 * SECOND, 103 * SECOND, 10 * SECOND));
        assert!(!lease.is_lost_at(113 * SECOND));
    }

    #[test]
    fn a_lost_lease_is_not_renewed() {
        let lease = lease();
        assert!(!lease.renewed_at(109 * SECOND, 108 * SECOND, 10 * SECOND));
        assert!(lease.is_lost_at(SECOND), "it stays lost");
    }

    #[test]
    fn the_end_cancels_the_token_and_a_token_that_comes_late() {
        let lease = lease();
        let (before, after) = (CancellationToken::new(), CancellationToken::new());
        lease.watch(before.clone());
        assert!(!lease.is_lost_at(108 * SECOND) && !before.is_cancelled());
        assert!(lease.is_lost_at(110 * SECOND) && before.is_cancelled());
        lease.watch(after.clone());
        assert!(after.is_cancelled());
    }

    #[test]
    fn a_finished_run_cannot_lose_its_lease_by_time() {
        let lease = lease();
        lease.finished();
        assert!(lease.is_finished() && !lease.is_lost_at(1000 * SECOND));
    }
}
