//! Metrics: what is published is what the page lists, and what the statistics say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use metrics::{
    Counter as Count, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder,
    SharedString, Unit, with_local_recorder,
};
use punctual::{FailurePolicy, Handle, ScheduledThreadPoolExecutor};

use crate::support::{Counter, LONG, eventually, manual, manual_with, ms};

/// A recorder that keeps everything it is told.
#[derive(Default)]
struct Notes {
    series: Mutex<BTreeMap<Key, Arc<Series>>>,
    /// By name.
    described: Mutex<BTreeMap<String, Description>>,
}

/// The type, the unit and the meaning of a metric.
type Description = (&'static str, Option<Unit>, String);

/// The value of a series, as the bits of a gauge or the number of a counter.
#[derive(Default)]
struct Series {
    value: AtomicU64,
    is_gauge: Mutex<bool>,
}

impl CounterFn for Series {
    fn increment(&self, _: u64) {
        unreachable!("all counts are absolute");
    }

    fn absolute(&self, value: u64) {
        self.value.fetch_max(value, Ordering::SeqCst);
    }
}

impl GaugeFn for Series {
    fn increment(&self, _: f64) {
        unreachable!("all gauges are set");
    }

    fn decrement(&self, _: f64) {
        unreachable!("all gauges are set");
    }

    fn set(&self, value: f64) {
        *self.is_gauge.lock().unwrap() = true;
        self.value.store(value as u64, Ordering::SeqCst);
    }
}

impl Notes {
    fn describe(&self, kind: &'static str, key: KeyName, unit: Option<Unit>, text: SharedString) {
        let described = (kind, unit, text.into_owned());
        self.described.lock().unwrap().insert(key.as_str().to_owned(), described);
    }

    fn series(&self, key: &Key) -> Arc<Series> {
        Arc::clone(self.series.lock().unwrap().entry(key.clone()).or_default())
    }

    /// Publishes the executor's metrics to this recorder.
    fn publish(&self, executor: &Handle, label: &str) {
        with_local_recorder(self, || executor.publish_metrics(label));
    }

    /// The value of the only series with this name and these values of labels, in alphabetical order
    /// of the labels.
    fn value(&self, name: &str, labels: &[&str]) -> u64 {
        let series = self.series.lock().unwrap();
        let found: Vec<_> = series.iter().filter(|(key, _)| is_of(key, name, labels)).collect();
        let [(_, series)] = found[..] else { panic!("{name} {labels:?}: {}", found.len()) };
        series.value.load(Ordering::SeqCst)
    }
}

fn is_of(key: &Key, name: &str, labels: &[&str]) -> bool {
    key.name() == name && key.labels().map(metrics::Label::value).eq(labels.iter().copied())
}

impl Recorder for Notes {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("counter", key, unit, text);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("gauge", key, unit, text);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("histogram", key, unit, text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Count {
        Count::from_arc(self.series(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.series(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        unreachable!("there is no histogram")
    }
}

/// The rows of the page's first table: name, type, labels, meaning.
fn listed() -> BTreeSet<[String; 4]> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observing.md");
    let page = fs::read_to_string(page).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with("| `punctual_"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let [_, name, kind, labels, meaning, _] = &cells[..] else { panic!("four columns: {row}") };
        [name, kind, labels, meaning].map(String::clone)
    })
    .collect()
}

/// The page lists what is published, with its type, its labels and its description, and nothing else.
#[test]
fn the_page_lists_what_is_published() {
    let notes = Notes::default();
    let executor = after_a_run();
    notes.publish(&executor, "it");
    let group = executor.group("some").build().unwrap();
    with_local_recorder(&notes, || group.publish_metrics("it"));
    let series = notes.series.lock().unwrap();
    let described = notes.described.lock().unwrap();
    let mut published = BTreeSet::new();
    for (key, series) in series.iter() {
        let labels: Vec<_> = key.labels().map(metrics::Label::key).collect();
        let (kind, unit, meaning) = &described[key.name()];
        assert_eq!(*kind == "gauge", *series.is_gauge.lock().unwrap(), "{key}");
        let is_count = ["_total", "_bucket", "_count"].iter().any(|end| key.name().ends_with(end));
        assert_eq!(*kind == "counter", is_count, "{key}");
        let of_all = match key.name() {
            "punctual_executor_state" => None,
            name if name.contains("_microseconds") => Some(Unit::Microseconds),
            _ => Some(Unit::Count),
        };
        assert_eq!(*unit, of_all, "{key}");
        published.insert([key.name(), kind, &labels.join(", "), meaning].map(str::to_owned));
    }
    let is_kept =
        |[name, ..]: &[String; 4]| cfg!(feature = "histograms") || !name.contains("seconds");
    assert_eq!(published, listed().into_iter().filter(is_kept).collect());
    assert_eq!(described.len(), published.len());
}

/// An executor that keeps what it can keep, after a run that was three seconds late and took four.
fn after_a_run() -> ScheduledThreadPoolExecutor {
    let clock = punctual::ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(clock.clone());
    #[cfg(feature = "histograms")]
    let builder = builder.histograms(0);
    let executor = builder.build().unwrap();
    let time = clock.clone();
    executor.schedule(ms(2_000), move || time.advance(ms(4_000))).unwrap();
    clock.advance(ms(5_000));
    clock.run_until_idle();
    executor
}

/// The bounds of the buckets that the page lists, as they are published.
#[cfg(feature = "histograms")]
fn bounds() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observing.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, list) = page.split_once("the values of `le` are ").expect("the bounds");
    let list = list.split_once(", in seconds").expect("an end").0;
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The counts of a histogram's buckets, in the order of their bounds.
#[cfg(feature = "histograms")]
fn buckets(notes: &Notes, name: &str, labels: &[&str]) -> Vec<u64> {
    let bounds = bounds();
    assert_eq!((bounds.len(), bounds.last().map(String::as_str)), (20, Some("+Inf")));
    let count = |bound: &String| notes.value(name, &[labels, &[bound]].concat());
    bounds.iter().map(count).collect()
}

/// Lateness and run time are published where they are kept: for each bound, how many runs did not exceed it, a run that
/// is as late as the bound included.
#[cfg(feature = "histograms")]
#[test]
fn buckets_are_cumulative() {
    let (clock, executor) = manual_with(|builder| builder.histograms(0));
    let group = executor.group("mail").build().unwrap();
    for late in [0, 1, 3, 400, 5_000, 1_000_000] {
        group.task().schedule(ms(10), || ()).unwrap();
        clock.advance(ms(10 + late));
        clock.run_until_idle();
    }
    let notes = Notes::default();
    let late = "punctual_run_lateness_seconds_bucket";
    let expected = [1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 5, 5, 6];
    // Twice: what is published again is not counted again.
    for _ in 0..2 {
        notes.publish(&executor, "it");
        with_local_recorder(&notes, || group.publish_metrics("it"));
        assert_eq!(buckets(&notes, late, &["it"]), expected);
    }
    let value = |name| notes.value(name, &["it"]);
    assert_eq!(value("punctual_run_lateness_seconds_count"), 6);
    assert_eq!(value("punctual_run_lateness_microseconds_total"), 1_005_404_000);
    assert_eq!(buckets(&notes, "punctual_run_time_seconds_bucket", &["it"]), [6; 20]);
    assert_eq!(value("punctual_run_time_microseconds_total"), 0);
    // All runs were the group's.
    let of_group = "punctual_group_run_lateness_seconds_bucket";
    assert_eq!(buckets(&notes, of_group, &["it", "mail"]), expected);
    let value = |name| notes.value(name, &["it", "mail"]);
    assert_eq!(value("punctual_group_run_lateness_seconds_count"), 6);
    assert_eq!(value("punctual_group_run_lateness_microseconds_total"), 1_005_404_000);
}

/// Each number of a group is that of its statistics, under the name that says so, with the group's name as a label.
#[test]
fn a_group_has_series_of_its_own() {
    let (_clock, executor) = manual(2);
    let group = executor.group("mail").limit(1).build().unwrap();
    group.task().submit(|| ()).unwrap().join().unwrap();
    group.task().submit(|| panic!("on purpose")).unwrap().join().unwrap_err();
    group.task().schedule(LONG, || ()).unwrap().cancel();
    executor.submit(|| "of no group").unwrap().join().unwrap();
    let (begun, gate) = (Counter::new(), Counter::new());
    let (begin, wait) = (begun.clone(), gate.clone());
    let running = group.task().submit(move || {
        begin.add();
        wait.wait_for(1);
    });
    begun.wait_for(1);
    let held = group.task().submit(|| ()).unwrap();
    group.task().schedule(LONG, || ()).unwrap();
    eventually("it waits for the group", || group.statistics().waiting == 1);
    let (notes, now) = (Notes::default(), group.statistics());
    with_local_recorder(&notes, || group.publish_metrics("web"));
    assert_eq!((now.pending, now.waiting, now.active, now.submitted), (2, 1, 1, 6));
    for (name, number) in [
        ("punctual_group_tasks_active", 1),
        ("punctual_group_tasks_pending", 2),
        ("punctual_group_tasks_waiting", 1),
        ("punctual_group_tasks_submitted_total", 6),
        ("punctual_group_tasks_completed_total", 1),
        ("punctual_group_tasks_failed_total", 1),
        ("punctual_group_tasks_cancelled_total", 1),
        ("punctual_group_runs_total", 2),
        ("punctual_group_runs_failed_total", 1),
        ("punctual_group_tasks_rejected_total", 0),
    ] {
        assert_eq!(notes.value(name, &["web", "mail"]), number, "{name}");
    }
    gate.add();
    running.unwrap().join().unwrap();
    held.join().unwrap();
    group.shutdown();
    group.task().submit(|| ()).unwrap_err();
    with_local_recorder(&notes, || group.publish_metrics("web"));
    assert_eq!(notes.value("punctual_group_tasks_rejected_total", &["web", "mail"]), 1);
}

/// Each number is that of the statistics, each under the name that says so.
#[test]
fn each_metric_is_its_number() {
    let (clock, executor) = manual(2);
    let (begun, gate) = (Counter::new(), Counter::new());
    executor.submit(|| ()).unwrap().join().unwrap();
    executor.submit(|| panic!("on purpose")).unwrap().join().unwrap_err();
    for _ in 0..3 {
        executor.schedule(LONG, || ()).unwrap().cancel();
    }
    for _ in 0..4 {
        executor.schedule(LONG, || ()).unwrap();
    }
    let resume = executor.task().on_failure(FailurePolicy::resume());
    let failing = resume.schedule_at_fixed_rate(ms(1), ms(1), || panic!("on purpose")).unwrap();
    clock.run_for(ms(5));
    failing.cancel();
    let (begin, wait) = (begun.clone(), gate.clone());
    let running = executor.submit(move || {
        begin.add();
        wait.wait_for(1);
    });
    begun.wait_for(1);

    let (notes, now) = (Notes::default(), executor.statistics());
    notes.publish(&executor, "it");
    let value = |name| notes.value(name, &["it"]);
    assert_eq!((now.submitted, now.completed, now.failed, now.cancelled), (11, 1, 1, 4));
    assert_eq!((now.active, now.pending, now.runs, now.failed_runs), (1, 4, 7, 6));
    for (name, number) in [
        ("punctual_workers_core", now.core_pool_size as u64),
        ("punctual_workers", now.pool_size as u64),
        ("punctual_workers_largest", now.largest_pool_size as u64),
        ("punctual_tasks_active", 1),
        ("punctual_tasks_pending", 4),
        ("punctual_tasks_submitted_total", 11),
        ("punctual_tasks_completed_total", 1),
        ("punctual_tasks_failed_total", 1),
        ("punctual_tasks_cancelled_total", 4),
        ("punctual_runs_total", 7),
        ("punctual_runs_failed_total", 6),
    ] {
        assert_eq!(value(name), number, "{name}");
    }
    gate.add();
    running.unwrap().join().unwrap();
}

/// The rare counts have their names, too: what is rejected and run by its submitter, what exceeds its time limit,
/// what is missed, what a gate skips.
#[test]
fn the_rare_counts_are_published() {
    use punctual::{CallerRunsPolicy, MissedRuns, gate, gate::Entry, trigger::every};

    let clock = punctual::ManualClock::new();
    let executor = ScheduledThreadPoolExecutor::builder()
        .core_pool_size(1)
        .clock(clock.clone())
        .max_pending(3)
        .rejected_execution_handler(CallerRunsPolicy)
        .build()
        .unwrap();
    let skip = gate::from_fn(|_| Entry::Skip);
    let skipped = executor.task().gate(skip).repeat(every(ms(10)), || ()).unwrap();
    clock.run_for(ms(50));
    skipped.cancel();
    let coalesce = executor.task().missed_runs(MissedRuns::Coalesce);
    let late = coalesce.schedule_at_fixed_rate(ms(1), ms(1), || ()).unwrap();
    clock.advance(ms(4));
    clock.run_until_idle();
    late.cancel();
    let timed = executor.task().timeout(ms(0)).schedule(ms(1), || ()).unwrap();
    clock.run_for(ms(2));
    assert!(timed.is_cancelled());
    let waiting = [(); 3].map(|()| executor.schedule(LONG, || ()).unwrap());
    for _ in 0..3 {
        executor.execute(|| ()).unwrap();
    }
    executor.execute(|| panic!("on purpose")).unwrap();

    let (notes, now) = (Notes::default(), executor.statistics());
    assert_eq!((now.rejected, now.caller_runs, now.caller_panics), (4, 4, 1));
    assert_eq!((now.missed_runs, now.timed_out), (3, 1));
    assert!(now.gate_skips > 1, "{now:?}");
    notes.publish(&executor, "it");
    for (name, number) in [
        ("punctual_tasks_rejected_total", 4),
        ("punctual_caller_runs_total", 4),
        ("punctual_caller_panics_total", 1),
        ("punctual_runs_missed_total", 3),
        ("punctual_runs_skipped_total", now.gate_skips),
        ("punctual_timeouts_total", 1),
    ] {
        assert_eq!(notes.value(name, &["it"]), number, "{name}");
    }
    drop(waiting);
}

/// The state is 1 in one series, and goes from one to the next.
#[test]
fn one_state_is_one() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let notes = Notes::default();
    let states = ["running", "shutting_down", "stopping", "terminated"];
    let shown = || {
        notes.publish(&executor, "mail");
        states.map(|state| notes.value("punctual_executor_state", &["mail", state]))
    };
    let (begun, gate) = (Counter::new(), Counter::new());
    let (begin, wait) = (begun.clone(), gate.clone());
    executor
        .execute(move || {
            begin.add();
            wait.wait_for(1);
        })
        .unwrap();
    begun.wait_for(1);
    assert_eq!(shown(), [1, 0, 0, 0]);
    executor.shutdown();
    assert_eq!(shown(), [0, 1, 0, 0]);
    drop(executor.shutdown_now());
    assert_eq!(shown(), [0, 0, 1, 0]);
    gate.add();
    assert_eq!(executor.await_termination(LONG), Ok(true));
    assert_eq!(shown(), [0, 0, 0, 1]);
}

/// Two executors have series of their own, and a count never goes back, whichever thread publishes last.
#[test]
fn series_are_of_one_executor_and_only_grow() {
    let (one, two) = (ScheduledThreadPoolExecutor::new(1), ScheduledThreadPoolExecutor::new(1));
    let notes = Arc::new(Notes::default());
    one.submit(|| ()).unwrap().join().unwrap();
    notes.publish(&one, "one");
    notes.publish(&two, "two");
    let submitted = |label| notes.value("punctual_tasks_submitted_total", &[label]);
    assert_eq!((submitted("one"), submitted("two")), (1, 0));

    let publishers = [(); 2].map(|()| {
        let (notes, two) = (Arc::clone(&notes), two.handle());
        thread::spawn(move || (0..100).for_each(|_| notes.publish(&two, "two")))
    });
    let mut last = 0;
    for number in 1..=100 {
        two.submit(|| ()).unwrap().join().unwrap();
        notes.publish(&two, "two");
        let now = submitted("two");
        assert!(last <= now && now >= number, "{last}, {now}, {number}");
        last = now;
    }
    publishers.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((submitted("one"), submitted("two")), (1, 100));
}

/// Without a recorder nothing happens, and an executor that has ended can be asked as well.
#[test]
fn without_a_recorder_nothing_happens() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let handle = executor.handle();
    handle.publish_metrics("it");
    executor.close().unwrap();
    handle.publish_metrics("it");
}
