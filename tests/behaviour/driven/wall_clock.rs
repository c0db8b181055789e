//! Tasks on the wall clock, as the caller of a driven executor sees them.

use std::time::Duration;

use punctual::{ScheduledThreadPoolExecutor, trigger::at};

use super::{SECOND, Wakes, driven, run_for};
use crate::support::Log;

const HOUR: Duration = Duration::from_secs(3_600);

/// M201: the first call at a look after the clock was set finds every task where it belongs then.
#[test]
fn a_call_follows_the_wall_clock() {
    let (clock, mut executor) = driven();
    let begin = clock.wall_time();
    let log = Log::new();
    let (ran, shown) = (log.clone(), clock.clone());
    let moments = [begin + HOUR, begin + 2 * HOUR, begin + 3 * HOUR];
    let task = executor.repeat(at(moments), move || {
        ran.push((shown.elapsed(), shown.wall_time().duration_since(begin).unwrap()));
    });
    let (task, look) = (task.unwrap(), 30 * SECOND);
    assert_eq!((executor.time_until_next(), task.delay()), (Some(look), Some(HOUR)));
    clock.set_wall_time(begin + HOUR - SECOND);
    assert_eq!((executor.time_until_next(), task.delay()), (Some(look), Some(SECOND)));
    // Ahead, beyond the moment: it is due at the look.
    clock.advance(look);
    assert_eq!((executor.time_until_next(), executor.run_due()), (Some(Duration::ZERO), 1));
    // Back: the next moment is further away.
    clock.set_wall_time(begin);
    assert_eq!((executor.run_due(), task.delay()), (0, Some(2 * HOUR)));
    run_for(&clock, &mut executor, 3 * HOUR);
    let ran =
        [(look, HOUR + 29 * SECOND), (2 * HOUR + look, 2 * HOUR), (3 * HOUR + look, 3 * HOUR)];
    assert_eq!(log.entries(), ran);
}

/// On the system's clock, which is not set here, the caller is to look within half a minute; and not at all if
/// nothing waits.
#[test]
fn the_caller_looks_within_half_a_minute() {
    let mut executor = ScheduledThreadPoolExecutor::builder().build_driven().unwrap();
    let _wakes = Wakes::of(&mut executor);
    assert_eq!(executor.time_until_next(), None);
    let task = executor.repeat(at([executor.clock().wall_time() + HOUR]), || ()).unwrap();
    let told = executor.time_until_next().unwrap();
    assert!(told <= 30 * SECOND && told > 20 * SECOND, "{told:?}");
    assert!(task.cancel());
    assert_eq!(executor.time_until_next(), None);
}
