//! The page that lists the examples, `examples/README.md`: every example is on it, each with the command that starts it
//! and the test that does so, and none is longer than the page says.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

use crate::root;

/// A file has fewer lines than this.
const LIMIT: usize = 150;
/// A program that has more lines than this is marked as larger.
const SMALL: usize = 600;
/// The mark of a larger program; its lines and its files follow.
const LARGER: &str = "A larger program: ";

/// A row of the page.
struct Row {
    source: PathBuf,
    command: String,
    shows: String,
    test: PathBuf,
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows by the names of the examples.
fn rows() -> BTreeMap<String, Row> {
    let folder = root().join("examples");
    let page = read(&folder.join("README.md"));
    let cells = page.lines().filter_map(|line| line.strip_prefix("| [`")?.strip_suffix(" |"));
    let rows = cells.map(|row| {
        // A pipe in a command is written with a backslash before it.
        let row = row.replace("\\|", "\u{0}");
        let cells: Vec<_> = row.split(" | ").map(|cell| cell.replace('\u{0}', "|")).collect();
        let [example, command, shows, test] = &cells[..] else { panic!("four columns: {row}") };
        let (name, source) = example.split_once("`](").expect("a link to the source");
        let test = test.split_once("](").expect("a link to the test").1;
        let path = |link: &str| folder.join(link.trim_end_matches(')'));
        let (command, shows) = (command.trim_matches('`').to_owned(), shows.clone());
        (name.to_owned(), Row { source: path(source), command, shows, test: path(test) })
    });
    rows.collect()
}

/// The first file of every example, by the example's name.
fn examples() -> BTreeMap<String, PathBuf> {
    let folders = ["examples", "crates/punctual-jobs/examples"].map(|folder| root().join(folder));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let first = paths.filter_map(|path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        // A package has its sources in a folder of their own.
        let main = ["main.rs", "src/main.rs"].map(|main| path.join(main));
        let file = if path.is_dir() { main.into_iter().find(|main| main.is_file())? } else { path };
        let is_program = file.is_file() && file.extension()? == "rs";
        is_program.then_some((name, file))
    });
    first.collect()
}

/// The files of the example whose first one this is.
fn files(first: &Path) -> Vec<PathBuf> {
    if first.file_name().is_some_and(|name| name != "main.rs") {
        return vec![first.to_owned()];
    }
    let folder = fs::read_dir(first.parent().expect("a folder")).expect("the files");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Returns `false` in the published package, which has no tests to compare with, and not the other crates.
fn is_complete() -> bool {
    root().join("ci").is_dir()
}

#[test]
fn the_page_lists_the_examples_that_there_are() {
    if !is_complete() {
        return;
    }
    let (rows, examples) = (rows(), examples());
    assert!(rows.keys().eq(examples.keys()), "{:?} {:?}", rows.keys(), examples.keys());
    assert!(rows.len() > 12, "{} examples", rows.len());
    for (name, row) in rows {
        let links =
            [&row.source, &examples[&name]].map(|path| path.canonicalize().expect("a file"));
        assert_eq!(links[0], links[1], "{name}");
    }
}

/// The command names the example and the features that it needs; and the example's own first lines have a command, too.
#[test]
fn each_example_says_how_it_is_started() {
    if !is_complete() {
        return;
    }
    let manifest: Table = read(&root().join("Cargo.toml")).parse().expect("a manifest");
    let targets = manifest.get("example").and_then(Value::as_array).expect("examples");
    for (name, row) in rows() {
        let target = targets.iter().find(|target| target["name"].as_str() == Some(&name));
        let features = target.and_then(|target| target.get("required-features")?.as_array());
        for feature in features.into_iter().flatten().map(|feature| feature.as_str()) {
            let named = row.command.split_once("--features ").map(|(_, rest)| rest);
            let named = named.and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            let is_named = named.split(',').any(|one| Some(one) == feature);
            assert!(is_named, "{name}: {}", row.command);
        }
        let is_package = row.source.ends_with("src/main.rs");
        let manifest = format!("examples/{name}/Cargo.toml");
        // A package of the workspace, or one that is a workspace of its own.
        let is_alone = is_package && read(&root().join(&manifest)).contains("\n[workspace]\n");
        let start = match (is_package, is_alone) {
            (true, true) => format!("--manifest-path {manifest}"),
            (true, false) => format!("-p {name}"),
            (false, _) => format!("--example {name}"),
        };
        let is_script = root().join(&row.command).is_file();
        assert!(is_script || row.command.contains(&start), "{name}: {}", row.command);
        let text = read(&row.source);
        let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        assert!(head.contains("cargo run ") && head.contains(&start), "{name}: its first lines");
    }
}

#[test]
fn a_test_starts_each_example() {
    if !is_complete() {
        return;
    }
    for (name, row) in rows() {
        let test = read(&row.test);
        assert!(test.contains("#[test]"), "{name}: {} has no test", row.test.display());
        let (quoted, script) = (format!("\"{name}\""), row.command.rsplit('/').next());
        let is_used = test.contains(&format!("use {name}::"));
        let is_started =
            is_used || test.contains(&quoted) || script.is_some_and(|it| test.contains(it));
        assert!(is_started, "{name}: {} does not start it", row.test.display());
    }
}

#[test]
fn no_example_is_longer_than_the_page_says() {
    if !is_complete() {
        return;
    }
    let common = root().join("examples/common/mod.rs");
    assert!(read(&common).lines().count() < LIMIT, "{}", common.display());
    for (name, row) in rows() {
        let files = files(&row.source);
        let mut all = 0;
        for file in &files {
            let lines = read(file).lines().count();
            assert!(lines < LIMIT, "{} has {lines} lines", file.display());
            all += lines;
        }
        let mark = row.shows.split_once(LARGER);
        assert_eq!(mark.is_some(), all > SMALL, "{name} has {all} lines in {} files", files.len());
        let Some((_, size)) = mark else { continue };
        // "2,100 lines in 23 files": the files are counted, and the lines are rounded.
        let (said, rest) = size.split_once(" lines in ").expect("its lines");
        let said: usize = said.replace(',', "").parse().expect("a number of lines");
        assert!(all.abs_diff(said) * 10 <= said, "{name} has {all} lines");
        assert_eq!(rest, format!("{} files", files.len()), "{name}");
    }
}
