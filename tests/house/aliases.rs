//! The words by which a programmer looks for something in the API documentation, who knows it from elsewhere: each finds
//! an item, by the item's own name or by a `#[doc(alias = "…")]`.
//!
//! Java's names are in `docs/coming-from-java.md`. These are the words of Rust, JavaScript and Go.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::root;

/// Each word, and the items that a search for it has to find.
#[rustfmt::skip]
const WORDS: [(&str, &[&str]); 104] = [
    // Later, and again and again.
    ("after", &["Handle::schedule", "Handle::sleep"]),
    ("AfterFunc", &["Handle::schedule"]),
    ("delay", &["Handle::schedule", "Handle::sleep"]),
    ("setTimeout", &["Handle::schedule"]),
    ("spawn_after", &["Handle::schedule"]),
    ("timer", &["Handle::schedule", "Handle::sleep"]),
    ("spawn_at", &["Handle::schedule_at"]),
    ("every", &["Handle::schedule_at_fixed_rate", "Handle::interval", "every"]),
    ("interval", &["Handle::schedule_at_fixed_rate", "Handle::interval", "every", "Interval"]),
    ("interval_at", &["Handle::interval_at", "every"]),
    ("setInterval", &["Handle::schedule_at_fixed_rate", "Handle::interval"]),
    ("tick", &["Handle::schedule_at_fixed_rate", "Handle::interval", "Interval::tick", "every"]),
    ("ticker", &["Handle::schedule_at_fixed_rate", "Handle::interval", "Interval", "every"]),
    ("MissedTickBehavior", &["MissedRuns"]),
    ("set_missed_tick_behavior", &["TaskBuilder::missed_runs", "Interval::missed_runs"]),
    ("cron", &["Handle::repeat", "cron"]),
    ("crontab", &["cron"]),
    ("timezone", &["cron"]),
    ("jitter", &["Trigger::jitter"]),
    ("slack", &["Trigger::tolerance"]),
    ("debounce", &["TaskBuilder::debounce"]),
    ("throttle", &["TaskBuilder::throttle"]),
    ("rate_limit", &["TaskBuilder::throttle"]),
    // Now.
    ("spawn", &["Handle::execute", "Handle::submit"]),
    ("spawn_blocking", &["Handle::submit"]),
    ("fire_and_forget", &["Handle::execute"]),
    // Tasks and their ends.
    ("abort", &["TaskHandle::cancel", "TaskHandle::cancel_and_signal"]),
    ("abort_handle", &["ScheduledFuture::task_handle"]),
    ("AbortHandle", &["TaskHandle"]),
    ("abort_on_drop", &["ScheduledFuture::cancel_on_drop"]),
    ("abort_all", &["Handle::shutdown_now", "TaskSet::cancel_all", "Group::cancel_all"]),
    ("clearInterval", &["TaskHandle::cancel"]),
    ("clearTimeout", &["TaskHandle::cancel"]),
    ("stop", &["TaskHandle::cancel", "TaskHandle::cancel_and_wait"]),
    ("interrupt", &["TaskHandle::cancel_and_signal"]),
    ("AbortSignal", &["CancellationToken"]),
    ("heartbeat", &["TaskHandle::reschedule"]),
    ("dead_man_switch", &["TaskHandle::reschedule"]),
    ("reset", &["TaskHandle::reschedule", "Sleep::reset", "DelayQueue::reset"]),
    ("pause", &["TaskHandle::pause", "TaskHandle::pause", "Group::pause", "ManualClock"]),
    ("JoinHandle", &["ScheduledFuture"]),
    ("JoinError", &["TaskError"]),
    ("join", &["ScheduledFuture::join", "TaskSet::join_all"]),
    ("is_finished", &["TaskHandle::is_done"]),
    ("into_panic", &["Failure::into_payload"]),
    ("resume_unwind", &["Failure::into_payload"]),
    ("JoinSet", &["TaskSet", "Group"]),
    ("join_next", &["ExecutorCompletionService::take"]),
    ("FuturesUnordered", &["ExecutorCompletionService"]),
    ("join_all", &["TaskSet::join_all", "Handle::invoke_all"]),
    ("race", &["Handle::invoke_any"]),
    ("select_ok", &["Handle::invoke_any"]),
    ("current_task", &["current_task"]),
    ("task_local", &["current_task", "Builder::decorate_task"]),
    // Failures and limits.
    ("retry", &["Handle::retry", "TaskBuilder::retry", "Trigger::retry", "TaskBuilder::on_failure"]),
    ("backoff", &["Backoff", "Trigger::retry", "Handle::retry", "FailurePolicy::back_off"]),
    ("exponential_backoff", &["Backoff::exponential", "FailurePolicy::back_off"]),
    ("max_retries", &["Backoff::max_attempts", "FailurePolicy::stop_after"]),
    ("panic_handler", &["Builder::failure_handler"]),
    ("timeout", &["Handle::timeout", "TaskBuilder::timeout", "Limit"]),
    ("deadline", &["Handle::timeout", "TaskBuilder::timeout", "Trigger::until", "Limit"]),
    ("time_limit", &["Handle::timeout", "TaskBuilder::timeout"]),
    ("Elapsed", &["TimeoutError"]),
    ("semaphore", &["Group", "GroupBuilder::limit"]),
    ("max_concurrency", &["GroupBuilder::limit"]),
    ("bulkhead", &["Group"]),
    ("backpressure", &["Builder::max_pending", "RejectedExecutionHandler"]),
    ("capacity", &["Builder::max_pending"]),
    ("TrySendError", &["RejectedExecutionError"]),
    ("leader_election", &["TaskBuilder::gate", "RunGate"]),
    ("distributed_lock", &["TaskBuilder::gate", "RunGate"]),
    // Executors.
    ("thread_pool", &["ScheduledThreadPoolExecutor"]),
    ("scheduler", &["ScheduledThreadPoolExecutor"]),
    ("Spawner", &["Handle"]),
    ("worker_threads", &["Builder::core_pool_size", "Handle::core_pool_size"]),
    ("num_threads", &["Builder::core_pool_size", "Handle::core_pool_size"]),
    ("thread_keep_alive", &["Builder::keep_alive"]),
    ("thread_stack_size", &["Builder::stack_size"]),
    ("spawn_handler", &["Builder::thread_factory"]),
    ("middleware", &["Builder::before_execute", "Builder::decorate_task"]),
    ("current_thread", &["DrivenExecutor", "Builder::build_driven"]),
    ("event_loop", &["DrivenExecutor", "Builder::build_driven"]),
    ("wasm", &["DrivenExecutor", "Builder::build_driven"]),
    ("block_on", &["ScheduledFuture::join", "DrivenExecutor::run_until"]),
    ("graceful_shutdown", &["Handle::shutdown", "Handle::shutdown_within", "ScheduledThreadPoolExecutor::close"]),
    ("shutdown_timeout", &["Handle::shutdown_within"]),
    ("shutdown_background", &["ScheduledThreadPoolExecutor::shutdown_background"]),
    ("WaitGroup", &["Handle::await_termination"]),
    // Values, time, and what is going on.
    ("delay_queue", &["DelayQueue"]),
    ("ttl", &["DelayQueue"]),
    ("recv", &["DelayQueue::take"]),
    ("try_recv", &["DelayQueue::poll", "ScheduledFuture::try_join"]),
    ("sleep", &["Handle::sleep", "CancellationToken::sleep"]),
    ("sleep_until", &["Handle::sleep_until", "Handle::schedule_at"]),
    ("advance", &["ManualClock::advance"]),
    ("mock_clock", &["ManualClock", "Builder::clock"]),
    ("fake_time", &["ManualClock"]),
    ("start_paused", &["Builder::clock", "ManualClock::set_auto_advance"]),
    ("metrics", &["Handle::statistics"]),
    ("prometheus", &["Handle::publish_metrics"]),
    ("percentiles", &["Builder::histograms", "Handle::histograms"]),
    ("latency", &["Builder::histograms", "TaskContext::lateness"]),
    ("watchdog", &["Builder::on_slow_run", "Builder::on_starvation", "TaskBuilder::warn_after"]),
    ("instrument", &["Builder::submitter_span"]),
];

/// The items by which the documentation finds each name and each alias. An item is a type, a function, or
/// `Type::method`.
#[derive(Default)]
struct Index {
    names: BTreeMap<String, BTreeSet<String>>,
    aliases: BTreeMap<String, BTreeSet<String>>,
}

impl Index {
    /// Reads the declarations of one source.
    fn read(&mut self, source: &str) {
        let (mut owner, mut aliases) = (String::new(), Vec::new());
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            let text = line.trim_start();
            if text.starts_with("#[doc(alias") {
                let mut attribute = text.to_owned();
                while !attribute.ends_with(")]") {
                    attribute.push_str(lines.next().expect("an attribute has an end").trim());
                }
                aliases.extend(attribute.split('"').skip(1).step_by(2).map(str::to_owned));
            } else if let Some(item) = declared(line, &mut owner) {
                self.enter(&item, &std::mem::take(&mut aliases));
            }
        }
        assert_eq!(aliases, Vec::<String>::new(), "no item follows");
    }

    fn enter(&mut self, item: &str, aliases: &[String]) {
        let name = item.rsplit("::").next().unwrap_or(item);
        self.names.entry(folded(name)).or_default().insert(item.to_owned());
        for alias in aliases {
            assert_ne!(alias, name, "it is found by that anyway");
            let is_new = self.aliases.entry(folded(alias)).or_default().insert(item.to_owned());
            assert!(is_new || *alias != folded(alias), "{item} has the alias {alias} twice");
        }
    }

    fn finds(&self, word: &str, item: &str) -> bool {
        let in_map = |map: &BTreeMap<String, BTreeSet<String>>| {
            map.get(&folded(word)).is_some_and(|items| items.contains(item))
        };
        in_map(&self.names) || in_map(&self.aliases)
    }
}

/// A word as the search of the documentation compares it.
fn folded(word: &str) -> String {
    word.to_lowercase().replace('_', "")
}

/// Returns the item that is declared in this line, if it is public; notes whose methods follow.
fn declared(line: &str, owner: &mut String) -> Option<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    if let Some(rest) = line.strip_prefix("impl") {
        *owner = match rest.split_once('>').filter(|_| rest.starts_with('<')) {
            Some((_, named)) => word(named.trim_start()),
            None => word(rest.trim_start()),
        };
        return None;
    }
    let (text, is_inside) = match line.strip_prefix("    ") {
        Some(inside) if !inside.starts_with(' ') => (inside, true),
        Some(_) => return None,
        None => (line, false),
    };
    let public = text.strip_prefix("pub ");
    let of_trait = text.strip_prefix("fn ").filter(|_| is_inside).map(word);
    let after = |kind: &str| {
        let rest = public?.trim_start_matches("const ").trim_start_matches("async ");
        rest.strip_prefix(kind).map(word)
    };
    let named = ["struct ", "enum ", "trait "].iter().find_map(|kind| after(kind));
    if let Some(name) = named {
        owner.clone_from(&name);
        return Some(name);
    }
    let function = after("fn ").or(of_trait)?;
    Some(if is_inside { format!("{owner}::{function}") } else { function })
}

fn index() -> Index {
    fn visit(folder: &Path, index: &mut Index) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, index);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                index.read(&fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    let mut index = Index::default();
    visit(&root().join("src"), &mut index);
    index
}

/// Each word finds the items that it should.
#[test]
fn each_word_finds_its_items() {
    let index = index();
    for (word, items) in WORDS {
        for item in items {
            assert!(index.finds(word, item), "`{word}` does not find {item}");
        }
    }
}

/// No word is listed twice, so that one row says all there is to say of it.
#[test]
fn each_word_is_listed_once() {
    let words: BTreeSet<_> = WORDS.iter().map(|(word, _)| word).collect();
    assert_eq!(words.len(), WORDS.len());
}

/// The reader of the sources understands what it reads.
#[test]
fn the_index_has_every_kind_of_item() {
    let index = index();
    for (word, item) in [
        ("scheduleAtFixedRate", "Handle::schedule_at_fixed_rate"),
        ("getDelay", "DelayQueue::delay"),
        ("rejectedExecution", "RejectedExecutionHandler::rejected_execution"),
        ("TaskBuilder", "TaskBuilder"),
        ("on_demand", "on_demand"),
    ] {
        assert!(index.finds(word, item), "{item}");
    }
    assert!(!index.finds("spawn", "Handle::schedule"), "it is no other word's");
    assert!(index.aliases.len() > 120, "{} aliases", index.aliases.len());
}
