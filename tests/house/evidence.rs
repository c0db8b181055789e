//! Each case, fault, guarantee and mutation is a row with an id, and the doc comments of its tests have that id. So the name of a
//! test is written once. These tests combine the two, and make tables with links to the tests on request. The rows of the
//! guarantees are the page `docs/evidence/guarantees.md`; those of the others are in `tests/house/evidence/rows`. In the same
//! way [`coverage`] names functions, of which the file is found in the sources.
//!
//! ```sh
//! cargo test -p house                              # fails if an id has no row, or a row neither test nor reason
//! PUNCTUAL_WRITE_EVIDENCE=1 cargo test -p house    # makes the tables in target/evidence, and writes the files of functions
//! ```
//!
//! A row has `{tests}` where the links are to stand. A row without tests gives the reason in its last column, and no
//! test may have its id. A new row of the coverage has `{file}` in its first column. What a tool excludes from the faults that
//! it puts in is in the settings of that tool: [`mutants`].

mod coverage;
pub(crate) mod functions;
mod java_names;
mod mutants;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use self::functions::functions;

use crate::root;

/// The placeholder for the tests in a row.
const TESTS: &str = "{tests}";

/// The variable that asks for the tables to be made.
const WRITE: &str = "PUNCTUAL_WRITE_EVIDENCE";

/// The head of the page that is written in part.
const HEAD: &str = "<!-- Generated in part: PUNCTUAL_WRITE_EVIDENCE=1 cargo test -p house writes \
                    the files of functions. -->\n\n";

/// The page with the places of functions.
const COVERAGE: &str = "coverage.md";

/// The page of the documents whose rows are promises.
const GUARANTEES: &str = "guarantees.md";

/// The tables whose rows have tests.
const TABLES: [&str; 4] = ["conformance.md", "faults.md", GUARANTEES, "mutations.md"];

/// A test, and the ids in its doc comment.
struct Test {
    file: String,
    name: String,
    ids: BTreeSet<String>,
}

/// A page or table: its text, with a placeholder in each row that has tests.
struct Page {
    name: &'static str,
    text: String,
}

impl Page {
    /// The id of each row that has one, and the remaining cells.
    fn rows(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.text.lines().filter_map(row)
    }
}

/// Each table can be made: every placeholder has its tests, and what a row links to is there.
#[test]
fn the_tables_are_made_on_request() {
    let (tests, made) = (tests(), root().join("target/evidence"));
    for page in TABLES.map(page) {
        let text = filled(&page, &tests);
        assert!(!text.contains(TESTS), "{}: a row without tests", page.name);
        for target in text.split("](../../").skip(1) {
            let file = target.split([')', '#']).next().expect("a path");
            assert!(root().join(file).is_file(), "{} links to {file}", page.name);
        }
        if env::var_os(WRITE).is_some() {
            fs::create_dir_all(&made).expect("the folder is made");
            fs::write(made.join(page.name), text).expect("the table is written");
        }
    }
}

/// The page on the coverage has the files in which the functions are.
#[test]
fn the_coverage_names_the_files_of_its_functions() {
    let (old, functions) = (page(COVERAGE).text, functions());
    let lines = old.lines();
    let filled = lines
        .map(|line| coverage::filled(line, &functions).unwrap_or_else(|| line.to_owned()) + "\n");
    let new: String = filled.collect();
    if new != old && env::var_os(WRITE).is_some() {
        fs::write(rows().join(COVERAGE), HEAD.to_owned() + &new).expect("the page is written");
    } else {
        assert_eq!(new, old, "not as generated (run with {WRITE}=1)");
    }
}

/// No page of the documents is generated.
#[test]
fn no_page_is_generated() {
    let says_so = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("the page");
        text.starts_with("<!-- Generated").then(|| file_name(path))
    };
    let found: Vec<_> = markdown(&folder()).iter().filter_map(says_so).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// An id beside a test is the id of a row, which lists the test.
#[test]
fn each_id_beside_a_test_has_its_row() {
    let pages = tables();
    let known: BTreeSet<_> = pages.iter().flat_map(Page::rows).map(|(id, _)| id).collect();
    let mut unknown = Vec::new();
    for Test { file, name, ids } in tests() {
        let without = ids.into_iter().filter(|id| !known.contains(id.as_str()));
        unknown.extend(without.map(|id| format!("{id} of {name} in {file}")));
    }
    assert!(unknown.is_empty(), "no page has {unknown:?}");
}

/// Each id is used for one row only.
#[test]
fn no_id_has_two_rows() {
    let mut seen = BTreeMap::new();
    for page in tables() {
        for (id, _) in page.rows() {
            if let Some(before) = seen.insert(id.to_owned(), page.name) {
                panic!("{id} is in {before} and in {}", page.name);
            }
        }
    }
}

/// Each of Java's behaviours has tests with its id, or a reason.
#[test]
fn every_case_has_its_test_or_its_reason() {
    let ids = answered("conformance.md");
    assert!(ids.len() > 100, "{} cases", ids.len());
}

/// Each promise has tests, without exception.
#[test]
fn every_promise_has_its_tests() {
    let page = page(GUARANTEES);
    assert!(page.rows().all(|(_, cells)| cells.iter().any(|cell| cell.contains(TESTS))));
    let ids = answered(GUARANTEES);
    assert!(ids.len() > 40, "{} promises", ids.len());
    assert!(ids.into_iter().eq((1..=page.rows().count()).map(|number| format!("G{number}"))));
}

/// Each fault has tests with its id, or a reason.
#[test]
fn every_fault_has_its_tests_or_the_reason() {
    let page = page("faults.md");
    for (id, cells) in page.rows() {
        assert!(!cells[0].is_empty() && !cells[1].is_empty(), "{id} says nothing");
    }
    assert!(answered("faults.md").into_iter().eq((1..=50).map(|number| format!("F{number}"))));
}

/// Each injected fault is caught by a test, or its row says by what else, or why by nothing.
#[test]
fn every_mutation_is_caught_or_has_the_reason() {
    let ids = answered("mutations.md");
    assert!(ids.len() > 100, "{} mutations", ids.len());
    // A fault leaves with its code, and its number is not used again.
    let numbers = ids.iter().map(|id| id.strip_prefix('M').and_then(|it| it.parse::<u32>().ok()));
    assert!(numbers.clone().all(|number| number.is_some()) && numbers.is_sorted_by(|a, b| a < b));
}

/// The ids of a page, each of which has either tests or a reason, and not both.
fn answered(name: &'static str) -> Vec<String> {
    let tests = tests();
    let page = page(name);
    let mut ids = Vec::new();
    for (id, cells) in page.rows() {
        let with_id = tests.iter().filter(|test| test.ids.contains(id));
        let names: Vec<_> = with_id.map(|test| &test.name).collect();
        if cells.iter().any(|cell| cell.contains(TESTS)) {
            assert!(!names.is_empty(), "{name}: no test has {id}");
        } else {
            assert!(names.is_empty(), "{name}: {names:?} have {id}, whose row shows no tests");
            let reason = cells.last().is_some_and(|cell| !cell.is_empty() && *cell != "–");
            assert!(reason, "{name}: {id} has neither test nor reason");
        }
        ids.push(id.to_owned());
    }
    ids
}

/// The table with the links to the tests in their places.
fn filled(page: &Page, tests: &[Test]) -> String {
    let lines = page.text.lines().map(|line| match row(line) {
        Some((id, _)) if line.contains(TESTS) => line.replace(TESTS, &links(tests, id)),
        _ => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

/// Links to the tests with this id.
fn links(tests: &[Test], id: &str) -> String {
    let with_id = tests.iter().filter(|test| test.ids.contains(id));
    let links = with_id.map(|Test { file, name, .. }| format!("[`{name}`](../../{file})"));
    links.collect::<Vec<_>>().join(", ")
}

/// A row's id and the remaining cells; `None` for any other line.
fn row(line: &str) -> Option<(&str, Vec<&str>)> {
    let row = line.strip_prefix("| ")?.strip_suffix('|')?;
    let (id, cells) = row.split_once('|')?;
    is_id(id.trim()).then(|| (id.trim(), cells.split('|').map(str::trim).collect()))
}

/// Returns `true` if the word has the form of an id: `SO-001` of a case, or a letter and a number.
fn is_id(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    match word.split_once('-') {
        Some((topic, number)) => {
            let is_topic = topic.len() == 2 && topic.chars().all(|c| c.is_ascii_uppercase());
            is_topic && number.len() == 3 && is_number(number)
        }
        None => word.strip_prefix(['F', 'G', 'M']).is_some_and(is_number),
    }
}

fn folder() -> PathBuf {
    root().join("docs/evidence")
}

/// The folder of the tables that are no pages.
fn rows() -> PathBuf {
    root().join("tests/house/evidence/rows")
}

fn page(name: &'static str) -> Page {
    let folder = if name == GUARANTEES { folder() } else { rows() };
    let text =
        fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = match name {
        COVERAGE => text.strip_prefix(HEAD).expect("the page begins with its head").to_owned(),
        GUARANTEES => text.lines().map(with_column).collect(),
        _ => text,
    };
    Page { name, text }
}

/// The line of a table of promises with a column for the tests; any other line as it is.
fn with_column(line: &str) -> String {
    match line {
        "| id | promise |" | "| id | protocol |" => format!("{line} tests |\n"),
        "|---|---|" => format!("{line}---|\n"),
        _ if row(line).is_some() => format!("{line} {TESTS} |\n"),
        _ => format!("{line}\n"),
    }
}

fn tables() -> Vec<Page> {
    TABLES.map(page).into()
}

/// The pages directly in a folder.
fn markdown(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("it").path());
    let mut pages: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.sort();
    pages
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// All tests of the crate, by file and by position.
fn tests() -> Vec<Test> {
    let root = root();
    let pages = tables();
    let known: Vec<_> = pages.iter().flat_map(Page::rows).map(|(id, _)| id.to_owned()).collect();
    let mut tests = Vec::new();
    for folder in ["src", "tests"] {
        read_tests(root, &root.join(folder), &known, &mut tests);
    }
    assert!(tests.len() > 1000, "{} tests", tests.len());
    tests
}

fn read_tests(root: &Path, folder: &Path, known: &[String], tests: &mut Vec<Test>) {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read_tests(root, &path, known, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = path.strip_prefix(root).expect("it is below").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a source");
            tests.extend(tests_in(&file, &text, known));
        }
    }
}

/// The tests in a source: each function after a `#[test]`, with its doc comment.
fn tests_in(file: &str, text: &str, known: &[String]) -> Vec<Test> {
    let (mut comment, mut is_test, mut tests) = (String::new(), false, Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            comment = comment + words + " ";
        } else if line == "#[test]" {
            is_test = true;
        } else if let (true, Some((_, rest))) = (is_test, line.split_once("fn ")) {
            let name = rest.split(['(', '<']).next().unwrap_or_default().to_owned();
            tests.push(Test { file: file.to_owned(), name, ids: ids_in(&comment, known) });
            (comment, is_test) = (String::new(), false);
        } else if !is_test && !line.starts_with("#[") {
            comment.clear();
        }
    }
    tests
}

/// The ids in a comment; a range includes those of the rows in between: `HK-003 to HK-007`.
fn ids_in(comment: &str, known: &[String]) -> BTreeSet<String> {
    let words = comment.split(|c: char| !c.is_alphanumeric() && c != '-');
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let mut ids: BTreeSet<_> =
        words.iter().filter(|word| is_id(word)).map(|&id| id.to_owned()).collect();
    for range in words.windows(3).filter(|range| range[1] == "to") {
        let [from, to] = [range[0], range[2]];
        if is_id(from) && is_id(to) {
            assert_eq!((from.len(), from.get(..2)), (to.len(), to.get(..2)), "{comment}");
            let within = known.iter().map(String::as_str).filter(|id| {
                id.len() == from.len() && id.get(..2) == from.get(..2) && (from..=to).contains(id)
            });
            ids.extend(within.map(str::to_owned));
        }
    }
    ids
}

/// Checks the functions above with a source written for the purpose.
#[test]
fn ids_are_read_from_doc_comments_alone() {
    let known: Vec<_> = ["AB-001", "AB-002", "AB-003", "AC-002"].map(str::to_owned).into();
    // Written so that this file does not contain such comments and tests itself.
    let source = "
        DOC F1, AB-002: says so.
        DOC And more, as F12 does.
        TEST
        #[cfg(unix)]
        fn first() {}

        DOC AB-001 to AB-003: all of them.
        fn helper() {}

        DOC AB-001 to AB-003: all of them.
        TEST
        fn second() {
            // F3 is not meant here.
        }

        TEST
        fn third() {}
    "
    .replace("DOC", "///")
    .replace("TEST", "#[test]");
    let found = tests_in("x.rs", &source, &known);
    let found: Vec<_> = found
        .iter()
        .map(|test| (test.name.as_str(), test.ids.iter().map(String::as_str).collect::<Vec<_>>()))
        .collect();
    let expected = [
        ("first", vec!["AB-002", "F1", "F12"]),
        ("second", vec!["AB-001", "AB-002", "AB-003"]),
        ("third", vec![]),
    ];
    assert_eq!(found, expected);
    assert!(["SO-001", "F1", "G12", "M131"].into_iter().all(is_id));
    assert!(
        ["SO-01", "so-001", "F", "W1", "M1a", "id", "F1-2"].into_iter().all(|word| !is_id(word))
    );
}
