//! The structure of the sources, checked in the sources: layers point one way, wrapped facilities
//! are used in one module each, and functions stay short.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::root;

/// Each top-level module with its layer. A module uses lower layers and itself, and of its own
/// layer only the modules named beside it.
const LAYERS: [(&str, u8, &[&str]); 35] = [
    ("id", 0, &["sync"]),
    ("sync", 0, &[]),
    ("time", 1, &["unwind"]),
    ("unwind", 1, &[]),
    ("wait", 1, &["time", "unwind"]),
    ("entry", 1, &["time"]),
    ("trace", 1, &["error", "unwind"]),
    ("statistics", 1, &["time"]),
    ("lazy_thread", 1, &["time", "wait"]),
    ("error", 1, &["unwind"]),
    ("token", 2, &[]),
    ("trigger", 2, &[]),
    ("limit", 2, &["token"]),
    ("queue", 2, &[]),
    ("schedule", 2, &["trigger"]),
    ("task", 2, &["feature", "schedule", "token", "trigger"]),
    ("shutdown_report", 3, &[]),
    ("feature", 3, &["drained", "executor", "pool", "shutdown_report", "task_builder"]),
    ("drained", 3, &["feature"]),
    ("thread_factory", 3, &[]),
    ("rejection", 3, &["drained"]),
    ("shared", 3, &[]),
    (
        "pool",
        3,
        &["drained", "feature", "rejection", "shared", "shutdown_report", "thread_factory"],
    ),
    ("future", 4, &[]),
    ("task_builder", 4, &["future"]),
    ("driven", 4, &["executor"]),
    ("builder", 4, &["driven", "executor", "observing"]),
    ("delay_queue", 4, &[]),
    ("executor", 4, &["future", "task_builder"]),
    ("together", 4, &["executor", "future", "task_builder"]),
    ("extra", 4, &["builder", "executor", "future", "task_builder"]),
    ("observing", 4, &["builder", "executor", "extra"]),
    ("pacing", 4, &["executor", "extra", "task_builder"]),
    ("timer", 4, &["executor"]),
    (
        "auto_traits",
        4,
        &[
            "builder",
            "delay_queue",
            "driven",
            "executor",
            "future",
            "task_builder",
            "timer",
            "together",
        ],
    ),
];

/// The public names that modules import from the crate's root, and the modules that define them.
const HOMES: [(&str, &[&str]); 23] = [
    ("id", &["Attempt", "TaskId"]),
    ("builder", &["Builder"]),
    (
        "extra",
        &[
            "Debounced",
            "Extender",
            "Histogram",
            "Histograms",
            "RunHistograms",
            "Starvation",
            "Throttled",
        ],
    ),
    ("driven", &["DrivenExecutor"]),
    ("error", &["ConfigError", "CancelReason", "Failure", "FailureKind", "RejectionReason"]),
    ("error", &["TaskError", "WouldDeadlock"]),
    ("together", &["InvokeAnyError", "InvokeError"]),
    ("limit", &["Limit", "LimitReached"]),
    (
        "executor",
        &[
            "DropPolicy",
            "ExecutorState",
            "Handle",
            "RunningTask",
            "ScheduledThreadPoolExecutor",
            "Statistics",
        ],
    ),
    ("future", &["TaskHandle", "CancelOnDrop", "ScheduledFuture"]),
    ("drained", &["RejectedExecutionError"]),
    ("rejection", &["RejectedExecutionHandler"]),
    ("shutdown_report", &["ShutdownReport", "TaskSummary"]),
    ("thread_factory", &["ThreadFactory"]),
    ("schedule", &["MissedRuns"]),
    (
        "task",
        &[
            "EndedRun",
            "Observer",
            "Outcome",
            "Points",
            "SlowRun",
            "TaskContext",
            "TaskState",
            "current_task",
        ],
    ),
    ("task", &["Done", "FailedRun", "TaskRun", "FailurePolicy", "FailureReport", "Submission"]),
    ("time", &["Clock", "ManualClock"]),
    ("token", &["CancellationToken", "Cancelled"]),
    ("task", &["TaskOutput", "UnitOutcome"]),
    ("trigger", &["Backoff", "Trigger"]),
    ("feature", &["Group", "GroupStatistics", "gate", "RunGate"]),
    ("unwind", &["PanicLocation"]),
];

fn sources() -> Vec<(PathBuf, String)> {
    fn visit(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    visit(&root().join("src"), &mut found);
    assert!(found.len() > 20, "there are sources");
    found
}

/// Returns `true` if a source is a module's tests.
fn is_test(path: &Path) -> bool {
    let inside = path.strip_prefix(root().join("src"));
    let mut parts = inside.expect("a source").iter();
    parts.any(|part| part == "tests" || part == "tests.rs")
}

/// The top-level module that a file belongs to.
fn module_of(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src"));
    let first = inside.expect("a source").iter().next().expect("a name").to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The names that follow `crate::` in a source, in paths and in lists.
fn imports(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.push(word(rest));
            continue;
        };
        let mut depth = 0_i32;
        let mut start = true;
        for (index, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                letter if start && !letter.is_whitespace() => {
                    names.push(word(&list[index..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    names
}

fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

fn layer(module: &str) -> Option<(u8, &'static [&'static str])> {
    LAYERS.iter().find(|(name, ..)| *name == module).map(|(_, layer, beside)| (*layer, *beside))
}

fn home(name: &str) -> String {
    let of_root = HOMES.iter().find(|(_, names)| names.contains(&name));
    let pending = if name.starts_with("DrainedTask") { "drained" } else { name };
    let builder = if name == "TaskBuilder" { "task_builder" } else { pending };
    of_root.map_or(builder, |(module, _)| module).to_owned()
}

#[test]
fn layers_point_one_way() {
    for (path, text) in sources() {
        let module = module_of(&path);
        if module == "lib" || is_test(&path) {
            continue;
        }
        let (own, beside) = layer(&module).unwrap_or_else(|| panic!("{module} has no layer"));
        for name in imports(&text) {
            let target = home(&name);
            let Some((other, _)) = layer(&target) else { panic!("{module} uses {name}") };
            let allowed = target == module || other < own || beside.contains(&target.as_str());
            assert!(allowed, "{} uses {name} of {target}", path.display());
        }
    }
}

/// The features outside of the core compile outside of the crate, each of them.
#[test]
fn the_doors_prove_every_extra() {
    let modules = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(root().join(file)).expect("a source");
        let lines = text.lines().map(|line| line.trim().to_owned());
        lines.filter(|line| line.starts_with("pub(crate) mod ")).collect()
    };
    assert_eq!(modules("src/extra.rs"), modules("tests/proof/doors/lib.rs"));
}

#[test]
fn each_wrapped_facility_is_used_in_one_module() {
    let doors = [
        ("catch_unwind(", "unwind.rs"),
        ("parking_lot::", "sync/native.rs"),
        ("shuttle::", "sync/model.rs"),
        ("loom::", "sync/loom.rs"),
        ("tracing::", "trace.rs"),
    ];
    for (path, text) in sources().into_iter().filter(|(path, _)| !is_test(path)) {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            for (what, door) in doors {
                assert!(path.ends_with(door) || !line.contains(what), "{}: {line}", path.display());
            }
            let starts = ["thread_factory.rs", "taking.rs"].iter().any(|door| path.ends_with(door));
            assert!(starts || !line.contains("thread::Builder"), "{}: {line}", path.display());
        }
    }
}

/// F39: one source reads the wall clock, so setting that clock has no effect on anything that is not
/// planned on it.
#[test]
fn one_module_reads_the_wall_clock() {
    for (path, text) in sources() {
        let is_door = path.ends_with("time/wall.rs") || path.ends_with("time/wall/timer.rs");
        assert!(is_door || !text.contains("SystemTime::now"), "{}", path.display());
    }
}

/// The names and the lengths of the functions of a source that have a body of several lines.
fn lengths(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<_> = text.lines().collect();
    let is_start =
        |code: &str| code.starts_with("fn ") || code.starts_with("pub") && code.contains(" fn ");
    let measure = |(first, line): (usize, &&'_ str)| {
        let rest = &lines[first..];
        let opens = rest.iter().find(|line| line.ends_with(['{', ';', '}']))?.ends_with('{');
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let length = rest.iter().position(|line| opens && **line == end)? + 1;
        Some((lines[first].trim_start(), length))
    };
    let starts = lines.iter().enumerate().filter(|(_, line)| is_start(line.trim_start()));
    starts.filter_map(measure).collect()
}

/// A function has at most fifty lines.
#[test]
fn functions_are_short() {
    let mut measured = 0;
    for (path, text) in sources().into_iter().filter(|(path, _)| !is_test(path)) {
        for (function, length) in lengths(&text) {
            measured += 1;
            assert!(length <= 50, "{}: {length} lines: {function}", path.display());
        }
    }
    assert!(measured > 1000, "there are functions");
}

/// The map in the architecture page names every file, and no other.
#[test]
fn the_map_lists_every_file() {
    let root = root();
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    for (path, _) in sources().into_iter().filter(|(path, _)| !is_test(path)) {
        let name = path.strip_prefix(root.join("src")).expect("a source").to_string_lossy();
        assert!(page.contains(&format!("`{name}`")), "{name} is not on the map");
    }
    let cells =
        page.lines().filter(|line| line.starts_with("| ")).filter_map(|l| l.split('|').nth(2));
    for file in cells.flat_map(|cell| cell.split('`')).filter(|name| name.ends_with(".rs")) {
        assert!(root.join("src").join(file).is_file(), "{file} is on the map and not on the disk");
    }
}

/// The map, and the list of modules in the root, have each module in the layer that it has here.
#[test]
fn each_module_has_one_layer() {
    let root = root();
    let (mut of_list, mut seen) = (0, 0);
    let mut check = |module: &str, named: u8| {
        let (own, _) = layer(module).unwrap_or_else(|| panic!("{module} has no layer"));
        assert_eq!(own, named, "{module}");
        seen += 1;
    };
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    for cells in page.lines().map(|line| line.split(" | ").collect::<Vec<_>>()) {
        let [number, files, _] = cells[..] else { continue };
        let Ok(number) = number.trim_start_matches("| ").parse() else { continue };
        let names = files.split('`').filter(|name| name.ends_with(".rs"));
        names.for_each(|name| check(word(name).as_str(), number));
    }
    let list = fs::read_to_string(root.join("src/lib.rs")).expect("the root");
    // The modules that only tests have come last in the list.
    let list = list.split("#[cfg(test)]").next().expect("a part");
    for line in list.lines() {
        if let Some(title) = line.strip_prefix("// Layer ") {
            of_list = title.split(':').next().and_then(|n| n.parse().ok()).expect("a number");
        }
        let module = line.trim_start_matches("pub ").strip_prefix("mod ");
        // One that is written out in the root has tests alone.
        if let Some(name) = module.and_then(|name| name.strip_suffix(';')) {
            check(name, of_list);
        }
    }
    assert!(seen > 100, "there are files: {seen}");
}

/// The names that the sources, except for tests, declare with one of these words at the beginning
/// of a line.
fn declared<'a>(sources: &'a [(PathBuf, String)], starts: &'a str) -> impl Iterator<Item = String> {
    let texts = sources.iter().filter(|(path, _)| !is_test(path)).map(|(_, text)| text);
    texts.flat_map(|text| text.lines()).filter_map(move |line| line.strip_prefix(starts)).map(word)
}

/// No two public types share a name, so a name in a signature identifies its type.
#[test]
fn no_two_public_types_share_a_name() {
    let sources = sources();
    let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
    let mut names: Vec<_> = kinds.iter().flat_map(|kind| declared(&sources, kind)).collect();
    assert!(names.len() > 50, "there are types");
    names.sort();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1], "there are two");
    }
}

/// The modules of which one stands in for the other, in another build. The two declare the same types.
const BACK_ENDS: [[&str; 2]; 1] = [["src/sync/model.rs", "src/sync/native.rs"]];

/// The types that a source declares at the top level of a module.
fn types_of(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let declaration = match line.strip_prefix("pub(") {
            Some(scoped) => scoped.split_once(") ")?.1,
            None => line.strip_prefix("pub ").unwrap_or(line),
        };
        let kinds = ["struct ", "enum ", "trait ", "type "];
        kinds.iter().find_map(|kind| declaration.strip_prefix(kind)).map(word)
    })
}

/// No two types share a name, public or not, so a word means one thing in the whole library.
#[test]
fn no_two_types_share_a_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources().iter().filter(|(path, _)| !is_test(path)) {
        let inside = path.strip_prefix(root()).expect("a source");
        let file = inside.to_string_lossy().replace('\\', "/");
        for name in types_of(text) {
            places.entry(name).or_default().push(file.clone());
        }
    }
    assert!(places.len() > 300, "there are types");
    for (name, mut files) in places {
        files.sort();
        let is_one = files.len() == 1 || BACK_ENDS.iter().any(|pair| files == *pair);
        assert!(is_one, "{name} is declared more than once: {files:?}");
    }
}

/// A setting of the executor that can be changed has the same name on the builder, on its getter,
/// and after `set_`.
#[test]
fn each_setting_has_one_name() {
    let sources = sources();
    let of = |folder: &str| -> String {
        let inside = sources.iter().filter(|(path, _)| path.to_string_lossy().contains(folder));
        inside.map(|(_, text)| text.as_str()).collect()
    };
    let (handle, builder) = (of("src/executor"), of("src/builder"));
    let own: Vec<_> = sources
        .iter()
        .filter(|(path, _)| path.to_string_lossy().contains("src/executor"))
        .cloned()
        .collect();
    let settings: Vec<_> = declared(&own, "    pub fn set_").collect();
    assert!(settings.len() > 5, "{settings:?}");
    for name in settings {
        assert!(handle.contains(&format!("pub fn {name}(&self)")), "{name} cannot be read");
        let on_builder = ["(mut self", "(\n        mut self"];
        let is_set = on_builder.iter().any(|own| builder.contains(&format!("pub fn {name}{own}")));
        assert!(is_set, "{name} is not on the builder");
    }
}

/// The core: what a plain task passes through between its submission and its end, and the queue.
fn is_core(path: &str) -> bool {
    const FILES: [&str; 11] = [
        "src/task.rs",
        "src/task/awaited.rs",
        "src/task/call.rs",
        "src/task/cell.rs",
        "src/task/end.rs",
        "src/task/payload.rs",
        "src/task/questions.rs",
        "src/task/state.rs",
        "src/task/verdict.rs",
        "src/pool/worker.rs",
        "src/entry.rs",
    ];
    FILES.contains(&path) || path.starts_with("src/queue")
}

/// The features, by the words that only they have. In a list of modules or of imports a word is no mention: there the
/// core is wired to its features.
const FEATURES: [&str; 15] = [
    "cfg(feature",
    "gate",
    "lease",
    "group",
    "membership",
    "wall",
    "control",
    "debounce",
    "throttle",
    "wrapper",
    "decorat",
    "histogram",
    "recorder",
    "observ",
    "budget",
];

/// No file of the core names a feature, in its code or in its comments, but `task/extensions.rs`, which asks each of them
/// in its line.
#[test]
fn the_core_names_no_feature() {
    let root = root();
    let (mut found, mut seen) = (Vec::new(), 0);
    for (path, text) in sources().into_iter().filter(|(path, _)| !is_test(path)) {
        let inside =
            path.strip_prefix(root).expect("a source").to_string_lossy().replace('\\', "/");
        if !is_core(&inside) {
            continue;
        }
        seen += 1;
        let code = text.split("#[cfg(test)]").next().expect("there is a first");
        let mut in_list = false;
        for (number, line) in code.lines().enumerate() {
            let start = line.trim_start();
            in_list |= ["use ", "pub use ", "pub(crate) use ", "pub(super) use "]
                .iter()
                .any(|word| start.starts_with(word));
            let is_wiring = in_list || start.starts_with("mod ") || start.starts_with("pub mod ");
            in_list &= !line.trim_end().ends_with(';');
            let lower = line.to_lowercase();
            let named = FEATURES.iter().find(|word| {
                let mut at = lower.match_indices(**word);
                at.any(|(index, _)| !lower[..index].ends_with(char::is_alphabetic))
            });
            // There a group is one of siblings in the heap.
            let is_sibling = named == Some(&"group") && inside.contains("array_heap");
            if let Some(word) = named.filter(|_| !is_wiring && !is_sibling) {
                found.push(format!("{inside}:{}: {word}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(seen > 25, "there is a core: {seen}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
