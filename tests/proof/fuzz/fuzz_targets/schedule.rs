//! When a task runs: delays and periods of any length, on a clock at any time of its life, with
//! runs that are missed, take long and panic; against arithmetic that cannot overflow.
//!
//! The time is the manual clock's. The test advances it in leaps, and each run advances it by its
//! own duration.

#![no_main]

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use punctual::{
    FailurePolicy, Handle, ManualClock, MissedRuns, ScheduledThreadPoolExecutor, current_task,
};

/// The time that never comes, in nanoseconds, and the last one that a clock can show.
const NEVER: u128 = u64::MAX as u128;
const LAST: u128 = NEVER - 1;
/// More than the past that a clock can represent: a clock that starts this late has all of it after
/// its origin, and so counts to [`LAST`] from there.
const START: Duration = Duration::from_secs(366 * 86_400);
/// The number of runs that are compared: a leap over an age causes more than can be caught up.
const RUNS: usize = 24;

/// A length of time, long or short.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Span {
    Short(u8),
    Nanos(u64),
    /// Almost the longest span.
    Long(u8),
    Any(u64, u32),
}

impl Span {
    fn get(self) -> Duration {
        match self {
            Self::Short(nanos) => Duration::from_nanos(nanos.into()),
            Self::Nanos(nanos) => Duration::from_nanos(nanos),
            Self::Long(less) => Duration::from_nanos(u64::MAX - u64::from(less)),
            Self::Any(secs, nanos) => Duration::new(secs, nanos % 1_000_000_000),
        }
    }

    fn nanos(self) -> u128 {
        self.get().as_nanos()
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    Burst,
    Coalesce,
    Skip,
    Delay,
    FixedDelay,
}

#[derive(Arbitrary, Debug)]
struct Input {
    start: Span,
    initial: Span,
    period: Span,
    kind: Kind,
    /// The least wait after a panic, which doubles with each further one.
    back_off: Option<(Span, Span)>,
    /// The duration of each run, and whether it panics then; the other runs take no time.
    runs: Vec<(Span, bool)>,
    leaps: Vec<Span>,
}

/// One run: its planned time, its start, and the number of further runs that it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    planned: u128,
    began: u128,
    missed: u128,
}

fuzz_target!(|input: Input| {
    if input.period.nanos() > 0 && !is_in_vain(&input) {
        assert_eq!(observed(&input), expected(&input), "{input:?}");
    }
});

/// Whether the back-off is never longer than the period: such a task is refused.
fn is_in_vain(input: &Input) -> bool {
    let period = input.period.nanos().min(NEVER);
    let longest = |(first, longest): (Span, Span)| {
        (first.nanos().min(NEVER) << 63).min(NEVER).min(longest.nanos())
    };
    input.back_off.is_some_and(|back_off| longest(back_off) <= period)
}

/// The executor's runs.
fn observed(input: &Input) -> Vec<Run> {
    let clock = ManualClock::starting_at(START.saturating_add(input.start.get()));
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(clock.clone());
    let executor = builder.build().expect("the settings are good");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let body = body(input, &clock, &executor.handle(), &seen);
    let on_failure = FailurePolicy::resume();
    let task = executor.task().on_failure(match input.back_off {
        Some((first, longest)) => on_failure.back_off(first.get()..=longest.get()),
        None => on_failure,
    });
    let (initial, period) = (input.initial.get(), input.period.get());
    let task = match missed(input.kind) {
        Some(missed) => task.missed_runs(missed).schedule_at_fixed_rate(initial, period, body),
        None => task.schedule_with_fixed_delay(initial, period, body),
    };
    let task = task.expect("the executor is open, and the period is not zero");
    clock.run_until_idle();
    for leap in &input.leaps {
        clock.advance(leap.get());
        clock.run_until_idle();
    }
    drop(task);
    drop(executor);
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.clone()
}

fn missed(kind: Kind) -> Option<MissedRuns> {
    Some(match kind {
        Kind::Burst => MissedRuns::Burst,
        Kind::Coalesce => MissedRuns::Coalesce,
        Kind::Skip => MissedRuns::Skip,
        Kind::Delay => MissedRuns::Delay,
        Kind::FixedDelay => return None,
    })
}

fn body(
    input: &Input,
    clock: &ManualClock,
    executor: &Handle,
    seen: &Arc<Mutex<Vec<Run>>>,
) -> impl FnMut() + Send + use<> {
    let (clock, executor, seen) = (clock.clone(), executor.clone(), Arc::clone(seen));
    let mut runs: Vec<_> = input.runs.iter().map(|(span, panics)| (span.get(), *panics)).collect();
    runs.reverse();
    let origin = clock.now() - clock.elapsed();
    move || {
        let task = current_task().expect("inside a task");
        let nanos = |moment: Instant| (moment - origin).as_nanos();
        let run = Run {
            planned: nanos(task.planned().expect("an instant can say it")),
            began: clock.elapsed().as_nanos(),
            missed: task.missed_runs().into(),
        };
        assert_eq!(task.lateness().as_nanos(), run.began - run.planned);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(run);
        if seen.len() == RUNS {
            drop(executor.shutdown_now());
        }
        drop(seen);
        let (length, panics) = runs.pop().unwrap_or_default();
        clock.advance(length);
        if panics {
            // This bypasses the panic hook, which would print a message.
            std::panic::resume_unwind(Box::new(()));
        }
    }
}

/// The expected runs.
fn expected(input: &Input) -> Vec<Run> {
    let mut now = (START.as_nanos() + input.start.nanos()).min(LAST);
    let mut planned = (now + input.initial.nanos()).min(NEVER);
    let (mut skipped, mut failures, mut seen) = (0, 0, Vec::new());
    let leaps = input.leaps.iter().map(|leap| leap.nanos());
    for leap in [0].into_iter().chain(leaps) {
        now = (now + leap).min(LAST);
        while planned <= now && seen.len() < RUNS {
            if is_overdue(input, now - planned) {
                let (next, _, skips) = plan(input, planned, now, now);
                (planned, skipped) = (next, skipped + 1 + skips);
                continue;
            }
            let (length, panics) = input
                .runs
                .get(seen.len())
                .map_or((0, false), |(length, panics)| (length.nanos(), *panics));
            let (began, ended) = (now, (now + length).min(LAST));
            let (next, covered, skips) = plan(input, planned, began, ended);
            seen.push(Run { planned, began, missed: covered + skipped });
            (now, planned, skipped) = (ended, next, skips);
            failures = if panics { failures + 1 } else { 0 };
            // A wait of zero leaves the plan as it is.
            let wait = input.back_off.filter(|_| panics).map_or(0, |(first, longest)| {
                (first.nanos() << (failures - 1)).min(longest.nanos())
            });
            if wait > 0 {
                planned = planned.max((ended + wait).min(NEVER));
            }
        }
    }
    seen
}

/// Whether a run that is this late is left out.
fn is_overdue(input: &Input, late: u128) -> bool {
    const ON_TIME: u128 = 1_000_000;
    const AT_ALL: u128 = 10_000_000_000;
    matches!(input.kind, Kind::Skip)
        && (late > AT_ALL || late >= ON_TIME && late >= input.period.nanos())
}

/// The next planned time, the number of runs that this one stands for, and the number skipped
/// before the next.
fn plan(input: &Input, planned: u128, began: u128, ended: u128) -> (u128, u128, u128) {
    let period = input.period.nanos();
    let late = (began - planned) / period;
    let (next, covered, skips) = match input.kind {
        Kind::Burst => (planned + period, 0, 0),
        Kind::Coalesce => (planned + (late + 1) * period, late, 0),
        Kind::Skip => {
            let skips = (ended - planned) / period;
            (planned + (skips + 1) * period, 0, skips)
        }
        Kind::Delay if late == 0 => (planned + period, 0, 0),
        Kind::Delay => (began + period, late, 0),
        Kind::FixedDelay => (ended + period, 0, 0),
    };
    (next.min(NEVER), covered, skips)
}
