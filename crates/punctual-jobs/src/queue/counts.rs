//! Counts: how many jobs of each kind wait, are due, run and are discarded.
//!
//! They are counted when a caller asks, by one look at all jobs, and nothing is counted while jobs run. A look from time to
//! time is what a monitor needs: a queue that falls behind has a job that has been due for long ([`KindCounts::latency`]).

use std::{fmt, time::Duration};

use crate::{JobQueue, KindPause, QueueError, QueueFuture};

/// How many jobs of one kind there are; from [`JobQueue::counts`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindCounts {
    /// The name of the kind.
    pub kind: String,
    /// Those that wait, for their moments, their turns or their next attempts.
    pub waiting: u64,
    /// Those among them whose moments have come.
    pub due: u64,
    /// Those that run.
    pub running: u64,
    /// Those that are discarded, and not yet removed.
    pub discarded: u64,
    /// How long ago the moment of the first one came that is due and waits; zero if there is none.
    pub latency: Duration,
    /// Its pause, if it is [paused](JobQueue::pause_kind).
    pub paused: Option<KindPause>,
}

/// One line for a log: `"mail": 3 waiting, 1 due for 2s, 2 running, 0 discarded`. One that is paused ends
/// with `, paused`.
impl fmt::Display for KindCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, waiting, due, running, discarded, latency, paused } = self;
        write!(f, "{kind:?}: {waiting} waiting, {due} due")?;
        if *due > 0 {
            write!(f, " for {latency:?}")?;
        }
        write!(f, ", {running} running, {discarded} discarded")?;
        if paused.is_some() { f.write_str(", paused") } else { Ok(()) }
    }
}

/// Counts.
impl JobQueue {
    /// Counts the jobs of each kind, in the order of the names. Kinds without a job are left out, unless they are [paused](Self::pause_kind). (Sidekiq: `Stats` and
    /// `Queue#latency`, River: `QueueList`.)
    ///
    /// It looks at all jobs. On PostgreSQL that is one statement, which reads the whole table and takes no locks: ask every ten
    /// seconds, and not for each request. An in-memory queue remembers the last thousand discarded jobs, and is locked
    /// meanwhile.
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::ScheduledThreadPoolExecutor;
    /// use punctual_jobs::{InMemory, Job, Jobs};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Mail {}
    /// impl Job for Mail { const NAME: &'static str = "mail"; }
    ///
    /// let executor = ScheduledThreadPoolExecutor::new(1);
    /// let queue = Jobs::new().on(|_run, _: Mail| Ok(())).open(InMemory::on(&executor))?;
    /// queue.after(Duration::from_secs(60), Mail {}).enqueue()?;
    /// let counts = queue.counts()?;
    /// assert_eq!(counts[0].waiting, 1);
    /// assert_eq!(counts[0].to_string(), r#""mail": 1 waiting, 0 due, 0 running, 0 discarded"#);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`QueueError`], if the engine cannot be asked.
    pub fn counts(&self) -> Result<Vec<KindCounts>, QueueError> {
        self.counts_async().wait(self.request_timeout())
    }

    /// The same as [`counts`](Self::counts), without blocking.
    pub fn counts_async(&self) -> QueueFuture<Vec<KindCounts>> {
        self.engine.counts()
    }

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
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn publish_metrics(&self, queue: &str) -> Result<(), QueueError> {
        let counted = self.counts()?;
        for kind in self.handled_names() {
            if counted.iter().all(|counts| counts.kind != kind) {
                let none = KindCounts { kind: kind.to_owned(), ..KindCounts::default() };
                published::publish(queue, &none);
            }
        }
        counted.iter().for_each(|counts| published::publish(queue, counts));
        self.publish_outcomes(queue);
        Ok(())
    }
}

#[cfg(feature = "metrics")]
mod published {
    use metrics::{Unit, describe_gauge, gauge};

    use super::KindCounts;

    const JOBS: &str = "punctual_jobs";
    const DUE: &str = "punctual_jobs_due";
    const LATENCY: &str = "punctual_jobs_latency_seconds";

    #[allow(clippy::cast_precision_loss, reason = "a gauge is a floating-point number")]
    pub(super) fn publish(queue: &str, counts: &KindCounts) {
        describe_gauge!(JOBS, Unit::Count, "Jobs by stage.");
        describe_gauge!(DUE, Unit::Count, "Jobs that are due and wait.");
        describe_gauge!(LATENCY, Unit::Seconds, "How long ago the first of them became due.");
        let labels = || (queue.to_owned(), counts.kind.clone());
        let stages = [
            ("waiting", counts.waiting),
            ("running", counts.running),
            ("discarded", counts.discarded),
        ];
        for (stage, count) in stages {
            let (queue, kind) = labels();
            gauge!(JOBS, "queue" => queue, "kind" => kind, "stage" => stage).set(count as f64);
        }
        let (queue, kind) = labels();
        gauge!(DUE, "queue" => queue.clone(), "kind" => kind.clone()).set(counts.due as f64);
        gauge!(LATENCY, "queue" => queue, "kind" => kind).set(counts.latency.as_secs_f64());
    }
}
