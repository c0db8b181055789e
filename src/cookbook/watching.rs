//! What the executor does, for people and for machines.
//!
//! # Prometheus
//!
//! The counts of an executor are to be scraped. [`Handle::statistics`](crate::Handle::statistics) has them all, in one
//! consistent snapshot. With the feature `metrics`, one call hands them to the recorder that the program uses; this one is
//! `metrics-exporter-prometheus`.
//!
//! ```
//! # #[cfg(feature = "metrics")] {
//! use metrics_exporter_prometheus::PrometheusBuilder;
//! use punctual::ScheduledThreadPoolExecutor;
//!
//! let recorder = PrometheusBuilder::new().install_recorder()?;
//! let executor = ScheduledThreadPoolExecutor::new(2);
//! assert_eq!(executor.submit(|| "sent")?.join()?, "sent");
//!
//! // In the handler of `GET /metrics`:
//! executor.publish_metrics("mail");
//! let page = recorder.render();
//! assert!(page.contains("punctual_tasks_completed_total{executor=\"mail\"} 1\n"));
//! # }
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** recorders that push, and are not asked: call it from a periodic task. With the feature `histograms` and
//! `Builder::histograms` there are quantiles of lateness and of run time as well. `docs/observing.md` lists
//! every name.
//!
//! # Log every failure
//!
//! A periodic task continues after a failed run, and each failure should be reported. So should the failure of a task
//! whose future was dropped.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use punctual::{
//!     FailurePolicy, FailureReport, ManualClock, ScheduledThreadPoolExecutor, trigger::every,
//! };
//!
//! let clock = ManualClock::new();
//! let (log, logged) = mpsc::channel();
//! let executor = ScheduledThreadPoolExecutor::builder()
//!     .failure_handler(move |report: &FailureReport<'_>| {
//!         log.send(report.to_string()).ok(); // a line for a log
//!     })
//!     .clock(clock.clone())
//!     .build()?;
//! let poller = executor
//!     .task()
//!     .name("poller")
//!     .on_failure(FailurePolicy::resume())
//!     .repeat(every(Duration::from_secs(60)), || Err::<(), _>("no connection"))?;
//!
//! clock.run_for(Duration::from_secs(60));
//! let id = poller.id();
//! assert_eq!(logged.try_iter().collect::<Vec<_>>(), [
//!     format!("a task (task {id} \"poller\", run 1) failed: no connection"),
//!     format!("a task (task {id} \"poller\", run 2) failed: no connection"),
//! ]);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** doubles: with the feature `tracing` and a subscriber, each failure is an error event already.
//!
//! # Runs under the span of their submitter
//!
//! A request schedules work, and the trace of the request is to show it. With
//! [`submitter_span`](crate::Builder::submitter_span) the span of a run is a child of the span in which its task was
//! scheduled. It needs the feature `tracing`, which is on by default, and a subscriber.
//!
//! ```
//! # // A subscriber that remembers the name of each span and that of its parent.
//! # use std::{cell::RefCell, sync::{Mutex, MutexGuard}};
//! # use tracing::{Event, Metadata, Subscriber, span::{Attributes, Id, Record}};
//! # static SPANS: Mutex<Vec<(&Metadata<'_>, Option<Id>)>> = Mutex::new(Vec::new());
//! # thread_local!(static ENTERED: RefCell<Vec<Id>> = const { RefCell::new(Vec::new()) });
//! # fn spans() -> MutexGuard<'static, Vec<(&'static Metadata<'static>, Option<Id>)>> { SPANS.lock().unwrap() }
//! # fn of(id: &Id) -> usize { id.into_u64() as usize - 1 }
//! # struct Spans;
//! # impl Subscriber for Spans {
//! #     fn enabled(&self, metadata: &Metadata<'_>) -> bool { !metadata.is_event() }
//! #     fn new_span(&self, span: &Attributes<'_>) -> Id {
//! #         let parent = span.parent().cloned().or_else(|| ENTERED.with_borrow(|ids| ids.last().cloned()));
//! #         let mut spans = spans();
//! #         spans.push((span.metadata(), parent));
//! #         Id::from_u64(spans.len() as u64)
//! #     }
//! #     fn record(&self, _: &Id, _: &Record<'_>) {}
//! #     fn record_follows_from(&self, _: &Id, _: &Id) {}
//! #     fn event(&self, _: &Event<'_>) {}
//! #     fn enter(&self, id: &Id) { ENTERED.with_borrow_mut(|ids| ids.push(id.clone())) }
//! #     fn exit(&self, _: &Id) { ENTERED.with_borrow_mut(|ids| drop(ids.pop())) }
//! #     fn current_span(&self) -> tracing_core::span::Current {
//! #         let current = ENTERED.with_borrow(|ids| ids.last().cloned());
//! #         current.map_or_else(tracing_core::span::Current::none, |id| {
//! #             let metadata = spans()[of(&id)].0;
//! #             tracing_core::span::Current::new(id, metadata)
//! #         })
//! #     }
//! # }
//! # tracing::subscriber::set_global_default(Spans)?;
//! use punctual::ScheduledThreadPoolExecutor;
//! use tracing::info_span;
//!
//! let executor = ScheduledThreadPoolExecutor::builder().submitter_span(true).build()?;
//! let answer = info_span!("request", number = 7).in_scope(|| {
//!     executor.task().name("look-up").submit(|| {
//!         tracing::info!("looking"); // in the span `request: task`
//!         "found"
//!     })
//! })?;
//! assert_eq!(answer.join()?, "found");
//! # #[cfg(feature = "tracing")] {
//! # let spans = spans();
//! # let of_run = |(span, parent): &&(&Metadata<'_>, Option<Id>)| span.name() == "task" && parent.is_some();
//! # let (_, parent) = spans.iter().find(of_run).expect("the run has a span, and that a parent");
//! # assert_eq!(spans[of(parent.as_ref().unwrap())].0.name(), "request");
//! # }
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** periodic tasks: each of their runs *follows from* the span, and is no child of it. A task keeps the span
//! open until it has ended. Anything else that belongs to the submitter, such as a thread-local, is carried along by a
//! [decorator](crate::Builder::decorate_task).
//!
//! # A watchdog for slow runs and starvation
//!
//! The program stands still, and the log should say why: which run has taken too long, and which task waits meanwhile.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use punctual::{ScheduledThreadPoolExecutor, SlowRun, Starvation};
//!
//! let (tell_slow, slow_runs) = mpsc::channel();
//! let (tell_starved, starvations) = mpsc::channel();
//! let executor = ScheduledThreadPoolExecutor::builder()
//!     .core_pool_size(1)
//!     .warn_after(Duration::from_millis(10))
//!     .on_slow_run(move |run: &SlowRun| tell_slow.send(run.clone()).unwrap_or(()))
//!     .on_starvation(Duration::from_millis(10), move |starvation: &Starvation| {
//!         tell_starved.send(starvation.clone()).ok();
//!     })
//!     .build()?;
//!
//! let (end, ends) = mpsc::channel::<()>();
//! executor.task().name("import").execute(move || ends.recv().unwrap_or(()))?;
//! executor.task().name("heartbeat").execute(|| ())?;
//!
//! let slow = slow_runs.recv()?; // while it runs
//! assert_eq!(slow.name(), Some("import"));
//! assert!(slow.to_string().ends_with(&format!("; scheduled at {}", slow.scheduled_at())));
//! let is_heartbeat = |starvation: &Starvation| starvation.next_task().name() == Some("heartbeat");
//! let starved = starvations.iter().find(is_heartbeat).ok_or("it is reported")?;
//! assert_eq!(starved.running()[0].name(), Some("import"));
//! end.send(())?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! **Watch for** limits that are too short: a thread that is started takes its time, too. Both callbacks run on the thread that
//! expires timeouts, and should be short. Nothing is ended: [`timeout`](crate::TaskBuilder::timeout) is what ends a task.
