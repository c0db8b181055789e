//! What the documents say of the tests is true.

#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{fs, path::Path};

/// Each row of the conformance table names tests that exist and carry its id, or gives a reason.
#[test]
fn every_case_has_its_test_or_its_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/conformance.md")).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id"));
    let mut cases = 0;
    for row in rows {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, id, tests, remark, _] = cells[..] else { panic!("four columns: {row}") };
        cases += 1;
        if tests == "–" {
            assert!(!remark.is_empty(), "{id} has neither test nor reason");
            continue;
        }
        let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() && names.len() % 2 == 0, "{row}");
        for pair in names.chunks(2) {
            assert!(has_test(root, pair[0], pair[1], id), "{id}: no {} in {}", pair[1], pair[0]);
        }
    }
    assert!(cases > 100, "{cases} cases");
}

/// Each promise names tests that exist.
#[test]
fn every_promise_has_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/guarantees.md")).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise"));
    let mut promises = 0;
    for row in rows {
        let tests = row.rsplit('|').nth(1).expect("a last column");
        let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() && names.len() % 2 == 0, "{row}");
        for pair in names.chunks(2) {
            assert!(text_before(root, pair[0], pair[1]).is_some(), "no {} in {}", pair[1], pair[0]);
        }
        promises += 1;
    }
    assert!(promises > 20, "{promises} promises");
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
    comment.iter().any(|line| line.contains(id)) || comment.iter().any(|line| in_range(line, id))
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
        let (from, to) = (before.rsplit(' ').next(), after.get(..6));
        from.zip(to).is_some_and(|(from, to)| from[..2] == id[..2] && from <= id && id <= to)
    })
}
