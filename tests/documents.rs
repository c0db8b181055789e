//! What the documents say of the tests is true.

#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{fs, path::Path};

/// Each row of the conformance table names tests that exist and carry its id, or gives a reason.
#[test]
fn every_case_has_its_test_or_its_reason() {
    let (root, page) = (root(), page("docs/conformance.md"));
    let mut cases = 0;
    for row in rows(&page, "id") {
        let [id, tests, remark] = row[..] else { panic!("three columns: {row:?}") };
        cases += 1;
        if tests == "–" {
            assert!(!remark.is_empty(), "{id} has neither test nor reason");
            continue;
        }
        assert_carry(root, tests, id);
    }
    assert!(cases > 100, "{cases} cases");
}

/// Each promise names tests that exist.
#[test]
fn every_promise_has_its_tests() {
    let (root, page) = (root(), page("docs/guarantees.md"));
    let mut promises = 0;
    for row in rows(&page, "promise") {
        let [_, tests] = row[..] else { panic!("two columns: {row:?}") };
        for (file, test) in tests_in(tests) {
            assert!(text_before(root, file, test).is_some(), "no {test} in {file}");
        }
        promises += 1;
    }
    assert!(promises > 20, "{promises} promises");
}

/// Each of the faults, by its number, names tests that exist and carry the number, or gives the
/// reason why there is none.
#[test]
fn every_fault_has_its_tests_or_the_reason() {
    let (root, page) = (root(), page("docs/faults.md"));
    let mut numbers = Vec::new();
    for row in rows(&page, "#") {
        let [number, fault, here, tests, remark] = row[..] else { panic!("five columns: {row:?}") };
        assert!(!fault.is_empty() && !here.is_empty(), "{number} says nothing");
        numbers.push(number.to_owned());
        if tests == "–" {
            assert!(!remark.is_empty(), "{number} has neither test nor reason");
            continue;
        }
        assert_carry(root, tests, number);
    }
    assert!(numbers.into_iter().eq((1..=50).map(|number| format!("F{number}"))));
}

/// The items of the Rust API guidelines' checklist.
#[rustfmt::skip]
const GUIDELINES: [&str; 54] = [
    "C-CASE", "C-CONV", "C-GETTER", "C-ITER", "C-ITER-TY", "C-FEATURE", "C-WORD-ORDER",
    "C-COMMON-TRAITS", "C-CONV-TRAITS", "C-COLLECT", "C-SERDE", "C-SEND-SYNC", "C-GOOD-ERR", "C-NUM-FMT", "C-RW-VALUE",
    "C-EVOCATIVE", "C-MACRO-ATTR", "C-ANYWHERE", "C-MACRO-VIS", "C-MACRO-TY",
    "C-CRATE-DOC", "C-EXAMPLE", "C-QUESTION-MARK", "C-FAILURE", "C-LINK", "C-METADATA", "C-RELNOTES", "C-HIDDEN",
    "C-SMART-PTR", "C-CONV-SPECIFIC", "C-METHOD", "C-NO-OUT", "C-OVERLOAD", "C-DEREF", "C-CTOR",
    "C-INTERMEDIATE", "C-CALLER-CONTROL", "C-GENERIC", "C-OBJECT",
    "C-NEWTYPE", "C-CUSTOM-TYPE", "C-BITFLAG", "C-BUILDER",
    "C-VALIDATE", "C-DTOR-FAIL", "C-DTOR-BLOCK",
    "C-DEBUG", "C-DEBUG-NONEMPTY",
    "C-SEALED", "C-STRUCT-PRIVATE", "C-NEWTYPE-HIDE", "C-STRUCT-BOUNDS",
    "C-STABLE", "C-PERMISSIVE",
];

/// Each item of the API guidelines is answered, in their order, with a remark.
#[test]
fn every_guideline_has_its_answer() {
    let page = page("docs/api-guidelines.md");
    let mut items = Vec::new();
    for row in rows(&page, "item") {
        let [item, answer, remark] = row[..] else { panic!("three columns: {row:?}") };
        assert!(
            ["Kept", "In part", "Not", "Nothing to keep"].contains(&answer),
            "{item}: {answer}"
        );
        assert!(!remark.is_empty(), "{item} has no remark");
        items.push(item);
    }
    assert_eq!(items, GUIDELINES);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect("the page")
}

/// The cells of each row of the page's tables whose first column is called so.
fn rows<'a>(page: &'a str, first: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(move |cells| cells[0] != first)
}

/// The tests that a cell names, each with its file.
fn tests_in(cell: &str) -> impl Iterator<Item = (&str, &str)> {
    let names: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
    assert!(!names.is_empty() && names.len() % 2 == 0, "{cell}");
    let (files, tests) = (names.clone().into_iter().step_by(2), names.into_iter().skip(1));
    files.zip(tests.step_by(2))
}

/// The tests of the cell exist, and carry the id.
fn assert_carry(root: &Path, tests: &str, id: &str) {
    for (file, test) in tests_in(tests) {
        assert!(has_test(root, file, test, id), "{id}: no {test} in {file} that carries it");
    }
}

/// Each name in the second column of the migration guide's tables is one of the crate's.
#[test]
fn the_migration_guide_names_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/java-parity.md")).expect("the page");
    let mut sources = String::new();
    read_all(&root.join("src"), &mut sources);
    let mut names = 0;
    let types = page.split_once("## ScheduledThreadPoolExecutor").expect("the first type").1;
    for row in types.lines().filter(|line| line.starts_with("| `")) {
        let here = row.split(" | ").nth(1).expect("a second column");
        // What stands in backticks, up to its arguments: `TaskBuilder::timeout`, `cancel()`.
        for code in here.split('`').skip(1).step_by(2) {
            let path = code.split(['(', '{', '<', '.', ' ', ',']).next().unwrap_or_default();
            let name = path.rsplit("::").next().unwrap_or_default().trim_start_matches('&');
            let is_name = name.len() > 2 && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            if is_name
                && !["move", "task", "std", "FromIterator", "Instant", "None"].contains(&name)
            {
                names += 1;
                assert!(is_declared(&sources, name), "{name} is nothing of the crate's: {row}");
            }
        }
    }
    assert!(names > 120, "{names} names");
}

/// Whether the sources declare something public of this name.
fn is_declared(sources: &str, name: &str) -> bool {
    let kinds =
        ["pub fn ", "pub async fn ", "pub struct ", "pub enum ", "pub trait ", "    fn ", "    "];
    kinds.iter().any(|kind| {
        let ends = ["(", "<", " ", ";", ",", "\n"];
        ends.iter().any(|end| sources.contains(&format!("{kind}{name}{end}")))
    })
}

fn read_all(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            read_all(&path, text);
        } else {
            text.push_str(&fs::read_to_string(path).expect("a source"));
        }
    }
}

/// Whether the file has the test, with the id (or a range around it) in the comment before it.
fn has_test(root: &Path, file: &str, test: &str, id: &str) -> bool {
    let Some(before) = text_before(root, file, test) else { return false };
    let comment: Vec<_> = before
        .lines()
        .rev()
        .skip_while(|line| !line.trim_start().starts_with("///"))
        .take_while(|line| line.trim_start().starts_with("///"))
        .collect();
    comment.iter().any(|line| names(line, id) || in_range(line, id))
}

/// Whether the line has the id, and not only one that begins like it.
fn names(line: &str, id: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == id)
}

/// What the file says before the test; nothing if there is no such test.
fn text_before(root: &Path, file: &str, test: &str) -> Option<String> {
    let folder = if file.starts_with("src/") { root.to_owned() } else { root.join("tests") };
    let mut text = fs::read_to_string(folder.join(file)).ok()?;
    text.truncate(text.find(&format!("fn {test}("))?);
    Some(text)
}

/// Whether the line says `XX-001 to XX-009` around the id.
fn in_range(line: &str, id: &str) -> bool {
    line.split(" to ").zip(line.split(" to ").skip(1)).any(|(before, after)| {
        let (from, to) = (before.rsplit(' ').next(), after.get(..id.len()));
        from.zip(to).is_some_and(|(from, to)| {
            from.len() == id.len() && from.get(..2) == id.get(..2) && from <= id && id <= to
        })
    })
}
