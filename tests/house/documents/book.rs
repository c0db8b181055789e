//! The documents are a book (`docs/decisions/documents.md`). What mdBook does not
//! check is checked here: that the table of contents is complete, that each link and picture leads
//! somewhere, and that the code of each page is run.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{documents, is_complete, links, page, root};

/// The lines of the table of contents that name a page: its title, and its path below `docs`.
fn contents(summary: &str) -> Vec<(&str, &str)> {
    let lines = summary.lines().map(|line| line.trim_start().trim_start_matches("- "));
    let named =
        lines.filter_map(|line| line.strip_prefix('[')?.strip_suffix(')')?.split_once("]("));
    named.collect()
}

/// The pages of the book: the documents below `docs`, without the table of contents.
fn pages() -> BTreeMap<String, String> {
    let below = |path: &Path| {
        let path = path.strip_prefix(root().join("docs")).ok()?;
        Some(path.to_string_lossy().into_owned())
    };
    let pages = documents().into_iter().filter_map(|(path, text)| Some((below(&path)?, text)));
    pages.filter(|(path, _)| path != "SUMMARY.md").collect()
}

/// The table of contents names each page once, and no page that does not exist.
#[test]
fn the_table_of_contents_names_each_page_once() {
    let summary = page("docs/SUMMARY.md");
    let mut named = BTreeSet::new();
    for (title, path) in contents(&summary) {
        assert!(!title.is_empty(), "{path} has no title");
        assert!(named.insert(path.to_owned()), "{path} is named twice");
    }
    let pages: BTreeSet<_> = pages().into_keys().collect();
    assert!(pages.len() > 60, "{} pages", pages.len());
    assert_eq!(named, pages);
}

/// Each page is found by reading on: another page than the table of contents leads to it.
#[test]
fn each_page_is_linked() {
    let pages = pages();
    let mut linked = BTreeSet::new();
    for (path, text) in documents() {
        let folder = path.parent().expect("a document is in a folder");
        let targets =
            links::links(&text).into_iter().map(|link| links::normal(&folder.join(link.file)));
        linked.extend(targets.filter(|target| *target != path && !path.ends_with("SUMMARY.md")));
    }
    let lost: Vec<_> =
        pages.keys().filter(|page| !linked.contains(&root().join("docs").join(page))).collect();
    assert!(lost.is_empty(), "no page leads to {lost:?}");
}

/// The documents stay short enough to be kept true.
#[test]
fn the_documents_have_a_limit() {
    let mut files = Vec::new();
    super::visit(&root().join("docs"), &mut files);
    let sizes = files.iter().map(|file| std::fs::metadata(file).expect("a file").len());
    let bytes: u64 = sizes.sum();
    assert!(bytes <= 400_000, "{bytes} bytes: say each thing once, and leave history to git");
}

/// The search of the site finds the pages for users, and none of the contributor guide.
#[test]
fn the_search_is_for_users() {
    let summary = page("docs/SUMMARY.md");
    let (users, contributors) = summary.split_once("# Contributor guide").expect("two parts");
    let book: toml::Table = page("docs/book/book.toml").parse().expect("settings");
    let left_out = book["output"]["html"]["search"]["chapter"].as_table().expect("a table");
    let is_left_out = |path: &str| left_out.keys().any(|key| Path::new(path).starts_with(key));
    let is_disabled = |settings: &toml::Value| settings["enable"].as_bool() == Some(false);
    assert!(left_out.values().all(is_disabled), "{left_out:?}");
    for (title, path) in contents(users) {
        assert!(!is_left_out(path), "{title} is for users");
    }
    for (title, path) in contents(contributors) {
        assert!(is_left_out(path), "{title} is not for users");
    }
}

/// The decisions stand in the table of contents as in their own list, with the titles of their pages.
#[test]
fn the_decisions_are_listed_in_their_order() {
    let (summary, list) = (page("docs/SUMMARY.md"), page("docs/decisions/README.md"));
    let pages = pages();
    let rows = list.lines().filter_map(|line| line.strip_prefix("| [")?.split_once(')'));
    let listed = rows.map(|(link, _)| {
        let (title, path) = link.split_once("](").expect("a link");
        (title.to_owned(), format!("decisions/{path}"))
    });
    let listed: Vec<_> = listed.collect();
    for (title, path) in &listed {
        assert!(pages[path].starts_with(&format!("# {title}\n")), "{path} has another title");
    }
    let decisions = contents(&summary).into_iter().filter(|(_, path)| {
        path.strip_prefix("decisions/").is_some_and(|name| name != "README.md")
    });
    let decisions: Vec<_> =
        decisions.map(|(title, path)| (title.to_owned(), path.to_owned())).collect();
    assert_eq!(decisions, listed);
}

/// Each file that a decision names is there: decisions say what is true today. Of a companion's, its own files come
/// first.
#[test]
fn each_file_that_a_decision_names_is_there() {
    if !is_complete() {
        return;
    }
    let (mut missing, mut files) = (Vec::new(), 0);
    for (path, text) in documents() {
        let Some(of_crate) = folder_of_decisions(&path) else { continue };
        for line in links::prose(&text) {
            for code in line.split('`').skip(1).step_by(2).filter(|code| is_path(code)) {
                files += 1;
                if !of_crate.join(code).exists() && !root().join(code).exists() {
                    missing.push(format!("{}: {code}", path.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(files > 30, "{files} files");
}

/// The folder of the crate that a page of decisions is about, if the page is one.
fn folder_of_decisions(page: &Path) -> Option<&Path> {
    let folder = page.parent()?;
    let is_one = folder.ends_with("docs/decisions") || folder.ends_with("punctual-jobs/docs");
    is_one.then(|| folder.parent().expect("it is below a crate"))
}

fn is_path(code: &str) -> bool {
    let extensions = [".rs", ".sh", ".toml", ".txt", ".md", ".json", ".mjs"];
    code.contains('/')
        && !code.contains([' ', '*'])
        && extensions.iter().any(|it| code.ends_with(it))
}

/// Each link leads to a file, and if it names a heading the file has that heading. A page of the book
/// links to no folder, since a site need not show one.
#[test]
fn each_link_leads_to_a_file_and_to_its_heading() {
    if !is_complete() {
        return;
    }
    let mut anchors = BTreeMap::new();
    for (path, text) in documents() {
        anchors.insert(path, links::anchors(&text));
    }
    let (mut files, mut headings) = (0, 0);
    for (path, text) in documents() {
        let folder = path.parent().expect("a document is in a folder");
        for link in links::links(&text) {
            let target = match link.file {
                "" => path.clone(),
                file => links::normal(&folder.join(file)),
            };
            let place = format!("{}: {}", path.display(), link.file);
            assert!(target.exists(), "{place}");
            let is_page = path.starts_with(root().join("docs"));
            assert!(!is_page || target.is_file(), "{place} is a folder");
            files += 1;
            let Some(anchor) = link.anchor else { continue };
            let there = anchors.get(&target).unwrap_or_else(|| panic!("{place} has no headings"));
            assert!(there.iter().any(|heading| heading == anchor), "{place} has no #{anchor}");
            headings += 1;
        }
    }
    assert!(files > 450 && headings > 40, "{files} links, {headings} of them to headings");
}

/// The Rust code of each page is compiled and run as a documentation test. A decision may show what was
/// not built.
#[test]
fn the_code_of_each_page_is_run() {
    if !is_complete() {
        return;
    }
    let sources = page("tests/behaviour/pages.rs") + &page("crates/punctual-jobs/src/lib.rs");
    let mut run = 0;
    for (path, text) in pages() {
        let mut fences = text.lines().filter(|line| line.starts_with("```rust"));
        if path.starts_with("decisions/") || fences.clone().next().is_none() {
            continue;
        }
        let included = format!("docs/{path}\"");
        assert!(sources.contains(&included), "{path} is included nowhere");
        assert!(fences.all(|fence| !fence.contains("ignore")), "{path} has code that is not run");
        run += 1;
    }
    assert!(run > 10, "{run} pages with code");
}

/// The page on precision quotes no figure that the page on performance does not have.
#[test]
fn the_figures_on_precision_are_measured() {
    let measured: BTreeSet<_> = figures(&page("docs/performance.md")).into_iter().collect();
    let quoted = figures(&page("docs/book/precision.md"));
    assert!(quoted.len() > 10, "{quoted:?}");
    for figure in quoted {
        assert!(measured.contains(&figure), "{figure} is not in docs/performance.md");
    }
}

/// The times that a page names outside of its code: a number and a unit each.
fn figures(page: &str) -> Vec<String> {
    let is_beside = |character: char| !character.is_alphanumeric();
    let words = links::prose(page).flat_map(str::split_whitespace);
    let words: Vec<_> = words.map(|word| word.trim_matches(is_beside)).collect();
    let pairs = words.windows(2).filter(|pair| {
        pair[0].starts_with(|first: char| first.is_ascii_digit())
            && ["ns", "µs", "ms", "s"].contains(&pair[1])
    });
    pairs.map(|pair| pair.join(" ")).collect()
}

/// Each picture has a description, for readers who do not see it.
#[test]
fn each_picture_is_described() {
    let mut pictures = 0;
    for (path, text) in pages() {
        for line in links::prose(&text).filter(|line| line.contains("![")) {
            assert!(!line.contains("![]"), "{path}: {line}");
            pictures += 1;
        }
    }
    assert!(pictures > 8, "{pictures} pictures");
}
