//! The reports of a gate: events as they happen, and counts.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

/// Something that an operator wants to know of. See [`GateBuilder::on_event`](super::GateBuilder::on_event).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateEvent {
    /// A run has lost its lease: its token is cancelled, and another replica may run in its place.
    #[non_exhaustive]
    Lost {
        /// The name that the run was claimed under.
        name: Arc<str>,
        /// The fencing token of the run.
        fence: u64,
    },
    /// The database could not be asked about a tick. It is asked again, until the tick is skipped.
    #[non_exhaustive]
    Unreachable {
        /// The name that was to be claimed.
        name: Arc<str>,
        /// The planned moment.
        tick: SystemTime,
        /// The error, in words.
        error: String,
    },
    /// A tick does not run on this replica, although no other is known to run it.
    #[non_exhaustive]
    Skipped {
        /// The name that was to be claimed.
        name: Arc<str>,
        /// The planned moment.
        tick: SystemTime,
        /// The reason for which it does not run.
        reason: SkipReason,
    },
    /// A run has failed, and its task has no next one: this replica runs the name no more, and others only until
    /// their tasks have failed as well. By default a periodic task ends with its first failed run; see [the
    /// module](super#a-run-that-fails). Behind a gate with a [delay](super::NamedGate::with_delay) it is told of
    /// each failed run that was [asked for](punctual::TaskHandle::run_now), although the task may go on.
    #[non_exhaustive]
    Ended {
        /// The name that the run was claimed under.
        name: Arc<str>,
        /// The fencing token of the run.
        fence: u64,
        /// The error of the run, in words.
        error: String,
    },
    /// Ticks of a name that [catches up](super::NamedGate::catch_up) were missed and do not run: another one stands for them, or they
    /// were longer ago than its window. The replica that has the next run tells it. A tick whose replica died in its run is one of
    /// them if it would have run again.
    #[non_exhaustive]
    TicksMissed {
        /// The name.
        name: Arc<str>,
        /// How many; a thousand at most.
        ticks: u64,
    },
    /// The database's clock was set back, so far that the name would have been silent until the old time. Its row has
    /// been set right: the next tick runs, also if it has run by the old time. See [the
    /// module](super#limits-of-the-promise). One replica tells it.
    #[non_exhaustive]
    ClockSetBack {
        /// The name whose row was set right.
        name: Arc<str>,
        /// By how much the clock was set back, at least.
        by: Duration,
    },
}

/// One line for a log.
impl fmt::Display for GateEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { name, fence } => {
                write!(f, "a run of {name:?} has lost its lease (fence {fence})")
            }
            Self::Unreachable { name, tick, error } => {
                let tick = Tick(*tick);
                write!(f, "the database could not be asked about {name:?} at {tick}: {error}")
            }
            Self::TicksMissed { name, ticks } => write!(f, "missed ticks of {name:?}: {ticks}"),
            Self::Ended { name, fence, error } => write!(
                f,
                "the task of {name:?} has ended here with a run that failed (fence {fence}): {error}"
            ),
            Self::ClockSetBack { name, by } => {
                write!(
                    f,
                    "the database's clock was set back by {by:?} at least: {name:?} was set right"
                )
            }
            Self::Skipped { name, tick, reason } => {
                write!(f, "{name:?} at {} does not run here: {reason}", Tick(*tick))
            }
        }
    }
}

/// A moment as Unix time, which every log and every database can read.
struct Tick(SystemTime);

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => write!(f, "{}.{:03}", since.as_secs(), since.subsec_millis()),
            Err(before) => write!(f, "-{:.3}", before.duration().as_secs_f64()),
        }
    }
}

/// The reason for which a tick does not run. See [`GateEvent::Skipped`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// The database could not be asked for as long as a lease lasts.
    Unreachable,
    /// The run is not planned on the wall clock, so replicas cannot agree which one it is, and it is no failed one that
    /// is [tried again](super#a-run-that-fails). Plan it by [`aligned`](crate::aligned()) or by a cron expression, or
    /// give the gate a [delay](super::NamedGate::with_delay).
    NotOnWallClock,
    /// The database's clock was set back, by a minute at most, and this tick or a later one has run by the old
    /// time.
    ClockSetBack,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "the database could not be asked",
            Self::NotOnWallClock => "the run is not planned on the wall clock",
            Self::ClockSetBack => "it ran before the database's clock was set back",
        })
    }
}

/// The counts of a gate since it was opened, over all names. See [`Gate::statistics`](super::Gate::statistics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GateStatistics {
    /// How often the gate was asked about a tick.
    pub asked: u64,
    /// How many of those it granted.
    pub granted: u64,
    /// How often it answered that the tick had been claimed by another replica, or by this one, and was over; or, of a name that
    /// [catches up](super::NamedGate::catch_up), that an earlier one runs first or that none was missed.
    pub refused: u64,
    /// How often it answered that it is to be asked again: the tick was early by the database's clock, or
    /// a replica held it.
    pub postponed: u64,
    /// How often the database could not be asked in time.
    pub unreachable: u64,
    /// How many ticks were skipped although no replica is known to run them.
    pub skipped: u64,
    /// How many runs lost their lease.
    pub lost: u64,
    /// How often a lease was renewed.
    pub renewed: u64,
    /// How many tasks have ended with a run that failed.
    pub ended: u64,
    /// How often the row of a name was set right, because the database's clock had been set back.
    pub set_back: u64,
    /// How many runs of late ticks [caught up](super::NamedGate::catch_up).
    pub made_up: u64,
    /// How many ticks were missed, of names that catch up.
    pub missed: u64,
    /// How many runs were held when this was read.
    pub held: u64,
}

/// One line for a log, with all counts.
impl fmt::Display for GateStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, granted, refused, postponed, .. } = self;
        write!(f, "asked {asked}, granted {granted}, refused {refused}, postponed {postponed}")?;
        let Self { unreachable, skipped, lost, renewed, ended, set_back, .. } = self;
        write!(f, ", unreachable {unreachable}, skipped {skipped}, lost {lost}")?;
        write!(f, ", renewed {renewed}, ended {ended}, set back {set_back}")?;
        let Self { made_up, missed, held, .. } = self;
        write!(f, ", made up for {made_up}, missed {missed}, held {held}")
    }
}

/// Counts what a gate does, and tells the program's listener of events.
#[derive(Default)]
pub(crate) struct Reporter {
    counts: Mutex<GateStatistics>,
    listener: Option<Listener>,
}

pub(crate) type Listener = Arc<dyn Fn(&GateEvent) + Send + Sync>;

impl Reporter {
    pub(crate) fn new(listener: Option<Listener>) -> Self {
        Self { listener, ..Self::default() }
    }

    /// Counts something. The closure is called under the lock.
    pub(crate) fn count(&self, add: impl FnOnce(&mut GateStatistics)) {
        add(&mut self.counts.lock());
    }

    /// Counts an event, and tells the listener. A panic of the listener ends with it.
    pub(crate) fn report(&self, event: &GateEvent) {
        self.count(|counts| match event {
            GateEvent::TicksMissed { ticks, .. } => counts.missed += ticks,
            GateEvent::Lost { .. } => counts.lost += 1,
            GateEvent::Unreachable { .. } => counts.unreachable += 1,
            GateEvent::Skipped { .. } => counts.skipped += 1,
            GateEvent::Ended { .. } => counts.ended += 1,
            GateEvent::ClockSetBack { .. } => counts.set_back += 1,
        });
        if let Some(listener) = &self.listener {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| listener(event))) {
                // Its drop may panic as well.
                std::mem::forget(payload);
            }
        }
    }

    pub(crate) fn statistics(&self, held: usize) -> GateStatistics {
        GateStatistics { held: held as u64, ..*self.counts.lock() }
    }
}
