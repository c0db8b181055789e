//! Snapshots of an executor, as data: the names are those of the page, and what is read back is what was
//! written.
//!
//! It is a test of its own, because with `serde_json` in sight some comparisons with an empty list have two meanings.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{collections::BTreeMap, fmt::Debug, fs, path::Path, time::Duration};

use punctual::{
    CancelReason, ExecutorState, FailedRun, FailureKind, FailurePolicy, Grace, ManualClock,
    ScheduledThreadPoolExecutor, ShutdownReport, Statistics, TaskId, TaskState, TaskSummary,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_value, json, to_value};

/// A delay that no test sees the end of, on a manual clock.
const LONG: Duration = Duration::from_secs(10);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// An executor with one worker, on a manual clock.
fn manual() -> (ManualClock, ScheduledThreadPoolExecutor) {
    let clock = ManualClock::new();
    let builder = ScheduledThreadPoolExecutor::builder().core_pool_size(1).clock(clock.clone());
    (clock, builder.build().unwrap())
}

/// The page's second table: the names in backquotes, for each type.
fn listed() -> BTreeMap<String, Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observing.md");
    let page = fs::read_to_string(page).expect("the page");
    let rows = page.split_once("## Snapshots as data").expect("the part").1;
    let rows = rows.lines().filter(|line| line.starts_with("| `"));
    let names = |row: &str| row.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    rows.map(names).map(|mut row: Vec<String>| (row.remove(0), row)).collect()
}

/// The value's fields are the names that the page lists, in the same order in which they are written.
fn has_listed_fields(name: &str, value: &impl Serialize) {
    // The text keeps the order, which a `Value` does not.
    let text = serde_json::to_string(value).unwrap();
    let fields: Vec<String> = listed().remove(name).expect("it is listed");
    let places: Vec<_> = fields.iter().map(|field| text.find(&format!("\"{field}\":"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{name}: {text}");
    let Value::Object(written) = to_value(value).unwrap() else { panic!("{name}: {text}") };
    assert_eq!(written.len(), fields.len(), "{name}: {text}");
}

/// The value is written as this, and read back as it was.
fn returns<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, form: &Value) {
    assert_eq!(&to_value(value).unwrap(), form);
    assert_eq!(&from_value::<T>(form.clone()).unwrap(), value);
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
    assert_eq!(&serde_json::from_reader::<_, T>(text.as_bytes()).unwrap(), value, "not borrowed");
}

/// The variants are written as the page lists them, in the order of their declaration.
fn has_listed_variants<T>(name: &str, variants: &[T])
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let names = listed().remove(name).expect("it is listed");
    assert_eq!(names.len(), variants.len(), "{name}");
    for (variant, name) in variants.iter().zip(names) {
        returns(variant, &json!(name));
    }
}

#[test]
fn states_and_reasons_are_words() {
    use CancelReason::{
        ExecutorDropped, GroupShutdown, Rejected, Removed, Requested, Shutdown, ShutdownNow,
        SkippedByGate, TimedOut,
    };
    use ExecutorState::{Running, ShuttingDown, Stopping, Terminated};
    use TaskState::{Cancelled, Completed, Failed, Paused, Scheduled};

    has_listed_variants("ExecutorState", &[Running, ShuttingDown, Stopping, Terminated]);
    let task = [Scheduled, Paused, TaskState::Running, Completed, Failed, Cancelled];
    has_listed_variants("TaskState", &task);
    #[rustfmt::skip]
    let reasons = [
        Requested, Shutdown, ShutdownNow, ExecutorDropped, Removed, Rejected, TimedOut, SkippedByGate,
        GroupShutdown,
    ];
    has_listed_variants("CancelReason", &reasons);
    use FailureKind::{Displaced, Error, Panic, TimeLimit};
    has_listed_variants("FailureKind", &[Panic, Error, TimeLimit, Displaced]);
    assert!(from_value::<TaskState>(json!("asleep")).is_err());
}

#[test]
fn statistics_are_their_fields() {
    let (_clock, executor) = manual();
    executor.submit(|| ()).unwrap().join().unwrap();
    executor.schedule(LONG, || ()).unwrap();
    let now = executor.statistics();
    has_listed_fields("Statistics", &now);
    let group = executor.group("mail").build().unwrap();
    has_listed_fields("GroupStatistics", &group.statistics());
    let written = to_value(now).unwrap();
    assert_eq!(written["state"], json!("running"));
    assert_eq!(written["completed"], json!(1));
    returns(&now, &written);

    // Numbers are exact, as large as they get; what a later version adds is ignored; what is missing is an error.
    let mut larger = written;
    larger["runs"] = json!(u64::MAX);
    larger["added_later"] = json!(1);
    let read: Statistics = from_value(larger.clone()).unwrap();
    assert_eq!((read.runs, read.completed), (u64::MAX, 1));
    larger.as_object_mut().unwrap().remove("runs");
    let error = from_value::<Statistics>(larger).unwrap_err();
    assert!(error.to_string().contains("missing field `runs`"), "{error}");
}

#[test]
fn an_id_is_its_text() {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let id = executor.submit(|| ()).unwrap().id();
    returns(&id, &json!(id.to_string()));
    let typed = id.to_string().to_uppercase().replace('-', "");
    assert_eq!(from_value::<TaskId>(json!(typed)).unwrap(), id);
    for wrong in [json!("no id!"), json!(id.as_u64()), json!(null)] {
        assert!(from_value::<TaskId>(wrong.clone()).is_err(), "{wrong}");
    }
    let error = from_value::<TaskId>(json!("!")).unwrap_err();
    assert!(error.to_string().contains("not a task id"), "{error}");
}

#[test]
fn a_pending_task_has_its_delay_and_its_state() {
    let (clock, executor) = manual();
    let minute = Duration::from_secs(60);
    let tea = executor.task().name("tea").schedule_at_fixed_rate(minute, minute, || ()).unwrap();
    executor.schedule(Duration::MAX, || ()).unwrap();
    clock.run_for(minute + ms(1500));
    let pending = executor.pending_tasks();
    has_listed_fields("PendingTask", &pending[0]);
    let form = json!({
        "id": tea.id().to_string(),
        "name": "tea",
        "state": "scheduled",
        "delay": { "secs": 58, "nanos": 500_000_000 },
        "run_count": 1,
        "is_periodic": true,
    });
    assert_eq!(to_value(&pending[0]).unwrap(), form);
    let delay: Duration = from_value(form["delay"].clone()).unwrap();
    assert_eq!(delay, pending[0].delay);
    let never = to_value(&pending[1]).unwrap();
    assert_eq!((&never["name"], &never["delay"]), (&json!(null), &json!(null)));
    assert_eq!((&never["run_count"], &never["is_periodic"]), (&json!(0), &json!(false)));

    assert!(tea.pause());
    assert_eq!(to_value(&pending[0]).unwrap()["state"], json!("paused"));
    tea.cancel();
    assert_eq!(to_value(&pending[0]).unwrap()["state"], json!("cancelled"));
}

#[test]
fn a_report_and_a_failed_run_come_back() {
    let (clock, executor) = manual();
    let task = executor.task().name("poll").on_failure(FailurePolicy::resume());
    let poll = task.schedule_at_fixed_rate(ms(1), ms(1), || panic!("no answer")).unwrap();
    clock.run_for(ms(2));
    let failed: FailedRun = poll.last_failure().unwrap();
    has_listed_fields("FailedRun", &failed);
    let form = json!({ "run_number": 2, "in_a_row": 2, "kind": "panic", "message": "no answer" });
    returns(&failed, &form);

    let later = executor.schedule(LONG, || ()).unwrap();
    let report: ShutdownReport = executor.shutdown_within(Grace::patience(Duration::ZERO)).unwrap();
    has_listed_fields("ShutdownReport", &report);
    let cancelled = &report.cancelled;
    let of = |task: &TaskSummary| json!({ "id": task.id().to_string(), "name": task.name() });
    assert_eq!(cancelled.len(), 2);
    has_listed_fields("TaskSummary", &cancelled[0]);
    returns(
        &report,
        &json!({
            "is_terminated": report.is_terminated,
            "ran": [],
            "cancelled": cancelled.iter().map(of).collect::<Vec<_>>(),
            "still_running": [],
        }),
    );
    assert_eq!(later.state(), TaskState::Cancelled);
}
