//! How long a job waits between two attempts.
//!
//! The default is `exp(min(attempts, 10))` seconds: 2.7 s, 7.4 s, 20 s, 55 s,
//! 2.5 min, 6.7 min, 18 min, 50 min, 2.3 h, and 6.1 h from then on. With 25 attempts a job is discarded
//! after some four days. It is the same in both queues, so that a program behaves alike on them.

use std::time::Duration;

/// Returns the delay after `attempts` attempts that have failed.
pub(crate) fn exponential(attempts: u32) -> Duration {
    Duration::from_secs_f64(f64::from(attempts.min(10)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delays_grow_up_to_six_hours() {
        let seconds = |attempts| exponential(attempts).as_secs_f64();
        assert!((seconds(1) - std::f64::consts::E).abs() < 1e-6);
        assert!((seconds(5) - 148.413_159_1).abs() < 1e-6);
        assert_eq!(exponential(10), exponential(25));
    }
}
