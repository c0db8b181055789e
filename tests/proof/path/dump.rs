//! The record of callgrind. It is asked for names without abbreviations, so a function is `fl=FILE`, `fn=NAME`, and
//! lines that begin with the number of a line that was executed. `fi=` and `fe=` change the file in between.

use std::collections::BTreeSet;

use crate::sources::{Function, Sources};

/// The functions of the library that were executed.
pub(crate) fn executed<'a>(dump: &str, sources: &'a Sources) -> BTreeSet<&'a Function> {
    let mut functions = BTreeSet::new();
    let (mut file, mut place, mut name) = ("", "", None);
    for line in dump.lines() {
        if let Some(path) = line.strip_prefix("fl=") {
            (file, place) = (path, path);
        } else if let Some(symbol) = line.strip_prefix("fn=") {
            (place, name) = (file, last_part(symbol));
        } else if let Some(path) = line.strip_prefix("fi=").or_else(|| line.strip_prefix("fe=")) {
            place = path;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            let (Some(name), Some((_, inside))) = (name, place.rsplit_once("/src/")) else {
                continue;
            };
            let number = line.split(' ').next().and_then(|number| number.parse().ok());
            functions.extend(number.and_then(|number| sources.at(inside, name, number)));
        }
    }
    functions
}

/// The name of the function alone, and `None` for a closure. Compilers have written symbols in two ways, as
/// `punctual::pool::admission::<impl punctual::pool::Pool>::offer`, and as `<punctual::pool::Pool>::offer::<T>`.
fn last_part(symbol: &str) -> Option<&str> {
    // callgrind adds `'2` to a function that calls itself.
    let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let numbered = symbol.rsplit_once('\'').filter(|(_, number)| is_number(number));
    let mut symbol = numbered.map_or(symbol, |(function, _)| function);
    while symbol.ends_with('>') {
        let mut depth = 0_usize;
        let opening = symbol.char_indices().rev().find(|(_, letter)| {
            depth = match letter {
                '>' => depth + 1,
                '<' => depth.saturating_sub(1),
                _ => depth,
            };
            depth == 0
        });
        symbol = symbol[..opening?.0].trim_end_matches("::");
    }
    let last = symbol.rsplit("::").next()?;
    (!last.contains(['{', '}'])).then_some(last)
}
