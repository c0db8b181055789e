//! The keeper: the tasks on the gate's own thread that claim, renew and end.
//!
//! All of them share one connection, and each is a few statements long. Requests for one *name* take turns,
//! so that the keeper knows at each look which of the name's fencing tokens it has handed out: a row that is its
//! own with a fencing token that it has not is a claim whose answer was lost, and no task runs it. Requests for
//! different names overlap.
//!
//! # Renewal
//!
//! While anything is held, a heartbeat looks at each lease, at least four times a second, because a timer
//! stands still while the machine sleeps and the lease does not. It renews what has a third of its lease
//! behind it, and reports what is lost. A run that has not begun by then, because no worker was free, is given back
//! instead: so a replica that is busy holds a tick up no longer than that, and asks again when a worker is free.
//!
//! # One report
//!
//! A lease may be found lost by the body that asks, by the heartbeat, by a renewal or at the end of the
//! run. The thread or task that takes it off the list of held leases reports it, and only one can.

use std::{
    collections::HashMap,
    sync::{Arc, mpsc::SyncSender},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::{
    sync::{Mutex as Turns, Notify, mpsc::UnboundedReceiver, mpsc::UnboundedSender},
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    Gate,
    boot_clock::BootClock,
    catching_up::{Asked, CatchingUp},
    connection::Connection,
    error::{GateError, GateErrorKind},
    event::{GateEvent, Reporter},
    lease::LeaseState,
    rules::{CORRECTION, Row, Rule, Seen, Verdict, decide},
    sql,
    tables::TABLES,
};
use crate::{
    job::with_sources,
    server::{error::AskError, param::Param},
};

/// The keeper looks again after this time at a row that another transaction had locked; twice as long each time.
const BUSY: Duration = Duration::from_millis(10);
/// After how long the end of a run is told again that could not be told.
const RETRY: Duration = Duration::from_millis(100);
const LONGEST_BEAT: Duration = Duration::from_millis(250);

/// A request to the keeper.
pub(crate) enum Request {
    Ask(Ask),
    Leave(Leave),
    Migrate(Instant, SyncSender<Result<(), GateError>>),
    Close,
}

/// May this tick run?
pub(crate) struct Ask {
    pub(crate) name: Arc<str>,
    pub(crate) tick: SystemTime,
    pub(crate) rule: Rule,
    /// What the clock of this replica shows.
    pub(crate) now: SystemTime,
    /// The failed run that is tried again.
    pub(crate) retry_of: Option<Arc<LeaseState>>,
    /// Told which ticks are settled, if missed ones are made up for.
    pub(super) catching_up: Option<Arc<CatchingUp>>,
    pub(crate) deadline: Instant,
    /// Told the answer, on the gate's own thread.
    pub(crate) reply: Box<dyn FnOnce(Answer) + Send + Sync>,
    /// The one that is asked.
    pub(crate) gate: Gate,
}

/// A run has ended, or has not begun.
pub(crate) struct Leave {
    state: Arc<LeaseState>,
    how: Leaving,
}

#[derive(Clone, Copy)]
enum Leaving {
    Ended,
    GivenBack,
}

/// The answer to [`Ask`].
pub(crate) enum Answer {
    Granted(Grant),
    /// A replica holds it, for so much longer at least.
    Held(Duration),
    /// Ask again after so long.
    Later(Duration),
    Passed,
    /// Passed, by a clock that was set back since.
    Ahead,
    Unreachable(String),
}

/// A lease that was granted. It is given back if it is dropped without having been [left](Grant::leave).
///
/// It keeps the gate open, or the lease would not be renewed any more while the run still goes on: the task of a run that was
/// cancelled may have been the last that had the gate.
pub(crate) struct Grant {
    pub(crate) state: Arc<LeaseState>,
    gate: Gate,
    is_left: bool,
}

impl Grant {
    /// Ends the run.
    pub(crate) fn leave(mut self) {
        self.send(Leaving::Ended);
    }

    fn send(&mut self, how: Leaving) {
        self.is_left = true;
        let leave = Leave { state: Arc::clone(&self.state), how };
        // If the keeper has gone, no thread is left to end the lease: it ends by itself.
        drop(self.gate.0.requests.send(Request::Leave(leave)));
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.is_left {
            self.send(Leaving::GivenBack);
        }
    }
}

/// The settings of the keeper.
pub(crate) struct Settings {
    pub(crate) lease: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) holder: String,
    pub(crate) clock: BootClock,
}

/// See the [module](self).
pub(crate) struct Keeper {
    settings: Settings,
    connection: Connection,
    reporter: Arc<Reporter>,
    requests: UnboundedSender<Request>,
    held: Arc<HeldList>,
    /// For each name the last fencing token that was handed out, under the lock that requests take turns at.
    names: Mutex<HashMap<Arc<str>, Arc<Turns<i64>>>>,
}

/// The leases that are held.
#[derive(Default)]
pub(crate) struct HeldList {
    list: Mutex<Vec<Held>>,
    /// Told when there is something to renew.
    some: Notify,
}

struct Held {
    state: Arc<LeaseState>,
    renew_at: Duration,
    is_renewing: bool,
}

impl HeldList {
    pub(crate) fn len(&self) -> usize {
        self.list.lock().len()
    }

    fn add(&self, state: &Arc<LeaseState>, renew_at: Duration) {
        self.list.lock().push(Held { state: Arc::clone(state), renew_at, is_renewing: false });
        self.some.notify_one();
    }

    /// Takes a lease off the list; returns `false` if it is not on it any more.
    fn remove(&self, state: &Arc<LeaseState>) -> bool {
        let mut list = self.list.lock();
        let place = list.iter().position(|held| Arc::ptr_eq(&held.state, state));
        place.map(|place| list.swap_remove(place)).is_some()
    }

    fn states(&self) -> Vec<Arc<LeaseState>> {
        self.list.lock().iter().map(|held| Arc::clone(&held.state)).collect()
    }

    /// Returns the leases to be renewed now, and notes that they are.
    fn begin_renewals(&self, now: Duration) -> Vec<Arc<LeaseState>> {
        let mut list = self.list.lock();
        let due = list.iter_mut().filter(|held| !held.is_renewing && held.renew_at <= now);
        due.map(|held| {
            held.is_renewing = true;
            Arc::clone(&held.state)
        })
        .collect()
    }

    fn end_renewal(&self, state: &Arc<LeaseState>, renew_at: Duration) {
        let mut list = self.list.lock();
        if let Some(held) = list.iter_mut().find(|held| Arc::ptr_eq(&held.state, state)) {
            held.is_renewing = false;
            held.renew_at = renew_at;
        }
    }
}

impl Keeper {
    pub(crate) fn new(
        settings: Settings,
        connection: Connection,
        reporter: Arc<Reporter>,
        requests: UnboundedSender<Request>,
        held: Arc<HeldList>,
    ) -> Arc<Self> {
        let names = Mutex::default();
        Arc::new(Self { settings, connection, reporter, requests, held, names })
    }

    /// Serves requests until it is told to close; then ends what has been left, for as long as the limit.
    pub(crate) async fn run(self: Arc<Self>, mut requests: UnboundedReceiver<Request>) {
        let beat = tokio::spawn(Arc::clone(&self).beat());
        let mut leaving = JoinSet::new();
        while let Some(request) = requests.recv().await {
            while leaving.try_join_next().is_some() {}
            match request {
                Request::Ask(ask) => drop(tokio::spawn(Arc::clone(&self).serve(ask))),
                Request::Leave(leave) => drop(leaving.spawn(Arc::clone(&self).leave(leave))),
                Request::Migrate(deadline, reply) => {
                    drop(reply.send(self.migrate(deadline).await));
                }
                Request::Close => break,
            }
        }
        beat.abort();
        let all = async { while leaving.join_next().await.is_some() {} };
        drop(timeout(self.settings.request_timeout, all).await);
    }

    async fn migrate(&self, deadline: Instant) -> Result<(), GateError> {
        self.connection.wait(deadline).await.map_err(|why| GateError::database(&why))?;
        let found = self.connection.make_tables(deadline, &TABLES).await;
        match found.map_err(|why| GateError::database(&why))? {
            Some(found) => {
                let detail = format!("{found}, and this program knows {}", TABLES.newest());
                Err(GateError::bad(GateErrorKind::NewerTables, detail))
            }
            None => Ok(()),
        }
    }

    /// Answers a request for a tick.
    async fn serve(self: Arc<Self>, ask: Ask) {
        let answer =
            self.answer(&ask).await.unwrap_or_else(|why| Answer::Unreachable(with_sources(&why)));
        // If the task waits no longer, a grant is given back.
        (ask.reply)(answer);
    }

    async fn answer(&self, ask: &Ask) -> Result<Answer, AskError> {
        let turns = self.turns(&ask.name);
        let Ok(mut last_fence) = timeout_at(ask.deadline, turns.lock()).await else {
            return Err(AskError::NoAnswer);
        };
        // Its end has been told by now: that had its turn before.
        if ask.retry_of.as_ref().is_some_and(|failed| failed.is_finished()) {
            return Ok(Answer::Passed);
        }
        let seen = self.look(&ask.name, ask.deadline, *last_fence).await?;
        let verdict = decide(&seen, ask.tick, ask.rule);
        if let Some(catching_up) = &ask.catching_up {
            let asked = Asked { tick: ask.tick, rule: ask.rule, now: ask.now };
            if catching_up.puts_off(&seen, verdict, asked) {
                return Ok(Answer::Passed);
            }
        }
        match verdict {
            Verdict::Early(span) => Ok(Answer::Later(span)),
            Verdict::Held(left) => Ok(Answer::Held(left)),
            Verdict::Passed => Ok(Answer::Passed),
            Verdict::Ahead => Ok(Answer::Ahead),
            Verdict::SetBack(by) => self.set_right(ask, seen.row.as_ref(), by).await,
            Verdict::Free => {
                let sent = (self.settings.clock)();
                let Some(fence) = self.take(ask, seen.row.as_ref()).await? else {
                    return Ok(self.locked());
                };
                *last_fence = fence;
                if let Some(catching_up) = &ask.catching_up {
                    catching_up.tell_passed_over(ask.tick);
                }
                Ok(self.granted(ask, fence, sent))
            }
        }
    }

    /// Returns the answer about a row that another transaction has locked, or another replica has just claimed.
    fn locked(&self) -> Answer {
        Answer::Held(self.settings.lease)
    }

    /// Sets a row right that was written by a clock which has been set back since.
    async fn set_right(
        &self,
        ask: &Ask,
        seen: Option<&Row>,
        by: Duration,
    ) -> Result<Answer, AskError> {
        let Some(row) = seen else { return Ok(self.locked()) };
        let (name, correction): (&str, _) = (&ask.name, CORRECTION.as_secs_f64());
        let parameters: [Param<'_>; 5] =
            [&name, &row.fence, &row.lease_until, &ask.tick, &correction];
        if self.connection.ask(ask.deadline, sql::SET_RIGHT, &parameters).await?.is_empty() {
            return Ok(self.locked());
        }
        let name = Arc::clone(&ask.name);
        self.reporter.report(&GateEvent::ClockSetBack { name, by });
        Ok(Answer::Later(Duration::ZERO))
    }

    fn granted(&self, ask: &Ask, fence: i64, sent: Duration) -> Answer {
        let lease = self.settings.lease;
        let name = Arc::clone(&ask.name);
        let state = Arc::new(LeaseState::new(name, fence, sent, lease, self.settings.clock));
        let gate = ask.gate.clone();
        let grant = Grant { state: Arc::clone(&state), gate, is_left: false };
        if state.is_lost() {
            // The process was frozen, or the answer took longer than the lease. The grant goes back.
            return Answer::Later(BUSY);
        }
        self.held.add(&state, sent + lease / 3);
        Answer::Granted(grant)
    }

    fn turns(&self, name: &Arc<str>) -> Arc<Turns<i64>> {
        Arc::clone(self.names.lock().entry(Arc::clone(name)).or_default())
    }

    /// Reads the row of a name. `last_fence` is the last one that was handed out.
    async fn look(
        &self,
        name: &Arc<str>,
        deadline: Instant,
        last_fence: i64,
    ) -> Result<Seen, AskError> {
        let name: &str = name;
        let rows = self.connection.ask(deadline, sql::LOOK, &[&name]).await?;
        let Some(row) = rows.first() else { return Err(AskError::NoAnswer) };
        let tick: Option<SystemTime> = row.get(1);
        let read = |tick| {
            let fence: i64 = row.get(3);
            let is_own = row.get::<_, &str>(5) == self.settings.holder;
            let lease = Duration::try_from_secs_f64(row.get(6)).unwrap_or(Duration::ZERO);
            Row {
                tick,
                done: row.get(2),
                fence,
                lease,
                lease_until: row.get(4),
                is_orphan: is_own && fence > last_fence,
            }
        };
        Ok(Seen { now: row.get(0), row: tick.map(read) })
    }

    /// Takes the row, if it is the one that was seen; returns the fencing token.
    async fn take(&self, ask: &Ask, seen: Option<&Row>) -> Result<Option<i64>, AskError> {
        let Settings { lease, holder, .. } = &self.settings;
        let (name, lease): (&str, _) = (&ask.name, lease.as_secs_f64());
        let mut parameters: Vec<Param<'_>> = vec![&name, &ask.tick, holder, &lease];
        let mut statement = sql::INSERT;
        if let Some(row) = seen {
            statement = sql::TAKE;
            parameters.push(&row.fence);
            parameters.push(&row.done);
            parameters.push(&row.lease_until);
        }
        let rows = self.connection.ask(ask.deadline, statement, &parameters).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Sends a statement about a lease that is held; returns whether it found the row.
    async fn about(
        &self,
        state: &LeaseState,
        statement: &str,
        third: Option<Param<'_>>,
        deadline: Instant,
    ) -> Result<bool, AskError> {
        let name: &str = &state.name;
        let mut parameters: Vec<Param<'_>> = vec![&name, &state.fence];
        parameters.extend(third);
        Ok(!self.connection.ask(deadline, statement, &parameters).await?.is_empty())
    }

    /// Notes what has become of a lease whose row was not found: it is another's, or finished, or locked
    /// by another transaction for the moment. Returns whether that is known now.
    async fn look_after(&self, state: &LeaseState, deadline: Instant) -> Result<bool, AskError> {
        let name: &str = &state.name;
        let rows = self.connection.ask(deadline, sql::FATE, &[&name, &state.fence]).await?;
        match rows.first().map(|row| (row.get(0), row.get(1))) {
            Some((true, _)) => return Ok(false),
            Some((false, true)) => state.finished(),
            Some((false, false)) | None => state.lost(),
        }
        Ok(true)
    }

    /// Looks at what is held, as long as anything is.
    async fn beat(self: Arc<Self>) {
        let pause = (self.settings.lease / 20).min(LONGEST_BEAT);
        loop {
            while self.held.len() == 0 {
                self.held.some.notified().await;
            }
            sleep(pause).await;
            for state in self.held.states() {
                self.take_off_if_over(&state);
            }
            for state in self.held.begin_renewals((self.settings.clock)()) {
                if state.lapse_unless_begun() {
                    self.held.remove(&state);
                    drop(
                        self.requests
                            .send(Request::Leave(Leave { state, how: Leaving::GivenBack })),
                    );
                } else {
                    tokio::spawn(Arc::clone(&self).renew(state));
                }
            }
        }
    }

    async fn renew(self: Arc<Self>, state: Arc<LeaseState>) {
        let Settings { lease, request_timeout, .. } = &self.settings;
        let sent = (self.settings.clock)();
        let deadline = Instant::now() + *request_timeout;
        let third = lease.as_secs_f64();
        let third = Some(&third as _);
        let soon = sent + *lease / 20;
        let renew_at = match self.about(&state, sql::RENEW, third, deadline).await {
            Ok(true) => {
                if state.renewed(sent, *lease) {
                    self.reporter.count(|counts| counts.renewed += 1);
                }
                sent + *lease / 3
            }
            Ok(false) => {
                drop(self.look_after(&state, deadline).await);
                soon
            }
            // The lease goes on by the clock, and is over if this goes on.
            Err(_) => soon,
        };
        self.held.end_renewal(&state, renew_at);
        self.take_off_if_over(&state);
    }

    /// Takes a lease that is lost or finished off the list, and reports it if it is lost.
    fn take_off_if_over(&self, state: &Arc<LeaseState>) {
        if state.is_lost() {
            if self.held.remove(state) {
                self.report_lost(state);
            }
        } else if state.is_finished() {
            self.held.remove(state);
        }
    }

    fn report_lost(&self, state: &LeaseState) {
        let (name, fence) = (Arc::clone(&state.name), fence_of(state.fence));
        self.reporter.report(&GateEvent::Lost { name, fence });
    }

    /// Tells the database that a run has ended, until it has been told or another replica has the row.
    async fn leave(self: Arc<Self>, Leave { state, how }: Leave) {
        let is_reported = !self.held.remove(&state);
        let was_lost = state.is_lost();
        if was_lost && !is_reported {
            self.report_lost(&state);
        }
        let turns = self.turns(&state.name);
        let _turn = turns.lock().await;
        let mut pause = BUSY;
        loop {
            let deadline = Instant::now() + self.settings.request_timeout;
            match self.leave_once(&state, how, deadline).await {
                Ok(true) => break,
                Ok(false) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_BEAT);
                }
                Err(_) => sleep(RETRY).await,
            }
        }
        // A run that was given back has not begun, and can have lost nothing.
        let has_begun = matches!(how, Leaving::Ended);
        if has_begun && !was_lost && !is_reported && state.is_lost() {
            self.report_lost(&state);
        }
    }

    async fn leave_once(
        &self,
        state: &LeaseState,
        how: Leaving,
        deadline: Instant,
    ) -> Result<bool, AskError> {
        let statement = match how {
            Leaving::Ended => sql::LEAVE,
            Leaving::GivenBack => sql::GIVE_BACK,
        };
        let is_told = self.about(state, statement, None, deadline).await?;
        if is_told { Ok(true) } else { self.look_after(state, deadline).await }
    }
}

/// Returns a fencing token as the core has it. Those of the sequence begin with one.
pub(crate) fn fence_of(fence: i64) -> u64 {
    u64::try_from(fence).unwrap_or(0)
}
