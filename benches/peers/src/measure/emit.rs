//! Prints figures.

use crate::measurement::Measurement;

/// The figures of one measurement: they share peer, workload and parameters.
pub(super) struct Emitter<'a> {
    peer: &'a str,
    workload: String,
    params: Vec<(&'static str, u64)>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        peer: &'a str,
        workload: impl Into<String>,
        params: &[(&'static str, u64)],
    ) -> Self {
        Self { peer, workload: workload.into(), params: params.to_vec() }
    }

    pub(super) fn emit(&self, metric: &str, value: f64, unit: &str) {
        let measurement = Measurement {
            peer: self.peer.to_owned(),
            workload: self.workload.clone(),
            params: self.params.iter().map(|&(key, value)| (key.to_owned(), value)).collect(),
            metric: metric.to_owned(),
            value: (value * 1000.0).round() / 1000.0,
            unit: unit.to_owned(),
        };
        let line = serde_json::to_string(&measurement).expect("it has string keys only");
        println!("{line}");
    }

    /// The usual percentiles of nanoseconds, in microseconds.
    pub(super) fn distribution(&self, what: &str, mut nanos: Vec<i64>) {
        nanos.sort_unstable();
        let (Some(min), Some(max)) = (nanos.first(), nanos.last()) else { return };
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            self.emit(&format!("{what}_{name}"), percentile(&nanos, share) / 1e3, "us");
        }
        // With fewer values this would be one of the last ten.
        if nanos.len() >= 100_000 {
            self.emit(&format!("{what}_p9999"), percentile(&nanos, 0.9999) / 1e3, "us");
        }
        self.emit(&format!("{what}_max"), *max as f64 / 1e3, "us");
        self.emit(&format!("{what}_min"), *min as f64 / 1e3, "us");
    }
}

/// The smallest value that is not exceeded by `share` of all. There is at least one.
fn percentile(sorted: &[i64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] as f64
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let values: Vec<i64> = (1..=100).collect();
        assert_eq!(percentile(&values, 0.5), 50.0);
        assert_eq!(percentile(&values, 0.99), 99.0);
        assert_eq!(percentile(&values, 0.999), 100.0);
        assert_eq!(percentile(&[7], 0.5), 7.0);
    }
}
