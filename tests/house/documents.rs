//! The documents tell the truth about the crate. What its tests hold is in tables that are made:
//! `tests/house/evidence.rs`.

mod book;
mod links;
mod names;
mod path;
mod pictures;
mod registries;
mod svg;
mod words;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::root;

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

/// Each item of the API guidelines that is not kept is one of them, in their order, with a reason.
#[test]
fn every_guideline_that_is_not_kept_has_its_reason() {
    let page = page("docs/decisions/interface.md");
    let mut items = Vec::new();
    for row in rows(&page, "item").filter(|cells| !cells[0].starts_with('-')) {
        let [item, answer, reason] = row[..] else { panic!("three columns: {row:?}") };
        assert!(["In part", "Not"].contains(&answer), "{item}: {answer}");
        assert!(!reason.is_empty(), "{item} has no reason");
        items.push(GUIDELINES.iter().position(|it| *it == item).expect("it is on the list"));
    }
    assert!(items.is_sorted() && items.len() > 10, "{items:?}");
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect("the page")
}

/// The cells of each row of the page's tables, without the header rows, whose first column is
/// `first`.
fn rows<'a>(page: &'a str, first: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(move |cells| cells[0] != first)
}

/// Each name in the second column of the migration guide's tables is declared by the crate.
#[test]
fn the_migration_guide_names_what_there_is() {
    let root = root();
    let page = fs::read_to_string(root.join("docs/coming-from-java.md")).expect("the page");
    let mut sources = String::new();
    read_all(&root.join("src"), &mut sources);
    let mut names = 0;
    let types = page.split_once("## ScheduledThreadPoolExecutor").expect("the first type").1;
    for row in types.lines().filter(|line| line.starts_with("| `")) {
        let here = row.split(" | ").nth(1).expect("a second column");
        // The text between backticks, up to its arguments: `TaskBuilder::timeout`, `cancel()`.
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
    assert!(names > 40, "{names} names");
}

/// Returns `true` if the sources declare something public with this name.
fn is_declared(sources: &str, name: &str) -> bool {
    let kinds =
        ["pub fn ", "pub async fn ", "pub struct ", "pub enum ", "pub trait ", "    fn ", "    "];
    kinds.iter().any(|kind| {
        let ends = ["(", "<", " ", ";", ",", "\n"];
        ends.iter().any(|end| sources.contains(&format!("{kind}{name}{end}")))
    })
}

fn read_all(folder: &Path, text: &mut String) {
    let mut files = Vec::new();
    visit(folder, &mut files);
    for path in files.iter().filter(|path| path.extension().is_some_and(|it| it == "rs")) {
        text.push_str(&fs::read_to_string(path).expect("a source"));
    }
}

/// No page contains names of tests, so a renamed test needs no second edit. The
/// page on the atomics is an exception, because it names the test that fails for each;
/// `tests/house/locks.rs` compares that page with the sources.
#[test]
fn no_page_quotes_a_test() {
    let names = names_of_tests();
    for (path, text) in documents() {
        let is_compared = path.ends_with("docs/atomics.md");
        if !is_compared && !text.starts_with("<!-- Generated") {
            let quoted = text.split('`').find(|&word| names.contains(word));
            assert_eq!(quoted, None, "{}", path.display());
        }
    }
}

/// The first change that CONTRIBUTING.md walks through is in the sources as it is shown there.
#[test]
fn the_first_change_is_what_is_shown() {
    let page = page("CONTRIBUTING.md");
    let mut changes = 0;
    for change in page.split("```diff\n").skip(1) {
        let change = change.split("\n```\n").next().expect("the end of the block");
        let (head, lines) = change.split_once("\n+++ b/").expect("the name of the file");
        let (file, lines) = lines.split_once('\n').expect("the lines");
        assert_eq!(head, format!("--- a/{file}"));
        let added: Vec<_> = lines.lines().map(|line| &line[1..]).collect();
        assert!(lines.lines().all(|line| line.starts_with('+')), "{file}: only added lines");
        let source = fs::read_to_string(root().join(file)).expect("the file that is changed");
        assert!(source.contains(&added.join("\n")), "{file} is not as shown");
        changes += 1;
    }
    assert_eq!(changes, 2);
}

/// The tests that the scripts skip, and the places where they allow leaks, exist under those names.
#[test]
fn the_scripts_name_tests_that_exist() {
    if !is_complete() {
        return;
    }
    let names = names_of_tests();
    let sources = sources();
    let suppressions = page("ci/lsan.supp");
    for place in suppressions.lines().filter_map(|line| line.strip_prefix("leak:")) {
        let (module, name) = place.rsplit_once("::").expect("a path");
        let is_type = sources.contains(&format!("struct {name}"));
        assert!(is_type || names.contains(name), "{place}");
        let file = module.replace("::", "/");
        let file = file.rsplit_once("/tests").map_or(file.as_str(), |(file, _)| file);
        let is_file = |path: &str| path.ends_with(&format!("/{file}.rs"));
        assert!(all_files().iter().any(|path| is_file(path)), "{place}: no such module");
    }
    for script in ["repeat.sh", "sanitize.sh"] {
        let text = page(&format!("ci/{script}"));
        for skipped in text.split("--skip ").skip(1) {
            let name = skipped.split([' ', ')', '\n']).next().unwrap_or_default();
            let is_module =
                ["processes::", "unheard::", "cron::", "example_programs"].contains(&name);
            let is_test = names.iter().any(|test| test.contains(name));
            assert!(is_module || is_test, "{script} skips {name}");
        }
    }
}

/// Returns `false` in the published package, which has neither the scripts nor the comparison with
/// the peers.
fn is_complete() -> bool {
    root().join("ci").is_dir()
}

/// The names of all tests.
fn names_of_tests() -> BTreeSet<String> {
    let sources = sources();
    let after = sources.split("#[test]\n").skip(1).filter_map(|rest| rest.split_once("fn "));
    let names = after.filter_map(|(_, rest)| rest.split(['(', '<']).next().map(str::to_owned));
    let names: BTreeSet<_> = names.collect();
    assert!(names.len() > 1000, "{} tests", names.len());
    names
}

/// The folders with sources and tests of the core; of the examples that are packages, those with their tests.
fn folders() -> Vec<PathBuf> {
    let folders = [
        "src",
        "tests/behaviour",
        "tests/house",
        "tests/proof/model",
        "tests/proof/simulator",
        "tests/proof/soak",
        "examples/jobs/tests",
        "examples/top/tests",
    ];
    folders.map(|folder| root().join(folder)).into_iter().filter(|folder| folder.is_dir()).collect()
}

/// The text of all sources and tests.
fn sources() -> String {
    let mut text = String::new();
    folders().iter().for_each(|folder| read_all(folder, &mut text));
    text
}

/// The paths of all sources and tests.
fn all_files() -> Vec<String> {
    let mut files = Vec::new();
    folders().iter().for_each(|folder| visit(folder, &mut files));
    files.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// The documents, also those of a companion.
fn documents() -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for folder in ["docs", "crates/punctual-jobs/docs"] {
        visit(&root().join(folder), &mut files);
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a document");
        (path, text)
    };
    files.into_iter().map(read).collect()
}

fn visit(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() { visit(&path, files) } else { files.push(path) }
    }
}

/// The cookbook's first page leads to each recipe, and to no other heading.
#[test]
fn the_cookbook_lists_each_recipe() {
    let (mut recipes, mut files) = (BTreeSet::new(), Vec::new());
    visit(&root().join("docs/book/cookbook"), &mut files);
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a page");
        // The first heading is that of the page.
        let headings = links::anchors(&text).into_iter().skip(1);
        let before = recipes.len();
        recipes.extend(headings.map(|heading| format!("cookbook/{name}#{heading}")));
        let watched = text.matches("\n**Watch for** ").count();
        assert_eq!(recipes.len() - before, watched, "{name}: each recipe says what to watch for");
    }
    let index = page("docs/book/cookbook.md");
    let links = links::links(&index);
    let listed = links.iter().filter_map(|link| Some(format!("{}#{}", link.file, link.anchor?)));
    assert_eq!(listed.collect::<BTreeSet<_>>(), recipes);
    assert!(recipes.len() > 20, "{} recipes", recipes.len());
}

/// The crate's front page says what each feature of the manifest adds.
#[test]
fn the_front_page_lists_each_feature() {
    let manifest: toml::Table = page("Cargo.toml").parse().expect("a manifest");
    let features = manifest["features"].as_table().expect("there are features");
    let is_default = |name: &String| {
        let default = features["default"].as_array().expect("a list");
        default.iter().any(|feature| feature.as_str() == Some(name))
    };
    let front = page("src/lib.rs");
    let table = front.split_once("//! # Features").expect("a section").1;
    let table = table.split("//! # ").next().expect("a part");
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | `")?.split_once("` "));
    let listed: BTreeSet<_> =
        rows.map(|(name, rest)| (name.to_owned(), rest.starts_with("(default)"))).collect();
    let all = features.keys().filter(|name| *name != "default");
    assert_eq!(listed, all.map(|name| (name.clone(), is_default(name))).collect());
}

/// A feature that a page or a message advises is one of ours: that of another crate is one of its version, which a
/// user has to match by hand.
#[test]
fn a_feature_that_is_advised_is_ours() {
    let crates = ["", "crates/punctual-jobs/", "crates/punctual-thread-pool/"];
    let manifests = crates.map(|folder| page(&format!("{folder}Cargo.toml")));
    let mut sources = String::new();
    read_all(&root().join("src"), &mut sources);
    let pages =
        documents().into_iter().filter(|(path, _)| !path.ends_with("docs/evidence/missed.md"));
    let texts = pages.chain([(root().join("src"), sources)]);
    let mut advised = 0;
    for (path, text) in texts {
        for rest in text.split("feature `").skip(1) {
            let name = rest.split('`').next().expect("a name");
            let is_ours = manifests.iter().any(|ours| ours.contains(&format!("\n{name} = [")));
            // Of `ctrlc`, which a program of the book calls by itself.
            let is_the_programs = name == "termination";
            assert!(is_ours || is_the_programs, "{name} in {}", path.display());
            advised += 1;
        }
    }
    assert!(advised > 10, "{advised} features");
}
