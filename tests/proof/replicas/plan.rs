//! The plan of a seed: how the replicas are set, and the troubles of theirs and of the database.

use std::time::Duration;

use punctual_jobs::CatchUp;

use super::{limits::DrawnLimits, random::Random};

/// In milliseconds, of the simulation or as a span.
pub(super) type Millis = u64;

pub(super) const REPLICAS: usize = 3;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A process is killed, and started again after so long.
    Kill(usize, Millis),
    /// A process closes its queue, ends, and is started again after so long.
    Stop(usize, Millis),
    /// A process is frozen for so long.
    Freeze(usize, Millis),
    /// The connections of a process are cut; what the server has read of them is carried out.
    Cut(usize),
    /// What the server says to a process from now on does not arrive, until it connects again.
    Mute(usize),
    /// The network drops everything between the server and a process for this span.
    Partition(usize, Millis),
    /// The heartbeats of a process do not arrive for so long, and all else does.
    LoseBeats(usize, Millis),
    /// The server is gone for so long, and comes back with all that was committed.
    Outage(Millis),
    /// The server answers nothing for so long.
    Silence(Millis),
    /// The network is slow for this span.
    Slow(Millis),
    /// The wall clock of a process is set by so many milliseconds.
    SetClock(usize, i64),
    /// The clock of the server is set by so many milliseconds.
    SetServerClock(i64),
    /// A transaction of the program's own holds the row of a job for so long, if there is one.
    Hold(Millis),
    /// A standby takes the place of the server. It lacks the transactions of the last span of this length.
    LossyFailover(Millis),
}

/// A schedule that is a row.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) name: &'static str,
    /// Whether programs declare it; else a person has put it before.
    pub(super) is_declared: bool,
    pub(super) code_wins: bool,
    pub(super) period: Millis,
    pub(super) jitter: Millis,
    /// `none`, `last` or `each`, and the window.
    pub(super) catch_up: &'static str,
    pub(super) window: Millis,
    /// `skip`, `queue`, `replace` or `allow`, and how many.
    pub(super) overlap: &'static str,
    pub(super) most: u32,
    /// How long before the beginning it was settled last.
    pub(super) ago: Millis,
}

/// A gate that makes up for missed ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaughtGate {
    /// `none`, `last` or `each`, and the window.
    pub(super) catch_up: &'static str,
    pub(super) window: Millis,
    /// How long before the beginning a replica has run it last, if one has.
    pub(super) ago: Option<Millis>,
}

/// Returns the policy of this name.
pub(super) fn catch_up(name: &str, window: Millis) -> CatchUp {
    let window = Duration::from_millis(window);
    match name {
        "none" => CatchUp::None,
        "last" => CatchUp::Last(window),
        _ => CatchUp::Each(window),
    }
}

/// What a person does with a schedule, by the queue of a replica.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Pause,
    Resume,
    RunNow,
    Remove,
    /// Puts it with this period.
    Put(Millis),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) gate_lease: Millis,
    pub(super) job_lease: Millis,
    pub(super) period: Millis,
    pub(super) skews: [i64; REPLICAS],
    pub(super) jobs: u64,
    /// How long there is trouble.
    pub(super) length: Millis,
    pub(super) troubles: Vec<(Millis, Trouble)>,
    pub(super) schedules: Vec<Drawn>,
    pub(super) caught: CaughtGate,
    /// When, by which replica, to which schedule.
    pub(super) acts: Vec<(Millis, usize, usize, Act)>,
    pub(super) limits: Option<DrawnLimits>,
    /// How many replicas there are until all is well.
    pub(super) replicas: usize,
    /// How many jobs each replica runs at once.
    pub(super) slots: [usize; REPLICAS],
    /// How often the bodies of jobs act, 64 times a lease, until all is well; else it is drawn for each, with the span.
    pub(super) acts_of_jobs: Option<u64>,
    /// How often queues look for jobs that nobody has told them of. If that is seldom, they are told of all.
    pub(super) poll: Millis,
}

/// A poll that finds nothing before a simulation is over.
pub(super) const SELDOM: Millis = 60_000;

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let length = random.between(1_500, 5_000);
        let gate_lease = random.between(300, 1_000);
        let job_lease = random.between(300, 1_000);
        let count = random.between(0, 6);
        let mut skew = || match random.between(1, 4) {
            1 => random.between(0, 6_000) as i64 - 3_000,
            _ => random.between(0, 200) as i64 - 100,
        };
        let skews = [skew(), skew(), skew()];
        let mut troubles: Vec<_> = (0..count)
            .map(|_| (random.between(0, length), trouble(&mut random, gate_lease.max(job_lease))))
            .collect();
        troubles.sort_by_key(|(at, _)| *at);
        let period = random.pick(&[400, 700, 1_000]);
        let jobs = random.between(0, 8);
        let schedules: Vec<_> =
            ["r0", "r1", "r2"].map(|name| Drawn::of(name, &mut random)).to_vec();
        let count = random.between(0, 6);
        let acts = (0..count).map(|_| act(&mut random, length)).collect();
        // What came later is drawn apart, so that all else of a seed stays as it was.
        let mut random = Random::new(seed ^ 0x0ca7_c4ed);
        let caught = CaughtGate::of(&mut random);
        let nap = random.between(11_000, 25_000);
        let length = if random.once_in(6) {
            sleep(&mut troubles, nap, random.between(0, length));
            length + nap
        } else {
            length
        };
        let mut random = Random::new(seed ^ 0x0011_111d);
        let limits = random.once_in(2).then(|| DrawnLimits::of(&mut random));
        let poll = if random.once_in(3) { SELDOM } else { 1_000 };
        let mut random = Random::new(seed ^ 0x0051_0751);
        // With one slot each, a limit of three cannot bind.
        let slots = if limits.is_some() && random.once_in(3) { 1 } else { 2 };
        let slots = [slots; REPLICAS];
        Self {
            seed,
            gate_lease,
            job_lease,
            period,
            skews,
            jobs,
            length,
            troubles,
            schedules,
            caught,
            acts,
            limits,
            replicas: REPLICAS,
            slots,
            acts_of_jobs: None,
            poll,
        }
    }

    pub(super) fn has(&self, is_such: impl Fn(&Trouble) -> bool) -> bool {
        self.troubles.iter().any(|(_, trouble)| is_such(trouble))
    }
}

impl CaughtGate {
    fn of(random: &mut Random) -> Self {
        let ago = random.pick(&[0, 3_000, 15_000, 45_000, 600_000]);
        Self {
            catch_up: random.pick(&["none", "last", "each"]),
            window: random.pick(&[1_000, 20_000, 60_000, 3_600_000]),
            ago: (!random.once_in(4)).then_some(ago),
        }
    }
}

/// Freezes all replicas, for longer than a tick is on time.
fn sleep(troubles: &mut Vec<(Millis, Trouble)>, span: Millis, at: Millis) {
    troubles.extend((0..REPLICAS).map(|replica| (at, Trouble::Freeze(replica, span))));
    troubles.sort_by_key(|(at, _)| *at);
}

impl Drawn {
    fn of(name: &'static str, random: &mut Random) -> Self {
        let is_declared = random.once_in(3);
        let window = random.pick(&[1_000, 20_000, 60_000, 3_600_000]);
        let ago = random.pick(&[0, 0, 3_000, 15_000, 45_000, 600_000]);
        let jitter = if random.once_in(3) { random.between(1, 2_000) } else { 0 };
        Self {
            name,
            is_declared,
            code_wins: random.once_in(2),
            period: random.pick(&[300, 500, 1_000, 7_000]),
            jitter,
            catch_up: random.pick(&["none", "last", "each"]),
            window,
            overlap: random.pick(&["skip", "queue", "replace", "allow"]),
            most: random.between(1, 3) as u32,
            ago: if is_declared { 0 } else { ago },
        }
    }
}

fn act(random: &mut Random, length: Millis) -> (Millis, usize, usize, Act) {
    let (at, replica, schedule) =
        (random.between(0, length), random.below(REPLICAS), random.below(3));
    let act = match random.between(1, 8) {
        1..=2 => Act::Pause,
        3..=4 => Act::Resume,
        5 => Act::RunNow,
        6 => Act::Remove,
        _ => Act::Put(random.pick(&[300, 500, 1_000, 7_000])),
    };
    (at, replica, schedule, act)
}

fn trouble(random: &mut Random, lease: Millis) -> Trouble {
    let replica = random.below(REPLICAS);
    // Some are short beside the lease, and some are long.
    let span = random.between(1, lease * 2);
    match random.between(1, 29) {
        1..=4 => Trouble::Kill(replica, random.between(0, 1_500)),
        5..=8 => Trouble::Freeze(replica, span),
        9..=11 => Trouble::Cut(replica),
        12..=14 => Trouble::Mute(replica),
        15..=16 => Trouble::Outage(span),
        17..=18 => Trouble::Silence(span),
        19 => Trouble::Slow(span),
        20 => Trouble::SetClock(replica, random.between(0, 4_000) as i64 - 2_000),
        21 => {
            let steps = [-90_000, -1_000, -300, 300, 1_000, 90_000];
            Trouble::SetServerClock(random.pick(&steps))
        }
        22..=23 => Trouble::Hold(span),
        24..=25 => Trouble::Stop(replica, random.between(0, 1_500)),
        26..=28 => Trouble::Partition(replica, span),
        _ => Trouble::LossyFailover(random.between(1, 500)),
    }
}
