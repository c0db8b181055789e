//! One process: a runtime for the threads of the gate and the queue, executors, and clocks of its own.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use punctual::{
    DrivenExecutor, DropPolicy, FailurePolicy, ManualClock, MissedRuns,
    ScheduledThreadPoolExecutor, TaskContext, Trigger, with_context,
};
use punctual_jobs::{
    Job, JobError, JobLimit, JobRun, Jobs, OnEdit, Overlap, Postgres, PostgresQueue, Schedule,
    Seam, aligned,
    gate::{Gate, GateEvent, NamedGate, OnHolderDeath},
};
use serde::{Deserialize, Serialize};
use tokio::{
    runtime::{self, Runtime},
    task::yield_now,
    time::{Instant, advance, sleep_until},
};

use super::{
    actor::{self, Actor},
    boot_clock,
    caught_ledger::CAUGHT,
    database::Moment,
    ledger::{BEGIN, DELAY, Ledger},
    limit_ledger::METERED,
    limits::DrawnLimits,
    network::{Dialler, Network},
    plan::{self, Act, Drawn, Millis, Plan},
    wire::News,
};

pub(super) type Shared = Arc<Mutex<Ledger>>;

/// The year 2000, from which moments are counted.
const EPOCH: Duration = Duration::from_secs(946_684_800);

const URL: &str = "postgres://app@db/app";

/// A job of a kind with limits.
#[derive(Serialize, Deserialize)]
struct Metered {}
impl Job for Metered {
    const NAME: &'static str = METERED;
}

/// A job without an ordering key.
#[derive(Serialize, Deserialize)]
pub(super) struct Plain {}
impl Job for Plain {
    const NAME: &'static str = "plain";
}

/// A job with one.
#[derive(Serialize, Deserialize)]
pub(super) struct Keyed {}
impl Job for Keyed {
    const NAME: &'static str = "keyed";
}

/// The job of a schedule.
#[derive(Serialize, Deserialize)]
struct Sweep {}
impl Job for Sweep {
    const NAME: &'static str = "sweep";
}

/// The job of a schedule that is a row.
#[derive(Serialize, Deserialize)]
struct Rowed {}
impl Job for Rowed {
    const NAME: &'static str = "rowed";
}

impl Drawn {
    fn schedule(&self, period: Millis) -> Schedule {
        let overlap = match self.overlap {
            "skip" => Overlap::Skip,
            "queue" => Overlap::QueueOne,
            "replace" => Overlap::Replace,
            _ => Overlap::Allow(self.most),
        };
        let schedule = Schedule::every(self.name, Duration::from_millis(period), &Rowed {});
        let schedule = schedule.jitter(Duration::from_millis(self.jitter)).max_attempts(3);
        let on_edit = if self.code_wins { OnEdit::CodeWins } else { OnEdit::RowWins };
        schedule
            .catch_up(plan::catch_up(self.catch_up, self.window))
            .overlap(overlap)
            .on_edit(on_edit)
    }
}

/// See the [module](self).
pub(super) struct Process {
    /// No two processes have the same number, also of one replica.
    pub(super) number: u64,
    replica: usize,
    runtime: Option<Runtime>,
    begun: Instant,
    /// When it began, on the clock of the simulation.
    begun_at: Millis,
    /// How far it has come.
    pub(super) local: Millis,
    /// Something has arrived that its tasks have not seen.
    is_stirred: bool,
    clock: ManualClock,
    news: Arc<News>,
    pub(super) network: Arc<Network>,
    /// Notes the ticks of schedules in code.
    planner: DrivenExecutor,
    actors: Vec<Actor>,
    gate: Option<Gate>,
    queue: Option<PostgresQueue>,
}

pub(super) fn wall(moment: Moment) -> SystemTime {
    UNIX_EPOCH + EPOCH + Duration::from_micros(moment as u64)
}

pub(super) fn moment(wall: SystemTime) -> Moment {
    let since = wall.duration_since(UNIX_EPOCH + EPOCH).unwrap_or_default();
    since.as_micros() as Moment
}

impl Process {
    pub(super) fn start(
        (number, replica): (u64, usize),
        skew: i64,
        now: Millis,
        shared: &Shared,
    ) -> Self {
        let plan = shared.lock().plan.clone();
        let mut builder = runtime::Builder::new_current_thread();
        // Which of the tasks that wait for a connection goes on first is drawn.
        #[cfg(tokio_unstable)]
        builder.rng_seed(runtime::RngSeed::from_bytes(&(plan.seed ^ number << 32).to_be_bytes()));
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
        let clock = ManualClock::new();
        clock.set_wall_time(wall(BEGIN + (now as i64 + skew) * 1000));
        let news = Arc::new(News::default());
        let begun = runtime.block_on(async { Instant::now() });
        let network = Network::new(&news);
        let builder = ScheduledThreadPoolExecutor::builder().clock(clock.clone());
        let planner = builder.on_drop(DropPolicy::ShutdownNow).build_driven().expect("an executor");
        let mut process = Self {
            number,
            replica,
            begun,
            begun_at: now,
            local: now,
            is_stirred: true,
            clock,
            news,
            network,
            planner,
            actors: Vec::new(),
            gate: None,
            queue: None,
            runtime: Some(runtime),
        };
        process.open_gate(&plan, shared);
        process.open_queue(&plan, shared);
        process
    }

    fn handle(&self) -> runtime::Handle {
        self.runtime.as_ref().expect("the process lives").handle().clone()
    }

    fn seam(&self) -> Seam {
        Seam {
            dial: Arc::new(Dialler(Arc::clone(&self.network))),
            runtime: self.handle(),
            planner: self.planner.handle(),
            clock: boot_clock::now,
        }
    }

    fn begin_actor(&mut self) {
        let clock = self.clock.clone();
        let build = move || {
            let builder = ScheduledThreadPoolExecutor::builder().clock(clock);
            builder.on_drop(DropPolicy::ShutdownNow).build_driven().expect("an executor")
        };
        self.actors.push(Actor::begin(Box::new(build), self.handle(), &self.news));
    }

    /// Opens the gate, and submits the task of each name.
    fn open_gate(&mut self, plan: &Plan, shared: &Shared) {
        let ledger = Arc::clone(shared);
        let listener = move |event: &GateEvent| match event {
            GateEvent::Skipped { name, tick, .. } => {
                ledger.lock().skipped.insert((name.to_string(), moment(*tick)));
            }
            GateEvent::TicksMissed { ticks, .. } => ledger.lock().missed_of_gate += ticks,
            _ => {}
        };
        let lease = Duration::from_millis(plan.gate_lease);
        let gate = Gate::postgres(URL).lease(lease).on_event(listener);
        let gate = gate.through(self.seam()).open().expect("the settings are right");
        let period = Duration::from_millis(plan.period);
        let named = |name| gate.for_name(name).expect("a name");
        let delay = Duration::from_millis(DELAY);
        let always = FailurePolicy::resume();
        let backs_off = FailurePolicy::resume().back_off(period / 4..=period);
        let burst = (MissedRuns::Burst, always);
        let skips = named("skip").on_holder_death(OnHolderDeath::Skip);
        self.repeat("burst", named("burst"), aligned(period), burst, shared);
        self.repeat("skip", skips, aligned(period), (MissedRuns::Coalesce, always), shared);
        let jittered = aligned(period).jitter(period / 2);
        self.repeat("jitter", named("jitter"), jittered, (MissedRuns::Skip, always), shared);
        self.repeat(
            "failing",
            named("failing"),
            aligned(period),
            (MissedRuns::Coalesce, backs_off),
            shared,
        );
        let delayed = named("delay").with_delay(delay);
        let every = punctual::trigger::every(delay);
        self.repeat("delay", delayed, every, burst, shared);
        let caught = named(CAUGHT);
        let policy = plan::catch_up(plan.caught.catch_up, plan.caught.window);
        let every = aligned(period);
        let trigger = caught.catch_up(move |after| every.next_after(after), policy);
        self.repeat(CAUGHT, caught, trigger, (MissedRuns::Coalesce, always), shared);
        self.gate = Some(gate);
    }

    fn repeat(
        &mut self,
        name: &'static str,
        gate: NamedGate,
        trigger: impl Trigger,
        (missed, failure): (MissedRuns, FailurePolicy),
        shared: &Shared,
    ) {
        // Two names share an executor: one may wait for the body of the other.
        if self.actors.is_empty() || name == "jitter" {
            self.begin_actor();
        }
        let actor = self.actors.last().expect("there is one");
        let (process, ledger) = (self.number, Arc::clone(shared));
        let body = with_context(move |run| gated(name, run, process, &ledger));
        let task = actor.handle.task().name(name).missed_runs(missed).on_failure(failure);
        drop(task.gate(gate).repeat(trigger, body).expect("the executor takes tasks"));
    }

    fn open_queue(&mut self, plan: &Plan, shared: &Shared) {
        self.begin_actor();
        let executor = self.actors.last().expect("there is one").handle.clone();
        let number = self.number;
        let ledger = || Arc::clone(shared);
        let (plain, keyed, sweep, tells) = (ledger(), ledger(), ledger(), ledger());
        let rowed = ledger();
        let period = Duration::from_millis(plan.period);
        let delay = Duration::from_millis(300);
        let mut jobs = Jobs::new()
            .on(move |run: &JobRun, _: Plain| job(run, number, &plain))
            .on(move |run: &JobRun, _: Keyed| job(run, number, &keyed))
            .on(move |run: &JobRun, _: Sweep| job(run, number, &sweep))
            .on(move |run: &JobRun, _: Rowed| job(run, number, &rowed))
            .backoff::<Rowed>(punctual::Backoff::constant(delay))
            .backoff::<Plain>(punctual::Backoff::constant(delay))
            .backoff::<Keyed>(punctual::Backoff::constant(delay))
            .every(aligned(2 * period), Sweep {})
            .on_discarded(move |discarded| {
                actor::end_if_killed();
                tells.lock().tells(discarded.id.0, number);
            });
        if let Some(limits) = &plan.limits {
            let metered = ledger();
            jobs = jobs.on(move |run: &JobRun, _: Metered| job(run, number, &metered));
            jobs = limited(
                jobs.backoff::<Metered>(punctual::Backoff::constant(delay)),
                limits,
                self.replica,
            );
        }
        for drawn in plan.schedules.iter().filter(|it| it.is_declared) {
            jobs = jobs.schedule(drawn.schedule(drawn.period));
        }
        let lease = Duration::from_millis(plan.job_lease);
        let poll = Duration::from_millis(plan.poll);
        let slots = plan.slots[self.replica];
        let settings = Postgres::on(&executor, URL).lease(lease).poll(poll).slots(slots);
        let opened = jobs.open(settings.through(self.seam()));
        self.queue = Some(opened.expect("the settings are right"));
    }

    /// Goes on until that moment, or until something was written that the database has to hear of. Timers may take
    /// it as far as `ahead`, if nothing is due before: nothing that is under way can reach it.
    pub(super) fn run_to(&mut self, horizon: Millis, ahead: Millis, shared: &Shared) {
        if std::mem::take(&mut self.is_stirred) {
            self.settle();
        }
        loop {
            if self.act(shared) {
                self.settle();
            }
            if self.news.take_written() || self.local >= horizon {
                return;
            }
            let next = self.next();
            if next > self.local {
                self.go_on(ahead.min(next));
            }
        }
    }

    /// Returns when an executor has something to do.
    fn next(&mut self) -> Millis {
        let planned = self.planned();
        let actors = self.actors.iter().filter_map(|actor| actor.next(self.local));
        actors.chain(planned).min().unwrap_or(Millis::MAX)
    }

    /// Something has arrived.
    pub(super) fn stir(&mut self) {
        self.is_stirred = true;
    }

    fn planned(&mut self) -> Option<Millis> {
        let next = self.planner.time_until_next()?;
        Some(self.local + next.as_nanos().div_ceil(1_000_000) as Millis)
    }

    /// Has the executors do what is due; returns whether there was anything.
    fn act(&mut self, shared: &Shared) -> bool {
        if self.next() > self.local {
            return false;
        }
        shared.lock().set_now(self.local);
        if self.planned().is_some_and(|at| at <= self.local) {
            self.planner.run_due();
        }
        for actor in &mut self.actors {
            if actor.next(self.local).is_some_and(|at| at <= self.local) {
                actor.act(self.local);
            }
        }
        true
    }

    /// Lets the tasks of the runtime do what they can at this moment.
    fn settle(&mut self) {
        self.block_on(async { yield_now().await });
    }

    fn block_on(&mut self, future: impl Future<Output = ()>) {
        let Some(runtime) = &self.runtime else { return };
        let now = runtime.block_on(async {
            future.await;
            Instant::now()
        });
        let local = self.begun_at + (now - self.begun).as_millis() as Millis;
        self.clock.advance(Duration::from_millis(local - self.local));
        self.local = local;
    }

    /// Lets time go on until that moment, or until there is news.
    fn go_on(&mut self, until: Millis) {
        let news = Arc::clone(&self.news);
        let until = self.begun + Duration::from_millis(until - self.begun_at);
        self.block_on(async move {
            yield_now().await;
            let mut over = pin!(sleep_until(until));
            poll_fn(|context| {
                if news.take(context.waker()) {
                    Poll::Ready(())
                } else {
                    over.as_mut().poll(context)
                }
            })
            .await;
        });
    }

    /// Goes on after it was frozen until then.
    pub(super) fn thaw(&mut self, now: Millis) {
        let span = now.saturating_sub(self.local);
        self.block_on(advance(Duration::from_millis(span)));
        self.settle();
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.queue.is_none()
    }

    /// Does something with a schedule, without waiting for the answer.
    pub(super) fn act_on(&mut self, drawn: &Drawn, act: Act) {
        let Some(queue) = &self.queue else { return };
        let (schedules, name) = (queue.schedules(), drawn.name);
        match act {
            Act::Pause => drop(schedules.pause(name).call_async()),
            Act::Resume => drop(schedules.resume(name).call_async()),
            Act::RunNow => drop(schedules.run_now(name).call_async()),
            Act::Remove => drop(schedules.remove(name).call_async()),
            Act::Put(period) => drop(schedules.put(drawn.schedule(period)).call_async()),
        }
        self.is_stirred = true;
    }

    /// Closes the queue, as a program that ends.
    pub(super) fn stop(&mut self) {
        drop(self.queue.take());
        self.is_stirred = true;
    }

    pub(super) fn set_wall(&mut self, by: i64) {
        let wall = self.clock.wall_time();
        let moment = moment(wall) + by * 1000;
        self.clock.set_wall_time(self::wall(moment));
        self.news.tell();
    }
}

impl Drop for Process {
    /// Kills the process: from now on nothing of it does anything.
    fn drop(&mut self) {
        self.actors.clear();
        drop(self.runtime.take());
    }
}

/// Sets the limits of the program of a replica.
fn limited(jobs: Jobs, limits: &DrawnLimits, replica: usize) -> Jobs {
    let mut jobs = jobs;
    for limit in limits.settings(replica) {
        jobs = jobs.limit::<Metered>(limit);
    }
    match limits.of_rows {
        Some(most) => jobs.limit::<Rowed>(JobLimit::at_once(most)),
        None => jobs,
    }
}

/// The body behind a gate.
fn gated(
    name: &'static str,
    run: &TaskContext,
    process: u64,
    ledger: &Shared,
) -> Result<(), String> {
    actor::end_if_killed();
    let fence = run.fencing_token().expect("a gate gives one") as i64;
    let (span, steps, ending) = {
        let mut ledger = ledger.lock();
        ledger.begins(name, fence, process, run.is_lease_lost());
        let (period, lease) = (ledger.plan.period, ledger.plan.gate_lease);
        let ending = if ledger.is_well { 3 } else { ledger.random.between(1, 6) };
        let (span, steps) = ledger.length(period / 8, lease);
        (span, steps, ending)
    };
    for _ in 0..steps {
        actor::last(Duration::from_millis(span));
        ledger.lock().acts(name, fence, process, run.is_lease_lost());
    }
    if ending == 1 {
        commit(name, fence, process, ledger, Ledger::is_guarded);
    } else if ending == 2 && name != "failing" {
        commit(name, fence, process, ledger, Ledger::is_finished);
    }
    ledger.lock().ends(fence);
    if name == "failing" && ending > 3 { Err("it fails".to_owned()) } else { Ok(()) }
}

/// Has a transaction that is guarded, for a while.
fn commit(
    name: &'static str,
    fence: i64,
    process: u64,
    ledger: &Shared,
    guard: fn(&mut Ledger, u64, &str, i64) -> Option<bool>,
) {
    let transaction = {
        let mut ledger = ledger.lock();
        let transaction = ledger.begin_transaction();
        ledger.open.push((transaction, process));
        transaction
    };
    loop {
        let passed = guard(&mut ledger.lock(), transaction, name, fence);
        match passed {
            Some(true) => break,
            Some(false) => return,
            None => actor::last(Duration::from_millis(1)),
        }
    }
    let span = ledger.lock().random.between(1, 200);
    // The ledger rolls back the open transactions of a process when the process dies.
    actor::last(Duration::from_millis(span));
    let mut ledger = ledger.lock();
    ledger.commits(name, fence, transaction);
}

impl Ledger {
    /// Returns how far apart a body acts, and how often: some go on for longer than a lease.
    fn length(&mut self, short: Millis, lease: Millis) -> (Millis, u64) {
        if !self.is_well && self.random.once_in(10) {
            return (lease / 16, self.random.between(0, 32));
        }
        (self.random.between(1, short), self.random.between(0, 2))
    }

    fn is_guarded(&mut self, transaction: u64, name: &str, fence: i64) -> Option<bool> {
        self.database.guard(transaction, name, fence)
    }

    fn is_finished(&mut self, transaction: u64, name: &str, fence: i64) -> Option<bool> {
        self.database.finish(transaction, name, fence)
    }
}

/// The handler of all jobs.
fn job(run: &JobRun, process: u64, ledger: &Shared) -> Result<(), JobError> {
    actor::end_if_killed();
    let id = run.id.0;
    let is_lost = || run.token().is_cancelled();
    let (claim, span, steps, ending) = {
        let mut ledger = ledger.lock();
        let claim = ledger.claim_of(id, process, run.attempt);
        ledger.job_begins(id, claim, process, is_lost());
        let lease = ledger.plan.job_lease;
        let ending = if ledger.is_well { 10 } else { ledger.random.between(1, 10) };
        let acts = ledger.plan.acts_of_jobs.filter(|_| !ledger.is_well);
        let (span, steps) =
            acts.map_or_else(|| ledger.length(60, lease), |acts| (lease / 64, acts));
        (claim, span, steps, ending)
    };
    for _ in 0..steps {
        actor::last(Duration::from_millis(span));
        ledger.lock().job_acts(id, claim, process, is_lost());
    }
    match ending {
        1 | 2 => Err(JobError::new("it fails")),
        3 => Err(JobError::discard("it has had enough")),
        4 => Err(JobError::snooze(Duration::from_millis(200))),
        _ => Ok(()),
    }
}
