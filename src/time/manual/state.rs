//! The state of a manual clock, under its lock; see the head of [`manual`](super).

use std::{
    task::{Wake, Waker},
    time::SystemTime,
};

use crate::{
    sync::{Arc, ParkedThread},
    time::Timestamp,
};

pub(in crate::time) struct ClockState {
    pub(super) now: Timestamp,
    pub(super) sleepers: Vec<Sleeper>,
    pub(super) alarms: Vec<ClockAlarm>,
    pub(super) last_alarm: u64,
    /// Worker threads that were started and have not ended.
    pub(in crate::time) workers: usize,
    pub(super) is_auto: bool,
    /// How many threads wait and are no workers, each from its first sleep to the end of its wait.
    pub(in crate::time) waiting: usize,
    /// How many workers wait for something besides: each drives an executor until that is there.
    pub(in crate::time) waiting_drivers: usize,
    /// Whether all sleepers have been woken since the clock moved, or since a wait began.
    pub(in crate::time) have_looked: bool,
    /// A timestamp, and the wall clock's time at it.
    pub(super) wall: (Timestamp, SystemTime),
    /// The threads to be woken when no worker has anything to do, or when the present moves beyond this.
    pub(super) idle_watchers: Vec<(Timestamp, Arc<ParkedThread>)>,
    /// How often a thread has gone to sleep.
    #[cfg(test)]
    pub(super) parks: usize,
}

pub(super) struct ClockAlarm {
    pub(super) id: u64,
    pub(super) until: Timestamp,
    pub(super) waker: Waker,
}

pub(super) struct Sleeper {
    pub(super) until: Timestamp,
    pub(super) thread: Arc<ParkedThread>,
    /// Whether it is a worker of a pool on this clock, and not of another that waits here.
    pub(super) is_worker: bool,
}

impl ClockState {
    pub(super) fn new(now: Timestamp, wall: SystemTime) -> Self {
        Self {
            now,
            sleepers: Vec::new(),
            alarms: Vec::new(),
            last_alarm: 0,
            workers: 0,
            is_auto: false,
            waiting: 0,
            waiting_drivers: 0,
            have_looked: false,
            wall: (now, wall),
            idle_watchers: Vec::new(),
            #[cfg(test)]
            parks: 0,
        }
    }

    pub(super) fn wall_time(&self) -> SystemTime {
        let (since, wall) = self.wall;
        wall.checked_add(self.now.since(since)).unwrap_or(wall)
    }

    pub(super) fn begin_sleep(&mut self, sleeper: Sleeper) {
        self.sleepers.push(sleeper);
        #[cfg(test)]
        {
            self.parks += 1;
        }
    }

    pub(super) fn end_sleep(&mut self, thread: &Arc<ParkedThread>) {
        self.sleepers.retain(|sleeper| !Arc::ptr_eq(&sleeper.thread, thread));
    }

    pub(super) fn is_idle(&self) -> bool {
        let rests = |sleeper: &&Sleeper| sleeper.is_worker && !sleeper.thread.is_woken();
        self.sleepers.iter().filter(rests).count() == self.workers
    }

    /// Wakes the threads that wait for this, if it is idle. It becomes so in two ways: a worker goes to sleep, or ends.
    pub(super) fn tell_if_idle(&mut self) {
        if self.is_idle() {
            self.idle_watchers.drain(..).for_each(|(_, watcher)| watcher.wake());
        }
    }

    /// Returns the nearest deadline that is still to come. A sleeper whose deadline has come has been
    /// woken, and is on its way.
    pub(super) fn next_deadline(&self) -> Timestamp {
        let sleepers = self.sleepers.iter().map(|sleeper| sleeper.until);
        let sleepers = sleepers.filter(|until| *until > self.now);
        let alarms = self.alarms.iter().map(|alarm| alarm.until);
        sleepers.chain(alarms).min().unwrap_or(Timestamp::NEVER)
    }

    /// Moves the present, and wakes the threads whose deadline has come. Returns the alarms to be
    /// fired once the lock is released.
    #[must_use]
    pub(super) fn move_to(&mut self, now: Timestamp) -> Vec<Waker> {
        self.now = self.now.max(now);
        for sleeper in self.sleepers.iter().filter(|sleeper| sleeper.until <= self.now) {
            Wake::wake_by_ref(&sleeper.thread);
        }
        for (_, watcher) in self.idle_watchers.iter().filter(|(end, _)| *end < self.now) {
            Wake::wake_by_ref(watcher);
        }
        let alarms = std::mem::take(&mut self.alarms).into_iter();
        let (due, later): (Vec<_>, _) = alarms.partition(|alarm| alarm.until <= self.now);
        self.alarms = later;
        due.into_iter().map(|alarm| alarm.waker).collect()
    }

    pub(in crate::time) fn worker_ended(&mut self) {
        self.workers -= 1;
        self.tell_if_idle();
    }

    /// Moves to the next deadline, if a thread waits and only time can move anything. Returns the
    /// alarms to be fired once the lock is released; after that it must be called again.
    #[must_use]
    pub(super) fn go_on(&mut self) -> Vec<Waker> {
        if !self.is_auto || !self.is_waited_for() {
            return Vec::new();
        }
        if !std::mem::replace(&mut self.have_looked, true) {
            self.sleepers.iter().for_each(|sleeper| Wake::wake_by_ref(&sleeper.thread));
            return Vec::new();
        }
        let next = self.next_deadline();
        if next == Timestamp::NEVER {
            return Vec::new();
        }
        self.have_looked = false;
        self.move_to(next)
    }

    /// Returns `true` if a thread waits, and all that wait or work are asleep.
    fn is_waited_for(&self) -> bool {
        self.waiting + self.waiting_drivers > 0
            && self.sleepers.len() == self.waiting + self.workers
            && !self.sleepers.iter().any(|sleeper| sleeper.thread.is_woken())
    }
}
