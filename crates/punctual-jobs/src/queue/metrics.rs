//! The counts and the outcomes of a queue, for the recorder that the program has.

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use crate::{JobOutcome, JobQueue, KindCounts, QueueError};

#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
/// For the recorder of the crate `metrics`.
impl JobQueue {
    /// Hands the [counts](Self::counts) to the recorder of the crate [`metrics`](https://docs.rs/metrics) that the calling thread
    /// uses, as gauges with the labels `queue`, whose value the program chooses, and `kind`:
    ///
    /// | gauge | |
    /// |---|---|
    /// | `punctual_jobs` | the jobs, with the label `stage`: `waiting`, `running` or `discarded` |
    /// | `punctual_jobs_due` | the jobs that are due and wait |
    /// | `punctual_jobs_latency_seconds` | how long ago the first of them became due |
    ///
    /// It also hands the [outcomes](Self::publish_outcomes) of this process to it.
    ///
    /// A kind that has no job any more goes to zero if this program has a handler for it. One machine is enough: each
    /// counts the jobs of all. The others call [`publish_outcomes`](Self::publish_outcomes).
    ///
    /// Costs what [`counts`](Self::counts) costs, and blocks as that does, and as long as the recorder does.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use punctual::ScheduledThreadPoolExecutor;
    /// # use punctual_jobs::{InMemory, Job, Jobs};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Mail {}
    /// # impl Job for Mail { const NAME: &'static str = "mail"; }
    /// # let executor = ScheduledThreadPoolExecutor::new(1);
    /// # let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    /// queue.after(Duration::from_secs(60), Mail {}).enqueue()?;
    /// metrics::with_local_recorder(&recorder, || queue.publish_metrics("main"))?;
    /// let page = recorder.handle().render();
    /// assert!(page.contains("punctual_jobs{queue=\"main\",kind=\"mail\",stage=\"waiting\"} 1\n"));
    /// assert!(page.contains("punctual_jobs_runs_total{queue=\"main\",kind=\"mail\",outcome=\"ran\"} 0\n"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked. Nothing is recorded then.
    pub fn publish_metrics(&self, queue: &str) -> Result<(), QueueError> {
        let counted = self.counts()?;
        for kind in self.definitions.handled_names() {
            if counted.iter().all(|counts| counts.kind != kind) {
                let none = KindCounts { kind: kind.to_owned(), ..KindCounts::default() };
                publish(queue, &none);
            }
        }
        counted.iter().for_each(|counts| publish(queue, counts));
        self.publish_outcomes(queue);
        Ok(())
    }

    /// Hands the [outcomes](Self::outcomes) to the recorder of the crate [`metrics`](https://docs.rs/metrics) that the calling thread
    /// uses: the counter `punctual_jobs_runs_total`, with the labels `queue`, whose value the program chooses, `kind`, and `outcome`,
    /// which is a word of [`JobOutcome`]: `ran`, `failed`, `discarded`, `snoozed`, `freed`, `lost` or `cancelled`.
    ///
    /// Call it in each process: its counters are its own, unlike the gauges of [`publish_metrics`](Self::publish_metrics), which
    /// hands these to the recorder as well. Asks no database, and blocks as long as the recorder does.
    ///
    /// ```
    /// # use punctual::{ManualClock, ScheduledThreadPoolExecutor};
    /// # use punctual_jobs::{InMemory, Job, JobOutcome, Jobs};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Mail {}
    /// # impl Job for Mail { const NAME: &'static str = "mail"; }
    /// # let clock = ManualClock::new();
    /// # let executor = ScheduledThreadPoolExecutor::builder().clock(clock.clone()).build()?;
    /// # let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    /// queue.now(Mail {}).enqueue()?;
    /// # clock.run_until(|| queue.outcomes()[0].of(JobOutcome::Succeeded) == 1);
    /// metrics::with_local_recorder(&recorder, || queue.publish_outcomes("main"));
    /// let page = recorder.handle().render();
    /// assert!(page.contains("punctual_jobs_runs_total{queue=\"main\",kind=\"mail\",outcome=\"ran\"} 1\n"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn publish_outcomes(&self, queue: &str) {
        describe_counter!(RUNS, Unit::Count, "Runs of jobs that have ended.");
        for kind in self.outcomes() {
            for (word, outcome) in JobOutcome::ALL {
                let labels = [
                    metrics::Label::new("queue", queue.to_owned()),
                    metrics::Label::new("kind", kind.kind.clone()),
                    metrics::Label::new("outcome", word),
                ];
                counter!(RUNS, labels.to_vec()).absolute(kind.of(outcome));
            }
        }
    }
}

const RUNS: &str = "punctual_jobs_runs_total";
const JOBS: &str = "punctual_jobs";
const DUE: &str = "punctual_jobs_due";
const LATENCY: &str = "punctual_jobs_latency_seconds";

#[allow(clippy::cast_precision_loss, reason = "a gauge is a floating-point number")]
fn publish(queue: &str, counts: &KindCounts) {
    describe_gauge!(JOBS, Unit::Count, "Jobs by stage.");
    describe_gauge!(DUE, Unit::Count, "Jobs that are due and wait.");
    describe_gauge!(LATENCY, Unit::Seconds, "How long ago the first of them became due.");
    let labels = || (queue.to_owned(), counts.kind.clone());
    let stages =
        [("waiting", counts.waiting), ("running", counts.running), ("discarded", counts.discarded)];
    for (stage, count) in stages {
        let (queue, kind) = labels();
        gauge!(JOBS, "queue" => queue, "kind" => kind, "stage" => stage).set(count as f64);
    }
    let (queue, kind) = labels();
    gauge!(DUE, "queue" => queue.clone(), "kind" => kind.clone()).set(counts.due as f64);
    gauge!(LATENCY, "queue" => queue, "kind" => kind).set(counts.latency.as_secs_f64());
}
