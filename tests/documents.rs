//! What the documents say of the crate is true. What they say of its tests is generated:
//! `tests/evidence.rs`.

#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{fs, path::Path};

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

/// Each name in the second column of the migration guide's tables is one of the crate's.
#[test]
fn the_migration_guide_names_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/coming-from-java.md")).expect("the page");
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
