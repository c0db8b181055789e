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

/// Whether the file has the test, with the id (or a range around it) in the comment before it.
fn has_test(root: &Path, file: &str, test: &str, id: &str) -> bool {
    let folder = if file.starts_with("src/") { root.to_owned() } else { root.join("tests") };
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    let Some(end) = text.find(&format!("fn {test}(")) else { return false };
    let comment: Vec<_> = text[..end]
        .lines()
        .rev()
        .skip_while(|line| !line.trim_start().starts_with("///"))
        .take_while(|line| line.trim_start().starts_with("///"))
        .collect();
    comment.iter().any(|line| line.contains(id)) || comment.iter().any(|line| in_range(line, id))
}

/// Whether the line says `XX-001 to XX-009` around the id.
fn in_range(line: &str, id: &str) -> bool {
    line.split(" to ").zip(line.split(" to ").skip(1)).any(|(before, after)| {
        let (from, to) = (before.rsplit(' ').next(), after.get(..6));
        from.zip(to).is_some_and(|(from, to)| from[..2] == id[..2] && from <= id && id <= to)
    })
}
