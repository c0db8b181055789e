//! The timer by which Linux tells that the wall clock was set, and the bell that ends the wait for it.
//!
//! A timer on the wall clock, at an absolute time and with `TFD_TIMER_CANCEL_ON_SET`, is cancelled by
//! every step of that clock: it becomes readable, and the reading fails with `ECANCELED`
//! (`timerfd_create(2)`). The kernel does the same when the machine resumes from sleep, which for
//! this purpose is "equivalent to `clock_was_set()`". So the timer is armed far in the future, only to be
//! cancelled. After that it is still armed.
//!
//! The thread that waits polls the timer together with an event counter, the bell, which any thread may
//! ring. The bell stays rung: it is rung once, for the end.
//!
//! The other error that a reading can have is that there is nothing to be read, which is no news. A poll
//! that fails (the kernel has no memory) would fail again at once: the caller sleeps in another way.

use std::os::fd::OwnedFd;

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::{self, Errno},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create,
        timerfd_settime,
    },
};

/// When the timer is to expire, in seconds since 1970: in the year 2242. (What a kernel takes on a machine
/// of 32 bits, too.)
const FAR: i64 = 1 << 33;

/// See the [module](self).
pub(super) struct SetTimer {
    timer: OwnedFd,
    bell: OwnedFd,
}

impl SetTimer {
    /// Arms a timer.
    pub(super) fn new() -> io::Result<Self> {
        Self::expiring(Timespec { tv_sec: FAR, tv_nsec: 0 })
    }

    fn expiring(moment: Timespec) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let armed = Itimerspec { it_interval: once, it_value: moment };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        match timerfd_settime(&timer, flags, &armed) {
            // It says that it was cancelled if the clock was set meanwhile, and is armed all the same.
            Ok(_) | Err(Errno::CANCELED) => {}
            Err(error) => return Err(error),
        }
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { timer, bell })
    }

    /// Returns `true` if the clock was set, or the timer has expired, since this was last asked.
    pub(super) fn was_set(&self) -> bool {
        let read = rustix::io::read(&self.timer, &mut [0; 8]);
        matches!(read, Ok(_) | Err(Errno::CANCELED))
    }

    /// Sleeps until the clock is set or the bell is rung; may return for no reason. Returns `false` if it
    /// could not sleep.
    pub(super) fn wait(&self) -> bool {
        let mut both = [&self.timer, &self.bell].map(|fd| PollFd::new(fd, PollFlags::IN));
        matches!(poll(&mut both, None), Ok(_) | Err(Errno::INTR))
    }

    /// Ends the wait, and every later one at once.
    pub(super) fn ring(&self) {
        // It fails only if the bell is rung already, so often that one more does not count.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    /// The clock is not set: nothing is reported, and the thread sleeps until the bell is rung.
    #[test]
    fn the_bell_ends_the_wait() {
        let timer = SetTimer::new().expect("the system has timers");
        assert!(!timer.was_set());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| timer.wait());
            timer.ring();
            assert!(waiter.join().expect("it returns"));
        });
        assert!(timer.wait(), "it stays rung");
        assert!(!timer.was_set());
    }

    /// The timer that is armed is one on the wall clock: it ends the wait when that clock shows its time.
    #[test]
    fn the_timer_is_on_the_wall_clock() {
        #[allow(clippy::disallowed_methods, reason = "what the timer is compared with")]
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
        let end = now() + std::time::Duration::from_millis(20);
        let nanos = i64::from(end.subsec_nanos());
        let timer = SetTimer::expiring(Timespec { tv_sec: end.as_secs() as i64, tv_nsec: nanos });
        let timer = timer.expect("the system has timers");
        while !timer.was_set() {
            assert!(timer.wait());
        }
        assert!(now() >= end);
        assert!(!timer.was_set(), "it is reported once");
    }
}
