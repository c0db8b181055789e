//! The ledger of ticks: each is taken once, by whichever machine comes first.
//!
//! Every machine plans the ticks of every schedule, at the moments that the trigger names on the wall clock. The plan
//! is a task of a small executor of the queue's own, on the clock of the program's: its one thread only notes a
//! tick, so the tick has its moment also while the program's workers are busy. The queue's thread asks for
//! what was noted, in one statement ([`TICK`](statements::TICK)). The row of the schedule has the last tick that was
//! taken, and only a later one is. The job is added in the same statement, so a tick that is taken is a job that is
//! stored, and no process can die between.
//!
//! # The promise of a tick
//!
//! **After each tick that a machine has noted, a job of the schedule begins, or an event says that none may.** A tick
//! that finds a job waiting enqueues none, because that one begins later. For the same reason the ticks that have
//! gathered while the server was away are asked for together, and of those that have come the last is taken
//! for all. So the row needs one tick, and two machines that come back in any order lose none: a tick that the row has
//! passed is one after which another machine has enqueued a job.
//!
//! Each tick has one fate on the machine that has noted it: it is taken with its job, it is merged with another
//! job, another machine has taken it, or it is lost. Those that are merged or lost are counted and told.
//!
//! # Which clock
//!
//! The database's decides when a tick has come. A machine whose clock is ahead keeps its ticks until then. A row whose
//! tick has not come by that clock was written before it was set back. That row is not believed, or the
//! schedule would be silent until then.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use punctual::{DropPolicy, Handle, ScheduledThreadPoolExecutor, trigger::Due};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use tokio_postgres::Row;

use super::{
    connection::{AskError, Param},
    machine::Machine,
    moment::in_micros,
    settings::QueueEvent,
    statements,
};
use crate::{
    OpenError,
    job::{jobs::Periodic, with_sources},
    queue::engine::NewJob,
};

/// How long before the server is asked again for a tick that has not come yet.
const PAUSE: Duration = Duration::from_secs(1);

/// How long at most before a server is asked again that could not be.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How many ticks of a schedule are kept.
const KEPT_AT_MOST: usize = 1000;

/// Why ticks are lost although the server can be asked.
const AHEAD: &str = "this machine's clock is ahead of the server's";

/// A schedule, on this machine.
pub(super) struct NotedSchedule {
    name: String,
    new_job: NewJob,
    max_attempts: i32,
    kept: Mutex<Kept>,
    noted: Notify,
}

/// The ticks that were noted and have no fate yet.
#[derive(Default)]
struct Kept {
    /// To the microsecond, which is what the server keeps; and when they were noted.
    ticks: VecDeque<(SystemTime, Instant)>,
    /// How many could not be kept, and were not told yet.
    lost: u64,
}

/// Returns the executor that notes ticks, by this clock.
pub(super) fn new_planner(
    clock: &punctual::Clock,
) -> Result<ScheduledThreadPoolExecutor, OpenError> {
    ScheduledThreadPoolExecutor::builder()
        .core_pool_size(1)
        .thread_name("punctual-jobs-ticks")
        .clock(clock.clone())
        // The queue may be dropped by the thread of the planner itself.
        .on_drop(DropPolicy::ShutdownBackground)
        .build()
        .map_err(|error| OpenError::Refused(error.to_string().into()))
}

fn not_on_wall_clock(name: &str) -> OpenError {
    OpenError::Definition(format!(
        "the periodic job {name:?} has a trigger that counts from when this process started, so no two \
         machines agree on its ticks: use trigger::cron or punctual_jobs::aligned"
    ))
}

impl Machine {
    /// Starts a schedule.
    pub(super) fn begin_periodic(
        &self,
        planner: &Handle,
        mut periodic: Periodic,
    ) -> Result<(), OpenError> {
        let (name, max_attempts) = (periodic.job.name, periodic.job.max_attempts);
        if !periodic.trigger.share_as(&periodic.schedule) {
            return Err(not_on_wall_clock(name));
        }
        let schedule = Arc::new(NotedSchedule {
            new_job: periodic.job,
            name: periodic.schedule,
            max_attempts: i32::try_from(max_attempts).unwrap_or(i32::MAX),
            kept: Mutex::default(),
            noted: Notify::new(),
        });
        let (tick, trigger) = (periodic.trigger.tick.clone(), periodic.trigger);
        let (shows, notes) = (tick.clone(), Arc::clone(&schedule));
        let body = move || shows.wall().into_iter().for_each(|time| notes.note(time));
        let task = planner.task().name(name).repeat(trigger, body);
        let task = task.map_err(|error| OpenError::Refused(error.to_string().into()))?;
        if matches!(tick.get(), Some(Due::At(_) | Due::OnDemand)) {
            task.cancel();
            return Err(not_on_wall_clock(name));
        }
        if let Some(me) = self.me.upgrade() {
            let asks = self.runtime.spawn(async move { me.take_on(&schedule).await });
            self.schedules.lock().push(asks);
        }
        Ok(())
    }

    /// Takes the ticks of a schedule until the queue is closed.
    async fn take_on(&self, schedule: &NotedSchedule) {
        // The error of the last question.
        let (mut merged, mut error, mut pause) = (0, None, PAUSE);
        // A longer one could outlast the deadline of a tick that was noted while the server was back.
        let longest = LONGEST_PAUSE.min(self.settings.tick_deadline / 4).max(PAUSE);
        loop {
            let ticks = schedule.kept_since(self.settings.tick_deadline);
            self.tell_lost(schedule, error.as_deref());
            if ticks.is_empty() {
                tokio::select! {
                    () = schedule.noted.notified() => continue,
                    () = self.stop.cancelled() => break,
                }
            }
            pause = match self.ask_for(schedule, &ticks).await {
                Ok(rows) => {
                    error = None;
                    let settle = |row| self.settle(schedule, row, &mut merged);
                    rows.first().map_or(PAUSE, settle).min(PAUSE)
                }
                Err(answer) => {
                    let is_first = error.replace(with_sources(&answer)).is_none();
                    if is_first { PAUSE } else { longest.min(2 * pause) }
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.stop.cancelled() => break,
            }
        }
        // Ticks that have not come by the server's clock are left to other machines.
        if error.is_some() {
            schedule.let_go();
            self.tell_lost(schedule, error.as_deref());
        }
        self.tell_merged(schedule, &mut merged);
    }

    /// Takes in the server's answer about the ticks that it was asked for. Returns how long until the first one comes that has not.
    fn settle(&self, schedule: &NotedSchedule, answer: &Row, merged: &mut u64) -> Duration {
        let span = |column| {
            let seconds: Option<f64> = answer.get(column);
            seconds.map(|span| Duration::try_from_secs_f64(span).unwrap_or(Duration::MAX))
        };
        let newest: Option<SystemTime> = answer.get(0);
        let (is_taken, is_enqueued): (bool, bool) = (answer.get(1), answer.get(2));
        if let Some(ahead) = span(4) {
            let schedule = schedule.name.clone();
            self.report(QueueEvent::TickInFuture { schedule, ahead });
        }
        let settled = newest.map_or(0, |newest| schedule.forget(newest));
        if is_taken {
            *merged += settled.saturating_sub(u64::from(is_enqueued));
        }
        // Not each time, while a job waits for long.
        if is_enqueued {
            self.tell_merged(schedule, merged);
        }
        span(3).unwrap_or_default()
    }

    /// Tells of the merged ticks. They stay counted if the executor takes no task at the moment.
    fn tell_merged(&self, schedule: &NotedSchedule, merged: &mut u64) {
        let event = QueueEvent::TicksMerged { schedule: schedule.name.clone(), ticks: *merged };
        if *merged > 0 && self.tell(event) {
            *merged = 0;
        }
    }

    fn tell_lost(&self, schedule: &NotedSchedule, error: Option<&str>) {
        let ticks = schedule.kept.lock().lost;
        let (name, error) = (schedule.name.clone(), error.unwrap_or(AHEAD).to_owned());
        if ticks > 0 && self.tell(QueueEvent::TicksLost { schedule: name, ticks, error }) {
            schedule.kept.lock().lost -= ticks;
        }
    }

    async fn ask_for(
        &self,
        schedule: &NotedSchedule,
        ticks: &Vec<SystemTime>,
    ) -> Result<Vec<Row>, AskError> {
        let job = &schedule.new_job;
        let params: [Param<'_>; 6] = [
            &schedule.name,
            ticks,
            &job.name,
            &job.payload,
            &job.ordering_key,
            &schedule.max_attempts,
        ];
        self.ticking.ask_prepared(statements::TICK, &params).await
    }
}

impl NotedSchedule {
    /// A tick has come by this machine's clock.
    fn note(&self, tick: SystemTime) {
        let mut kept = self.kept.lock();
        if kept.ticks.len() < KEPT_AT_MOST {
            kept.ticks.push_back((in_micros(tick), Instant::now()));
        } else {
            kept.lost += 1;
        }
        drop(kept);
        self.noted.notify_one();
    }

    /// Returns the ticks that are to be asked for. Those that were noted before the deadline began are lost.
    fn kept_since(&self, deadline: Duration) -> Vec<SystemTime> {
        let mut kept = self.kept.lock();
        let kept = &mut *kept;
        let all = kept.ticks.len();
        kept.ticks.retain(|(_, noted)| noted.elapsed() <= deadline);
        kept.lost += (all - kept.ticks.len()) as u64;
        kept.ticks.iter().map(|(tick, _)| *tick).collect()
    }

    /// Forgets the ticks up to this one, and returns how many these were.
    fn forget(&self, newest: SystemTime) -> u64 {
        let mut kept = self.kept.lock();
        let all = kept.ticks.len();
        kept.ticks.retain(|(tick, _)| *tick > newest);
        (all - kept.ticks.len()) as u64
    }

    /// All ticks that are kept are lost.
    fn let_go(&self) {
        let mut kept = self.kept.lock();
        kept.lost += std::mem::take(&mut kept.ticks).len() as u64;
    }
}
