//! The lateness of a job's runs.

use std::time::Duration;

use hdrhistogram::Histogram;

/// This many delays take less memory than a histogram would.
const FEW: usize = 100;
const DAY: u64 = 24 * 60 * 60 * 1_000_000_000;

/// Counts delays.
///
/// A histogram takes 150 kB, even if it is empty: that would be more than a gigabyte for ten
/// thousand jobs, of which most may run never or once. So nothing is allocated before the first
/// run, and a histogram only after many runs.
pub(crate) enum Lateness {
    /// The delays, in the order in which they were recorded.
    Few(Vec<Duration>),
    /// In nanoseconds, to three digits; more than a day counts as a day.
    Many(Box<Histogram<u32>>),
}

impl Default for Lateness {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Lateness {
    pub(crate) fn record(&mut self, lateness: Duration) {
        match self {
            Self::Many(histogram) => histogram.saturating_record(nanos(lateness)),
            Self::Few(delays) => {
                delays.push(lateness);
                if delays.len() < FEW {
                    return;
                }
                // These numbers cause no error; if they did, all delays would be kept.
                if let Ok(mut histogram) = Histogram::new_with_max(DAY, 3) {
                    for delay in delays {
                        histogram.saturating_record(nanos(*delay));
                    }
                    *self = Self::Many(Box::new(histogram));
                }
            }
        }
    }

    /// The delay at a quantile, such as 0.5 for the median; `None` if there is no delay at all.
    pub(crate) fn at_quantile(&self, quantile: f64) -> Option<Duration> {
        match self {
            Self::Few(delays) => {
                let mut sorted = delays.clone();
                sorted.sort();
                let count = (quantile * sorted.len() as f64).ceil() as usize;
                sorted.get(count.saturating_sub(1)).copied()
            }
            Self::Many(histogram) => {
                Some(Duration::from_nanos(histogram.value_at_quantile(quantile)))
            }
        }
    }
}

fn nanos(delay: Duration) -> u64 {
    u64::try_from(delay.as_nanos()).unwrap_or(DAY)
}
