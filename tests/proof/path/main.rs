//! Is "Stop by stop" in `docs/architecture.md` true? `ci/path.sh` runs this program under callgrind, and then once more
//! to compare what callgrind has seen with the page.
//!
//! Without an argument the program makes the trip: it schedules a closure on an executor whose only worker sleeps, and
//! joins it. `check DUMP` reads the functions that were executed meanwhile, prints for each stop the functions that the
//! page names, and fails if the page names one that was not executed, or that is not in the file that the page names.

#![allow(
    clippy::disallowed_methods,
    reason = "it waits for the threads of an executor as a user does"
)]

mod dump;
mod page;
mod sources;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

use punctual::ScheduledThreadPoolExecutor;

use crate::{
    page::Stop,
    sources::{Function, Sources},
};

/// Long enough for each thread to fall asleep under callgrind.
const PAUSE: Duration = Duration::from_millis(200);
const PAGE: &str = "docs/architecture.md";

/// The code that callgrind looks at. It ends when the worker sleeps again, since the worker has still to leave its run
/// when `join` returns.
#[inline(never)]
fn trip(executor: &ScheduledThreadPoolExecutor) {
    let future = executor.schedule(PAUSE, || 42).expect("it is open");
    assert_eq!(future.join().expect("the closure returns"), 42);
    drop(future);
    thread::sleep(PAUSE);
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let executor = ScheduledThreadPoolExecutor::new(1);
            executor.execute(|| ()).expect("it is open");
            thread::sleep(PAUSE);
            trip(&executor);
            ExitCode::SUCCESS
        }
        ["check", dump] => check(dump),
        _ => panic!("usage: path [check DUMP]"),
    }
}

fn check(dump: &str) -> ExitCode {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("a clone");
    let sources = Sources::read(&root.join("src"));
    let dump = fs::read_to_string(dump).expect("what callgrind has written");
    let executed = dump::executed(&dump, &sources);
    let text = fs::read_to_string(root.join(PAGE)).expect("the page");
    let faults = match page::stops(&text) {
        Ok(stops) => stops.iter().flat_map(|stop| compare(stop, &sources, &executed)).collect(),
        Err(fault) => vec![fault],
    };
    print_trip(&executed);
    if faults.is_empty() {
        println!("each function on the path was executed, in the file that the page names");
        return ExitCode::SUCCESS;
    }
    println!("\n\"Stop by stop\" in {PAGE} is not true:");
    faults.iter().for_each(|fault| println!("  {fault}"));
    ExitCode::FAILURE
}

/// Prints the functions of a stop, and returns what is wrong with them.
fn compare(stop: &Stop, sources: &Sources, executed: &BTreeSet<&Function>) -> Vec<String> {
    let (mut on_path, mut beside, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for mention in &stop.mentions {
        let ran = |functions: &Vec<&Function>| functions.iter().any(|it| executed.contains(it));
        let name = &mention.name;
        match sources.find(mention) {
            Err(fault) => faults.push(fault),
            Ok(found) if mention.is_beside => {
                let note = if found.iter().any(ran) { " (executed)" } else { "" };
                beside.push(format!("{name}{note}"));
            }
            Ok(found) => match found.iter().find(|functions| !ran(functions)) {
                None => on_path.push(name.as_str()),
                Some(functions) => faults.push(format!(
                    "`{name}` (src/{}:{}) was not executed; if only rare cases reach it, name it in an item below the stop",
                    functions[0].file, functions[0].line
                )),
            },
        }
    }
    if on_path.is_empty() && faults.is_empty() {
        faults.push("no function on the path is named".to_owned());
    }
    println!("{:2}. {}: {}", stop.number, stop.title, on_path.join(", "));
    if !beside.is_empty() {
        println!("      beside the path: {}", beside.join(", "));
    }
    let at_stop = |fault| format!("stop {} ({}): {fault}", stop.number, stop.title);
    faults.into_iter().map(at_stop).collect()
}

/// Prints what a reader reads who follows one task: the functions of both threads, and their files.
fn print_trip(functions: &BTreeSet<&Function>) {
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for function in functions {
        *files.entry(&function.file).or_default() += 1;
    }
    println!(
        "\nexecuted from the call of `schedule` until `join` has returned and the worker sleeps again:"
    );
    files.iter().for_each(|(file, count)| println!("  {count:3} in src/{file}"));
    let (count, functions) = (files.len(), functions.len());
    println!(
        "the trip: {count} files of src (goal: at most 22), {functions} functions (goal: at most 120)"
    );
}
