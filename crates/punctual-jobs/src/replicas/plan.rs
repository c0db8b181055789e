//! What a seed does: how the replicas are set, and what happens to them and to the database.

use super::random::Random;

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
}

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
        Self {
            seed,
            gate_lease,
            job_lease,
            period: random.pick(&[400, 700, 1_000]),
            skews,
            jobs: random.between(0, 8),
            length,
            troubles,
        }
    }

    pub(super) fn has(&self, is_such: impl Fn(&Trouble) -> bool) -> bool {
        self.troubles.iter().any(|(_, trouble)| is_such(trouble))
    }
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
