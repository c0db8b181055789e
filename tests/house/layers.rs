//! The structure of the sources, checked in the sources: layers point one way, wrapped facilities
//! are used in one module each, and functions stay short.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::root;

/// The modules of its own layer that a module uses. Apart from these it uses lower layers and itself.
const BESIDE: [(&str, &[&str]); 25] = [
    ("id", &["sync"]),
    ("time", &["unwind"]),
    ("wait", &["time", "unwind"]),
    ("entry", &["time"]),
    ("trace", &["error", "unwind"]),
    ("statistics", &["time"]),
    ("error", &["unwind"]),
    ("limit", &["token"]),
    // It shows the calendar, which stands on its public names, as one of its triggers.
    ("trigger", &["extra"]),
    ("schedule", &["trigger"]),
    ("task", &["feature", "schedule", "token", "trigger"]),
    ("feature", &["drained", "executor", "future", "pool", "shutdown_report", "task_builder"]),
    ("drained", &["feature"]),
    ("rejection", &["drained", "pool"]),
    ("pool", &["drained", "feature", "rejection", "shutdown_report", "thread_factory"]),
    ("task_builder", &["executor", "future"]),
    ("driven", &["executor", "stopping"]),
    ("builder", &["driven", "executor", "observing", "stopping"]),
    ("executor", &["future", "inspecting", "stopping"]),
    ("submitting", &["executor", "future", "task_builder"]),
    ("stopping", &["executor"]),
    ("inspecting", &["executor", "future"]),
    ("extra", &["builder", "executor", "future", "inspecting", "task_builder"]),
    ("timer", &["executor"]),
    ("observing", &["builder", "executor", "extra"]),
];

/// The layer of each top-level module, by the list of modules in the root.
fn layers() -> BTreeMap<String, u8> {
    let list = fs::read_to_string(root().join("src/lib.rs")).expect("the root");
    let (mut layers, mut layer) = (BTreeMap::new(), 0);
    // The modules that only tests have come last in the list.
    for line in list.split("#[cfg(test)]").next().expect("a part").lines() {
        if let Some(title) = line.strip_prefix("// Layer ") {
            layer = title.split(':').next().and_then(|n| n.parse().ok()).expect("a number");
        }
        let module = line.trim_start_matches("pub ").strip_prefix("mod ");
        if let Some(name) = module.and_then(|name| name.strip_suffix(';')) {
            layers.insert(name.to_owned(), layer);
        }
    }
    layers
}

/// The public names that modules import from the crate's root, with the modules that define them.
fn homes() -> BTreeMap<String, String> {
    let list = fs::read_to_string(root().join("src/lib.rs")).expect("the root");
    let mut homes = BTreeMap::new();
    for block in list.split("pub use crate::").skip(1) {
        let (mut depth, mut module) = (0, String::new());
        let block = block.split(';').next().expect("a part").trim_start_matches('{');
        for part in block.split_inclusive([',', '{', '}']) {
            let mut names = part.trim_end_matches([',', '{', '}']).split("::").map(str::trim);
            if depth == 0 {
                module = names.next().map(word).expect("a module");
            }
            homes.extend(names.map(|name| (word(name), module.clone())));
            match part.chars().last() {
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                _ => {}
            }
        }
    }
    homes
}

pub(crate) fn sources() -> Vec<(PathBuf, String)> {
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
pub(crate) fn is_test(path: &Path) -> bool {
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

pub(crate) fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

#[test]
fn layers_point_one_way() {
    let (layers, homes) = (layers(), homes());
    for (path, text) in sources() {
        let module = module_of(&path);
        if module == "lib" || is_test(&path) {
            continue;
        }
        let own = layers.get(&module).unwrap_or_else(|| panic!("{module} has no layer"));
        for name in imports(&text) {
            let target = homes.get(&name).unwrap_or(&name);
            let Some(other) = layers.get(target) else { panic!("{module} uses {name}") };
            let is_beside = |(name, beside): &(&str, &[&str])| {
                *name == module && beside.contains(&target.as_str())
            };
            let allowed = *target == module || other < own || BESIDE.iter().any(is_beside);
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
            let starts = ["thread_factory.rs", "taking.rs", "drained.rs"]
                .iter()
                .any(|door| path.ends_with(door));
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
    let map = page.split("\n## ").find(|part| part.starts_with("The map")).expect("the map");
    let cells = map.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    for file in cells.flat_map(|cell| cell.split('`')).filter(|name| name.ends_with(".rs")) {
        assert!(root.join("src").join(file).is_file(), "{file} is on the map and not on the disk");
    }
}

/// The names that the sources, except for tests, declare with one of these words at the beginning
/// of a line.
fn declared<'a>(sources: &'a [(PathBuf, String)], starts: &'a str) -> impl Iterator<Item = String> {
    let texts = sources.iter().filter(|(path, _)| !is_test(path)).map(|(_, text)| text);
    texts.flat_map(|text| text.lines()).filter_map(move |line| line.strip_prefix(starts)).map(word)
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
