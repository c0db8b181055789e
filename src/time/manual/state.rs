//! What a manual clock knows: the present, who sleeps until when, and whether it may go on by
//! itself. All of it stands under the clock's lock; see the head of [`manual`](super).

use std::task::{Wake, Waker};

use crate::{
    sync::{Arc, Bell},
    time::Timestamp,
};

pub(super) struct State {
    now: Timestamp,
    sleepers: Vec<Sleeper>,
    pub(super) alarms: Vec<Alarm>,
    last_alarm: u64,
    /// Worker threads that were started and have not ended.
    pub(super) workers: usize,
    /// Whether the clock goes on by itself.
    is_auto: bool,
    /// Threads that wait and are no workers, from their first sleep to the end of their wait.
    waiting: usize,
    /// Whether all who sleep have been rung for since the clock moved, or since a wait began.
    have_looked: bool,
    /// How often a thread has gone to sleep.
    #[cfg(test)]
    pub(super) parks: usize,
}

/// A waker that is to be woken at a moment.
pub(super) struct Alarm {
    pub(super) id: u64,
    pub(super) until: Timestamp,
    pub(super) waker: Waker,
}

pub(super) struct Sleeper {
    pub(super) until: Timestamp,
    pub(super) bell: Arc<Bell>,
    /// Whether it is a worker of a pool on this clock, and not of another that waits here.
    pub(super) is_worker: bool,
}

impl State {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            now,
            sleepers: Vec::new(),
            alarms: Vec::new(),
            last_alarm: 0,
            workers: 0,
            is_auto: false,
            waiting: 0,
            have_looked: false,
            #[cfg(test)]
            parks: 0,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn next_alarm(&mut self) -> u64 {
        self.last_alarm += 1;
        self.last_alarm
    }

    // Who sleeps.

    pub(super) fn lie_down(&mut self, sleeper: Sleeper) {
        self.sleepers.push(sleeper);
        #[cfg(test)]
        {
            self.parks += 1;
        }
    }

    pub(super) fn get_up(&mut self, bell: &Arc<Bell>) {
        self.sleepers.retain(|sleeper| !Arc::ptr_eq(&sleeper.bell, bell));
    }

    /// Rings for every worker that sleeps, to look at what there is now.
    pub(super) fn rouse_workers(&self) {
        for worker in self.sleepers.iter().filter(|one| one.is_worker) {
            Wake::wake_by_ref(&worker.bell);
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        let rests = |sleeper: &&Sleeper| sleeper.is_worker && !sleeper.bell.is_rung();
        self.sleepers.iter().filter(rests).count() == self.workers
    }

    /// Of what is still to come: whose moment has come has been rung for, and is on its way.
    pub(super) fn next_deadline(&self) -> Timestamp {
        let sleepers = self.sleepers.iter().map(|sleeper| sleeper.until);
        let sleepers = sleepers.filter(|until| *until > self.now);
        let alarms = self.alarms.iter().map(|alarm| alarm.until);
        sleepers.chain(alarms).min().unwrap_or(Timestamp::NEVER)
    }

    /// Rings for the threads whose moment has come. Gives whom to wake without the lock.
    #[must_use]
    pub(super) fn move_to(&mut self, now: Timestamp) -> Vec<Waker> {
        self.now = self.now.max(now);
        for sleeper in self.sleepers.iter().filter(|sleeper| sleeper.until <= self.now) {
            Wake::wake_by_ref(&sleeper.bell);
        }
        let alarms = std::mem::take(&mut self.alarms).into_iter();
        let (due, later): (Vec<_>, _) = alarms.partition(|alarm| alarm.until <= self.now);
        self.alarms = later;
        due.into_iter().map(|alarm| alarm.waker).collect()
    }

    // Going on by itself.

    pub(super) fn is_auto(&self) -> bool {
        self.is_auto
    }

    pub(super) fn set_auto(&mut self, is_on: bool) {
        self.is_auto = is_on;
        self.have_looked = false;
    }

    /// A thread that is no worker sleeps for the first time in its wait.
    pub(super) fn wait_begins(&mut self) {
        self.waiting += 1;
        self.have_looked = false;
    }

    pub(super) fn wait_ends(&mut self) {
        self.waiting -= 1;
    }

    /// Moves to the next deadline, if somebody waits and only time can move anything. Gives whom
    /// to wake without the lock, and is then to be called again.
    #[must_use]
    pub(super) fn go_on(&mut self) -> Vec<Waker> {
        if !self.is_auto || !self.is_waited_for() {
            return Vec::new();
        }
        if !std::mem::replace(&mut self.have_looked, true) {
            self.sleepers.iter().for_each(|sleeper| Wake::wake_by_ref(&sleeper.bell));
            return Vec::new();
        }
        let next = self.next_deadline();
        if next == Timestamp::NEVER {
            return Vec::new();
        }
        self.have_looked = false;
        self.move_to(next)
    }

    /// Whether somebody waits, and everyone who waits or works sleeps.
    fn is_waited_for(&self) -> bool {
        self.waiting > 0
            && self.sleepers.len() == self.waiting + self.workers
            && !self.sleepers.iter().any(|sleeper| sleeper.bell.is_rung())
    }

    /// The moments that threads sleep until.
    #[cfg(test)]
    pub(super) fn moments(&self) -> Vec<Timestamp> {
        let mut moments: Vec<_> = self.sleepers.iter().map(|sleeper| sleeper.until).collect();
        moments.sort();
        moments
    }
}
