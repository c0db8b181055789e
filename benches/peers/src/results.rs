//! The files of a run, and the queries for a figure.
//!
//! `round-N.jsonl` has one [`Sample`] in each line, `runs.jsonl` one [`Child`], `host.json` is
//! the [`Host`]. The report and the pictures are made from these and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::measurement::Sample;

pub(crate) const HOST: &str = "host.json";
pub(crate) const RUNS: &str = "runs.jsonl";

/// The origin of the figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) mode: String,
    /// Names and values, to be printed.
    pub(crate) facts: Vec<(String, String)>,
}

/// One process of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) round: u32,
    pub(crate) step: String,
    pub(crate) peer: String,
    pub(crate) seconds: f64,
    /// The load average when it began.
    pub(crate) load: f64,
    /// The share of the machine's time that its host gave to others meanwhile.
    pub(crate) stolen: f64,
    pub(crate) error: Option<String>,
}

/// All results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    pub(crate) host: Host,
    pub(crate) children: Vec<Child>,
    pub(crate) samples: Vec<Sample>,
}

/// The files of the rounds.
pub(crate) fn rounds(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("round-") && name.ends_with(".jsonl") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

impl Results {
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let mut samples = Vec::new();
        for file in rounds(dir)? {
            samples.extend(read_lines(&file)?);
        }
        ensure!(!samples.is_empty(), "there are no figures in {}", dir.display());
        let host = serde_json::from_str(&read(&dir.join(HOST))?)?;
        Ok(Self { host, children: read_lines(&dir.join(RUNS))?, samples })
    }

    /// The peer's figure, over the rounds.
    pub(crate) fn get(&self, peer: &str, figure: &Figure) -> Option<Spread> {
        let of_peer = self.samples.iter().filter(|sample| sample.measurement.peer == peer);
        let values = of_peer.filter(|sample| figure.is(sample)).map(|s| s.measurement.value);
        Spread::of(values.collect())
    }

    /// Its unit.
    pub(crate) fn unit(&self, figure: &Figure) -> &str {
        let sample = self.samples.iter().find(|sample| figure.is(sample));
        sample.map_or("", |sample| &sample.measurement.unit)
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.samples.iter().map(|sample| sample.round).max().unwrap_or(0)
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = read(path)?;
    let lines = text.lines().map(|line| serde_json::from_str(line));
    lines.collect::<Result<_, _>>().with_context(|| format!("cannot parse {}", path.display()))
}

/// A figure that every peer may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    pub(crate) step: &'static str,
    pub(crate) metric: &'static str,
    /// Only those that distinguish it from other variants of the same step.
    pub(crate) params: Vec<(&'static str, u64)>,
}

impl Figure {
    pub(crate) fn new(
        step: &'static str,
        metric: &'static str,
        params: &[(&'static str, u64)],
    ) -> Self {
        Self { step, metric, params: params.to_vec() }
    }

    fn is(&self, sample: &Sample) -> bool {
        let measurement = &sample.measurement;
        let has = |&(key, value)| measurement.params.get(key) == Some(&value);
        sample.step == self.step && measurement.metric == self.metric && self.params.iter().all(has)
    }
}

/// The values of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` if there is no value.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Self { min, median, max })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Figure, Results, Spread};
    use crate::measurement::{Measurement, Sample};

    /// Results made of `(peer, figure, values of the rounds)`.
    pub(crate) fn results(figures: &[(&str, &Figure, &[f64])]) -> Results {
        let mut results = Results::default();
        for (peer, figure, values) in figures {
            for (round, &value) in (1..).zip(*values) {
                let params = figure.params.iter().map(|&(key, value)| (key.to_owned(), value));
                let measurement = Measurement {
                    peer: (*peer).to_owned(),
                    workload: String::new(),
                    params: params.collect(),
                    metric: figure.metric.to_owned(),
                    value,
                    unit: "ns".to_owned(),
                };
                results.samples.push(Sample { round, step: figure.step.to_owned(), measurement });
            }
        }
        results
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        let spread = |values: &[f64]| Spread::of(values.to_vec());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0]), Some(Spread { min: 3.0, median: 3.0, max: 3.0 }));
        assert_eq!(spread(&[9.0, 1.0, 2.0]), Some(Spread { min: 1.0, median: 2.0, max: 9.0 }));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 9.0]).map(|s| s.median), Some(3.0));
    }

    #[test]
    fn a_figure_is_told_by_the_parameters_it_names() {
        let deep = Figure::new("w1", "ns_per_op", &[("P", 1000), ("T", 2)]);
        let results = results(&[("us", &deep, &[1.0, 3.0])]);
        let get = |figure: &Figure| results.get("us", figure).map(|spread| spread.median);
        assert_eq!(get(&deep), Some(2.0));
        assert_eq!(get(&Figure::new("w1", "ns_per_op", &[("T", 2)])), Some(2.0));
        assert_eq!(get(&Figure::new("w1", "ns_per_op", &[("T", 1)])), None);
        assert_eq!(get(&Figure::new("w2", "ns_per_op", &[])), None);
        assert_eq!(results.rounds(), 2);
    }

    #[test]
    fn a_sample_is_one_flat_line() {
        let figure = Figure::new("w1", "ns_per_op", &[("T", 1)]);
        let sample = &results(&[("us", &figure, &[1.5])]).samples[0];
        let line = serde_json::to_string(sample).unwrap();
        assert!(line.starts_with(r#"{"round":1,"step":"w1","peer":"us""#), "{line}");
        assert_eq!(&serde_json::from_str::<Sample>(&line).unwrap(), sample);
    }
}
