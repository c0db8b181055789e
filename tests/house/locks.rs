//! The pages on locks and atomics list what the sources have: `docs/locks.md`, `docs/atomics.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::root;

/// A field or a static: the file that declares it, below `src`, and its name. A field's name
/// follows its type's, `Type.field`; a field of a tuple has a number.
type Name = (String, String);

/// The sources without tests, each with its path below `src`.
fn sources() -> Vec<(String, String)> {
    fn visit(folder: &Path, paths: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, paths);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                paths.push(path);
            }
        }
    }
    let (folder, mut paths) = (root().join("src"), Vec::new());
    visit(&folder, &mut paths);
    let is_test = |path: &Path| path.iter().any(|part| part == "tests" || part == "tests.rs");
    paths.retain(|path| !is_test(path.strip_prefix(&folder).expect("a source")));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source");
        let code = text.split("\nmod tests {").next().unwrap_or_default().to_owned();
        (path.strip_prefix(&folder).expect("a source").to_string_lossy().into_owned(), code)
    };
    let found: Vec<_> = paths.into_iter().map(read).collect();
    assert!(found.len() > 20, "there are sources");
    found
}

/// The names of what the sources declare with a type: fields, statics, and the shared atomics of
/// single calls (`let name = Arc::new(Atomic…`).
fn declared() -> BTreeMap<Name, String> {
    // The building blocks of `Watched` are not locks or atomics of the crate itself.
    let mut all = BTreeMap::new();
    for (file, code) in sources().into_iter().filter(|(file, _)| file != "wait.rs") {
        let mut owner = String::new();
        for line in code.lines().map(str::trim_end) {
            let (depth, line) = (line.len() - line.trim_start().len(), line.trim_start());
            let line = strip_visibility(line);
            if line.starts_with("//") {
                continue;
            } else if let Some(rest) = line.strip_prefix("struct ") {
                owner = word(rest);
                if let Some((_, fields)) = rest.split_once('(') {
                    let kind = fields.trim_end_matches(");").to_owned();
                    all.insert((file.clone(), format!("{owner}.0")), kind);
                }
            } else if let Some((name, kind)) =
                line.strip_prefix("static ").and_then(|rest| rest.split_once(':'))
            {
                all.insert((file.clone(), name.to_owned()), kind.to_owned());
            } else if let Some((name, kind)) =
                line.strip_prefix("let ").and_then(|rest| rest.split_once(" = Arc::new("))
            {
                all.insert((file.clone(), name.to_owned()), kind.to_owned());
            } else if line == "}" && depth == 0 {
                owner.clear();
            } else if let Some((name, kind)) = line.split_once(": ") {
                if !owner.is_empty() && depth == 4 && word(name) == name {
                    all.insert((file.clone(), format!("{owner}.{name}")), kind.to_owned());
                }
            }
        }
    }
    all
}

fn strip_visibility(line: &str) -> &str {
    match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(line, |(_, rest)| rest),
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    }
}

fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).expect("the page")
}

/// The rows of the table below this heading, without their first two lines.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let (_, table) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let table = table.split("\n## ").next().expect("a part");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    rows.skip(1).map(|row| row.split('|').map(str::trim).collect()).collect()
}

/// The text between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The entry that a row begins with: a file and a name in it.
fn name_of(row: &[&str]) -> Name {
    let [file, name] = [row[0], row[1]].map(quoted);
    assert!(file.len() == 1 && name.len() == 1, "a file and a name: {row:?}");
    (file[0].clone(), name[0].clone())
}

/// Panics with the entries that are on one side only.
fn assert_same(page: &str, listed: &[Name], declared: &BTreeSet<Name>) {
    let as_set: BTreeSet<_> = listed.iter().cloned().collect();
    let list = |names: Vec<&Name>| -> String {
        names.iter().map(|(file, name)| format!("\n  `{file}` `{name}`")).collect()
    };
    let missing = list(declared.difference(&as_set).collect());
    let extra = list(as_set.difference(declared).collect());
    assert!(missing.is_empty() && extra.is_empty(), "{page}: missing:{missing}\nextra:{extra}");
    assert_eq!(listed.len(), as_set.len(), "{page}: a row stands there twice");
}

fn is_lock(kind: &str) -> bool {
    let is_lock = ["Mutex<", "Watched<"].iter().any(|lock| kind.contains(lock));
    is_lock && !kind.contains("parking_lot::")
}

/// The rank in the type of a lock.
fn rank_of(kind: &str) -> &str {
    kind.split_once("rank::").map_or("LEAF", |(_, rest)| rest.split(' ').next().unwrap_or(rest))
}

#[test]
fn every_lock_is_on_the_page_with_its_rank() {
    let (page, mut declared) = (page("locks.md"), declared());
    declared.retain(|_, kind| is_lock(kind));
    let rows = rows(&page, "## Every lock");
    let listed: Vec<_> = rows.iter().map(|row| name_of(row)).collect();
    assert_same("docs/locks.md", &listed, &declared.keys().cloned().collect());
    assert!(listed.len() > 12, "there are locks");
    for (name, row) in listed.iter().zip(&rows) {
        assert_eq!(rank_of(&declared[name]), row[2], "the rank of {name:?}");
        assert!(!row[3].is_empty(), "what {name:?} protects");
    }
}

/// Each nesting names functions that exist in the named file.
#[test]
fn every_nesting_names_its_function() {
    let page = page("locks.md");
    let rows = rows(&page, "## Every nesting");
    assert!(rows.len() > 8, "there are nestings");
    for row in rows {
        let [functions, file, holds, takes, why] = row[..] else { panic!("five columns: {row:?}") };
        assert!(![holds, takes, why].contains(&""), "{row:?}");
        let path = root().join("src").join(&quoted(file)[0]);
        let text = fs::read_to_string(&path).unwrap_or_default();
        for function in quoted(functions) {
            let is_there =
                ["(", "<"].iter().any(|end| text.contains(&format!("fn {function}{end}")));
            assert!(is_there, "docs/locks.md: no fn {function} in {file}");
        }
    }
}

fn is_atomic(kind: &str) -> bool {
    let owned = ["Atomic", "Arc<Atomic", "CachePadded<Atomic", "process::Atomic", "&'a Atomic"];
    owned.iter().any(|start| kind.trim_start().starts_with(start)) && !kind.contains("&'a")
}

/// Each atomic has a row, and each test that a row names exists.
#[test]
fn every_atomic_is_on_the_page_with_its_tests() {
    let (page, mut declared) = (page("atomics.md"), declared());
    declared.retain(|_, kind| is_atomic(kind));
    let rows = rows(&page, "## Every atomic");
    let listed: Vec<_> = rows.iter().map(|row| name_of(row)).collect();
    assert_same("docs/atomics.md", &listed, &declared.keys().cloned().collect());
    assert!(listed.len() > 30, "there are atomics");
    let tests = all_tests();
    for row in &rows {
        let [file, name, users, ordering, partner, test] = row[..] else {
            panic!("six columns: {row:?}")
        };
        let is_full = ![users, ordering, partner, test].contains(&"");
        assert!(is_full, "docs/atomics.md: something is left out for {file} {name}");
        let named = quoted(test).into_iter().filter(|name| !name.ends_with(".rs"));
        for test in named {
            assert!(tests.contains(&test), "docs/atomics.md: no test {test}, named for {name}");
        }
        let is_answered = test.contains('`') || test.starts_with("none:");
        assert!(is_answered, "docs/atomics.md: neither test nor `none:` with a reason for {name}");
    }
}

/// The names of all functions that follow a `#[test]`.
fn all_tests() -> BTreeSet<String> {
    fn visit(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let after = text.split("#[test]").skip(1);
                found.extend(after.filter_map(|text| Some(word(text.split_once("fn ")?.1))));
            }
        }
    }
    let mut found = BTreeSet::new();
    visit(&root().join("src"), &mut found);
    visit(&root().join("tests"), &mut found);
    found
}
