//! The rules and the lease, against a model: three replicas, one row, and a clock that is moved.
//!
//! The model's database does what the statements do, and no more: it compares what was seen, and stamps.
//! Each statement has three moments, at which anything else may happen in between: it is sent, it is
//! carried out, its answer arrives. Answers are lost, replicas die and come back as others, and bodies that
//! have lost their lease go on.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*};
use punctual::{
    ManualClock, RunGate, ScheduledThreadPoolExecutor, Trigger,
    gate::{Entry, Tick},
};

use super::{super::lease::LeaseState, *};
use crate::aligned;

const LEASE: Duration = Duration::from_millis(2000);
const PERIOD: u64 = 1000;
const DELAY: Duration = Duration::from_millis(700);
const REPLICAS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Look(usize),
    Send(usize),
    CarryOut(usize),
    Arrive(usize),
    LoseAnswer(usize),
    Renew(usize),
    Leave(usize),
    Die(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let replica = || 0..REPLICAS;
    let step = prop_oneof![
        4 => (1..600_u64).prop_map(Step::Pass),
        6 => replica().prop_map(Step::Look),
        6 => replica().prop_map(Step::Send),
        8 => replica().prop_map(Step::CarryOut),
        8 => replica().prop_map(Step::Arrive),
        1 => replica().prop_map(Step::LoseAnswer),
        4 => replica().prop_map(Step::Renew),
        2 => replica().prop_map(Step::Leave),
        1 => replica().prop_map(Step::Die),
    ];
    vec(step, 0..250)
}

/// The row as the database has it.
#[derive(Clone, Copy)]
struct Stored {
    row: Row,
    holder: u64,
}

/// A statement on its way.
struct Flight {
    what: What,
    sent: Duration,
    /// Its outcome, once it has been carried out.
    outcome: Option<Option<i64>>,
}

#[derive(Clone, Copy)]
enum What {
    Take { seen: Option<Row>, tick: SystemTime },
    Renew { fence: i64 },
    Leave { fence: i64 },
}

#[derive(Default)]
struct Replica {
    /// Another one each time that it comes back.
    identity: u64,
    /// How far its clock is ahead, in milliseconds.
    ahead: i64,
    looked: Option<(Seen, SystemTime)>,
    flight: Option<Flight>,
    run: Option<(Arc<LeaseState>, SystemTime)>,
    last_fence: i64,
}

struct Model {
    rule: Rule,
    now: Duration,
    stored: Option<Stored>,
    replicas: Vec<Replica>,
    identities: u64,
    /// For each tick the fencing tokens under which its body has begun.
    begun: BTreeMap<SystemTime, Vec<i64>>,
    /// The fencing tokens whose runs have ended in the database, and when.
    ended: BTreeMap<i64, Duration>,
    last_granted: i64,
}

fn clock(now: Duration) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000) + now
}

impl Model {
    fn new(rule: Rule) -> Self {
        let replicas = [0, 7000, -7000].into_iter().zip(1..);
        let replicas = replicas
            .map(|(ahead, identity)| Replica { ahead, identity, ..Replica::default() })
            .collect();
        Self {
            rule,
            now: Duration::from_secs(100),
            stored: None,
            replicas,
            identities: REPLICAS as u64,
            begun: BTreeMap::new(),
            ended: BTreeMap::new(),
            last_granted: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Pass(millis) => self.now += Duration::from_millis(millis),
            Step::Look(replica) => self.look(replica),
            Step::Send(replica) => self.send(replica),
            Step::CarryOut(replica) => self.carry_out(replica),
            Step::Arrive(replica) => self.arrive(replica),
            Step::LoseAnswer(replica) => self.replicas[replica].flight = None,
            Step::Renew(replica) => self.about(replica, |fence| What::Renew { fence }),
            Step::Leave(replica) => {
                self.about(replica, |fence| What::Leave { fence });
                let replica = &mut self.replicas[replica];
                // The body has ended before the gate is told.
                let is_leaving = |flight: &Flight| matches!(flight.what, What::Leave { .. });
                replica.run.take_if(|_| replica.flight.as_ref().is_some_and(is_leaving));
            }
            Step::Die(replica) => {
                self.identities += 1;
                let (identity, ahead) = (self.identities, self.replicas[replica].ahead);
                self.replicas[replica] = Replica { identity, ahead, ..Replica::default() };
            }
        }
        self.at_most_one_trusts_its_lease();
    }

    fn look(&mut self, replica: usize) {
        let now = clock(self.now);
        let replica = &mut self.replicas[replica];
        if replica.run.is_some() || replica.flight.is_some() {
            return;
        }
        // The tick that its own clock shows, which may be far off.
        let shown = i64::try_from(self.now.as_millis()).unwrap() + replica.ahead;
        let tick = clock(Duration::from_millis(shown as u64 / PERIOD * PERIOD));
        let row = self.stored.map(|stored| Row {
            is_orphan: stored.holder == replica.identity && stored.row.fence > replica.last_fence,
            ..stored.row
        });
        replica.looked = Some((Seen { now, row }, tick));
    }

    fn send(&mut self, replica: usize) {
        let sent = self.now;
        let replica = &mut self.replicas[replica];
        let Some((seen, tick)) = replica.looked.take() else { return };
        if decide(&seen, tick, self.rule) == Verdict::Free {
            let what = What::Take { seen: seen.row, tick };
            replica.flight = Some(Flight { what, sent, outcome: None });
        }
    }

    fn about(&mut self, replica: usize, what: impl FnOnce(i64) -> What) {
        let sent = self.now;
        let replica = &mut self.replicas[replica];
        if let (None, Some((lease, _))) = (&replica.flight, &replica.run) {
            replica.flight = Some(Flight { what: what(lease.fence), sent, outcome: None });
        }
    }

    fn carry_out(&mut self, replica: usize) {
        let (now, identity) = (self.now, self.replicas[replica].identity);
        let Some(flight) = &mut self.replicas[replica].flight else { return };
        if flight.outcome.is_some() {
            return;
        }
        let lease_until = clock(now) + LEASE;
        let stored = &mut self.stored;
        flight.outcome = Some(match flight.what {
            What::Take { seen, tick } => {
                let is_same = match (&*stored, &seen) {
                    (None, None) => true,
                    (Some(Stored { row, .. }), Some(seen)) => {
                        (row.fence, row.done, row.lease_until)
                            == (seen.fence, seen.done, seen.lease_until)
                    }
                    _ => false,
                };
                is_same.then(|| {
                    let fence = seen.map_or(1, |row| row.fence + 1);
                    let (done, is_orphan) = (false, false);
                    let row = Row { tick, done, fence, lease: LEASE, lease_until, is_orphan };
                    *stored = Some(Stored { row, holder: identity });
                    fence
                })
            }
            What::Renew { fence } => {
                let found = stored.as_mut().filter(|it| it.row.fence == fence && !it.row.done);
                found.map(|stored| {
                    stored.row.lease_until = lease_until;
                    fence
                })
            }
            What::Leave { fence } => {
                stored.as_mut().filter(|it| it.row.fence == fence).map(|stored| {
                    stored.row.done = true;
                    stored.row.lease_until = clock(now);
                    self.ended.insert(fence, now);
                    fence
                })
            }
        });
        if let (What::Take { tick, .. }, Some(Some(fence))) = (flight.what, flight.outcome) {
            self.is_a_fair_grant(tick, fence);
        }
    }

    /// Asserts the invariants of each grant by the database.
    fn is_a_fair_grant(&mut self, tick: SystemTime, fence: i64) {
        assert_eq!(fence, self.last_granted + 1, "fences go up by one");
        self.last_granted = fence;
        match self.rule {
            Rule::Ticks(_) | Rule::Retry(_) => {
                assert!(clock(self.now) + TOLERANCE >= tick, "a tick is not early")
            }
            Rule::Delay(delay) => {
                if let Some(&end) = self.ended.get(&(fence - 1)) {
                    assert!(self.now >= end + delay, "the delay is kept");
                }
            }
        }
    }

    fn arrive(&mut self, replica: usize) {
        let now = self.now;
        let is_carried_out = |flight: &Flight| flight.outcome.is_some();
        let replica = &mut self.replicas[replica];
        let Some(flight) = replica.flight.take_if(|flight| is_carried_out(flight)) else { return };
        match (flight.what, flight.outcome.flatten()) {
            (What::Take { tick, .. }, Some(fence)) => {
                replica.last_fence = fence;
                let lease = LeaseState::new(
                    "a".into(),
                    fence,
                    flight.sent,
                    LEASE,
                    crate::gate::boot_clock::now,
                );
                if !lease.is_lost_at(now) {
                    replica.run = Some((Arc::new(lease), tick));
                    self.begins(tick, fence);
                }
            }
            (What::Renew { .. }, Some(_)) => {
                let Some((lease, _)) = &replica.run else { return };
                lease.renewed_at(now, flight.sent, LEASE);
            }
            (What::Renew { .. }, None) => {
                if let Some((lease, _)) = &replica.run {
                    lease.lost();
                }
            }
            (What::Leave { .. }, _) | (What::Take { .. }, None) => {}
        }
    }

    /// Asserts the invariants of each body that begins.
    fn begins(&mut self, tick: SystemTime, fence: i64) {
        let Rule::Ticks(lost) = self.rule else { return };
        let last = self.begun.last_key_value().map(|(&last, _)| last);
        assert!(last.is_none_or(|last| last <= tick), "ticks begin in order");
        let before = self.begun.entry(tick).or_default();
        assert!(lost == OnHolderDeath::Rerun || before.is_empty(), "a tick is not run again");
        for earlier in &*before {
            assert!(
                !self.ended.contains_key(earlier),
                "a tick that has ended does not begin again"
            );
        }
        before.push(fence);
    }

    fn at_most_one_trusts_its_lease(&self) {
        let trusting = self.replicas.iter().filter(|replica| {
            replica.run.as_ref().is_some_and(|(lease, _)| !lease.is_lost_at(self.now))
        });
        assert!(trusting.count() <= 1, "one lease at most is relied on");
    }

    /// When all is quiet the next tick is granted.
    fn goes_on(&mut self) {
        self.now += 3 * LEASE;
        for replica in 0..REPLICAS {
            self.step(&Step::Die(replica));
        }
        // By then each clock has left behind what the one that is ahead may have shown.
        for step in [Step::Look(0), Step::Send(0), Step::CarryOut(0), Step::Arrive(0)] {
            self.step(&step);
        }
        assert!(self.replicas[0].run.is_some(), "somebody runs the next tick");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn every_history_runs_each_tick_once_or_again_after_a_loss(steps in steps()) {
        history(Rule::Ticks(OnHolderDeath::Rerun), &steps);
    }

    #[test]
    fn every_history_skips_lost_ticks_if_they_are_to_be_skipped(steps in steps()) {
        history(Rule::Ticks(OnHolderDeath::Skip), &steps);
    }

    #[test]
    fn every_history_keeps_the_delay(steps in steps()) {
        history(Rule::Delay(DELAY), &steps);
    }
}

fn history(rule: Rule, steps: &[Step]) {
    let mut model = Model::new(rule);
    for step in steps {
        model.step(step);
    }
    model.goes_on();
}

fn row(tick: u64, done: bool, lease_until: u64) -> Row {
    let at = |millis| clock(Duration::from_millis(millis));
    let (tick, lease_until) = (at(tick), at(lease_until));
    Row { tick, done, fence: 1, lease: LEASE, lease_until, is_orphan: false }
}

fn verdict(now: u64, row: Option<Row>, tick: u64, rule: Rule) -> Verdict {
    let at = |millis| clock(Duration::from_millis(millis));
    decide(&Seen { now: at(now), row }, at(tick), rule)
}

const RERUN: Rule = Rule::Ticks(OnHolderDeath::Rerun);
const SKIP: Rule = Rule::Ticks(OnHolderDeath::Skip);

#[test]
fn a_tick_may_be_early_by_fifty_milliseconds_and_no_more() {
    assert_eq!(verdict(950, None, 1000, RERUN), Verdict::Free);
    assert_eq!(verdict(949, None, 1000, RERUN), Verdict::Early(Duration::from_millis(1)));
}

#[test]
fn a_tick_that_has_ended_and_one_that_is_older_have_passed() {
    for rule in [RERUN, SKIP] {
        assert_eq!(verdict(2000, Some(row(1000, true, 1500)), 1000, rule), Verdict::Passed);
        assert_eq!(verdict(2000, Some(row(1000, false, 1500)), 500, rule), Verdict::Passed);
    }
}

#[test]
fn a_held_tick_is_waited_for_or_has_passed() {
    let held = Some(row(1000, false, 3000));
    assert_eq!(verdict(2000, held, 1000, RERUN), Verdict::Held(Duration::from_secs(1)));
    assert_eq!(verdict(2000, held, 1000, SKIP), Verdict::Passed);
}

#[test]
fn a_lost_tick_is_free_when_its_lease_is_over_and_not_sooner() {
    let lost = Some(row(1000, false, 3000));
    assert_eq!(verdict(2999, lost, 1000, RERUN), Verdict::Held(Duration::from_millis(1)));
    assert_eq!(verdict(3000, lost, 1000, RERUN), Verdict::Free);
    assert_eq!(verdict(3000, lost, 1000, SKIP), Verdict::Passed);
}

#[test]
fn the_next_tick_waits_for_a_run_that_goes_on_and_for_a_lost_lease() {
    let running = Some(row(1000, false, 3000));
    for rule in [RERUN, SKIP] {
        assert_eq!(verdict(2000, running, 2000, rule), Verdict::Held(Duration::from_secs(1)));
        assert_eq!(verdict(3000, running, 2000, rule), Verdict::Free);
    }
}

#[test]
fn a_claim_whose_answer_was_lost_is_free_at_once() {
    let orphan = Some(Row { is_orphan: true, ..row(1000, false, 3000) });
    for rule in [RERUN, SKIP, Rule::Delay(DELAY)] {
        assert_eq!(verdict(1001, orphan, 1000, rule), Verdict::Free);
    }
}

#[test]
fn a_delay_counts_from_the_end_of_the_last_run_or_of_its_lease() {
    let rule = Rule::Delay(DELAY);
    let ended = Some(row(1000, true, 1500));
    assert_eq!(verdict(2000, ended, 0, rule), Verdict::Early(Duration::from_millis(200)));
    assert_eq!(verdict(2200, ended, 0, rule), Verdict::Free);
    let dead = Some(row(1000, false, 1500));
    assert_eq!(verdict(2000, dead, 0, rule), Verdict::Held(Duration::from_millis(200)));
    assert_eq!(verdict(2200, dead, 0, rule), Verdict::Free);
}

#[test]
fn a_tick_that_is_ahead_of_the_clock_is_not_run_twice_or_is_given_up_after_a_long_step() {
    let minute = 60_000;
    for rule in [RERUN, SKIP] {
        let ahead = |by| verdict(2000, Some(row(2000 + by, true, 1500)), 2000, rule);
        assert_eq!(ahead(50), Verdict::Passed, "a tick may be claimed early");
        assert_eq!(ahead(51), Verdict::Ahead);
        assert_eq!(ahead(minute), Verdict::Ahead);
        let by = Duration::from_millis(minute + 1);
        assert_eq!(ahead(minute + 1), Verdict::SetBack(by));
    }
    let far = Some(row(100 * minute, true, 1500));
    assert_eq!(verdict(9000, far, 0, Rule::Delay(DELAY)), Verdict::Free, "a delay has no ticks");
}

#[test]
fn a_lease_that_this_clock_cannot_have_written_is_set_right() {
    for rule in [RERUN, SKIP, Rule::Delay(DELAY)] {
        let held = |until| verdict(1000, Some(row(1000, false, until)), 1000, rule);
        assert!(!matches!(held(3050), Verdict::SetBack(_)), "a lease of two seconds, from now");
        assert_eq!(held(3051), Verdict::SetBack(Duration::from_millis(51)));
        let ended = |at| verdict(1000, Some(row(1000, true, at)), 1000, rule);
        assert!(!matches!(ended(1050), Verdict::SetBack(_)));
        assert_eq!(ended(1051), Verdict::SetBack(Duration::from_millis(51)));
    }
}

#[test]
fn a_failed_run_is_tried_again_until_another_one_is_claimed() {
    let retry = |row| verdict(2000, Some(row), 1000, Rule::Retry(1));
    let failed = row(1000, true, 1500);
    assert_eq!(retry(failed), Verdict::Free);
    assert_eq!(retry(Row { fence: 2, ..failed }), Verdict::Passed, "another has tried it again");
    assert_eq!(retry(row(1001, true, 1500)), Verdict::Passed, "a later one has run");
    assert_eq!(retry(row(1001, false, 3000)), Verdict::Passed, "a later one runs");
    let orphan = Row { is_orphan: true, fence: 2, ..row(1000, false, 3000) };
    assert_eq!(retry(orphan), Verdict::Free, "an answer was lost");
    assert_eq!(retry(Row { fence: 2, ..row(999, true, 0) }), Verdict::Free, "it was given back");
}

/// A row in memory, about which every replica decides by the rules. A run takes no time.
#[derive(Clone, Default)]
struct InMemory(Arc<Mutex<Option<Row>>>);

impl RunGate for InMemory {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        let (now, planned) = (tick.clock().wall_time(), tick.planned_wall());
        let mut row = self.0.lock();
        match decide(&Seen { now, row: *row }, planned, RERUN) {
            Verdict::Free => {
                let fence = row.map_or(1, |row| row.fence + 1);
                let (tick, lease_until) = (planned, now);
                *row = Some(Row {
                    tick,
                    done: true,
                    fence,
                    lease: LEASE,
                    lease_until,
                    is_orphan: false,
                });
                Entry::Run
            }
            Verdict::Early(span) | Verdict::Held(span) => Entry::Again(span),
            Verdict::Passed | Verdict::Ahead | Verdict::SetBack(_) => Entry::Skip,
        }
    }
}

/// Replicas with jitter claim the moments of the trigger inside, so each of these has one run.
#[test]
fn eight_replicas_with_jitter_run_each_tick_once() {
    let minute = Duration::from_secs(60);
    let (clock, gate) = (ManualClock::new(), InMemory::default());
    clock.set_wall_time(UNIX_EPOCH + 1_000 * minute);
    let replicas: Vec<_> = (0..8)
        .map(|_| {
            let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1);
            let executor = builder.clock(clock.clone()).build().expect("good settings");
            let task = executor.task().name("sweep").gate(gate.clone());
            let trigger = aligned(minute).jitter(minute * 2 / 3);
            task.repeat(trigger, || ()).expect("it has a name");
            clock.run_for(Duration::from_secs(1));
            executor
        })
        .collect();
    clock.run_for(10 * minute + minute * 2 / 3);
    let (mut runs, mut skips) = (0, 0);
    for replica in &replicas {
        let now = replica.statistics();
        (runs, skips) = (runs + now.runs, skips + now.gate_skips);
    }
    assert_eq!((runs, skips), (10, 70));
    let claimed = gate.0.lock().expect("there were runs");
    assert_eq!((claimed.fence, claimed.tick), (10, UNIX_EPOCH + 1_010 * minute));
}
