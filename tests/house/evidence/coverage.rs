//! The page on the lines that no test runs names functions. The file that each is in now is added,
//! because `ci/coverage.sh` compares by file and function.

use super::functions::{Function, find};

/// The place of the file in a row.
pub(crate) const FILE: &str = "{file}";

/// A row of the page: a function, how many of its lines no test runs at most, and why.
#[derive(Debug)]
struct Row<'a> {
    /// The file in backticks, or [`FILE`] in a new row.
    file: &'a str,
    function: &'a str,
    most: &'a str,
    why: &'a str,
}

/// The row that a line is, if it is one.
fn row(line: &str) -> Option<Row<'_>> {
    let cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::trim);
    let [file, function, most, why] = cells.collect::<Vec<_>>()[..] else { return None };
    let is_row = file == FILE || file.starts_with("`src/");
    is_row.then(|| Row { file, function: function.trim_matches('`'), most, why })
}

/// The line with the file in its place. Panics if the function cannot be found: of several that have the name, the row says
/// which is meant, by its file.
pub(crate) fn filled(line: &str, functions: &[Function]) -> Option<String> {
    let Row { file, function, .. } = row(line)?;
    let found = find(functions, function, None)
        .or_else(|_| find(functions, function, Some(file.trim_matches('`'))));
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    Some(line.replacen(file, &format!("`{}`", found.file), 1))
}

/// Each function is on the page once, with a number of lines and a reason.
#[test]
fn each_line_that_is_not_run_has_its_reason() {
    let page = super::page("coverage.md");
    let rows: Vec<_> = page.text.lines().filter_map(row).collect();
    assert!(rows.len() > 5, "{} rows", rows.len());
    for (index, row) in rows.iter().enumerate() {
        assert!(row.most.parse::<u32>().is_ok_and(|most| most > 0), "{row:?}");
        assert!(!row.why.is_empty(), "{row:?}");
        let is_same = |other: &&Row<'_>| (other.file, other.function) == (row.file, row.function);
        assert_eq!(rows[..index].iter().find(is_same).map(|row| row.function), None);
    }
}
