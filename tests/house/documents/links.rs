//! The links and headings of a page of Markdown, as far as the documents use it.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

/// The target of a link: a file, a heading in it, or a heading of its own page.
pub(crate) struct Link<'a> {
    pub(crate) file: &'a str,
    pub(crate) anchor: Option<&'a str>,
}

/// The relative links and pictures of a page, in the order in which they stand. What is code has none.
pub(crate) fn links(page: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for line in prose(page) {
        for text in line.split('`').step_by(2) {
            let ends = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            let attributes = ["src=\"", "srcset=\"", "href=\""];
            let quoted = attributes.iter().flat_map(|name| text.split(*name).skip(1));
            let quoted = quoted.filter_map(|rest| rest.split('"').next());
            links.extend(ends.chain(quoted).filter(|target| !target.contains(':')).map(link));
        }
    }
    links
}

fn link(target: &str) -> Link<'_> {
    match target.split_once('#') {
        Some((file, anchor)) => Link { file, anchor: Some(anchor) },
        None => Link { file: target, anchor: None },
    }
}

/// The lines of a page outside of its blocks of code.
pub(crate) fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors of the headings of a page, as GitHub and mdBook make them.
pub(crate) fn anchors(page: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let headings = prose(page).filter_map(|line| {
        let text = line.trim_start_matches('#');
        (text.len() < line.len()).then(|| text.strip_prefix(' ')).flatten()
    });
    let anchors = headings.map(|heading| {
        let anchor = anchor(&shown(heading));
        let count = seen.entry(anchor.clone()).or_default();
        *count += 1;
        if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
    });
    anchors.collect()
}

/// The text of a heading without the targets of its links.
fn shown(heading: &str) -> String {
    let mut parts = heading.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    text
}

fn anchor(heading: &str) -> String {
    let kept = |character: char| match character {
        '_' | '-' => Some(character),
        _ if character.is_alphanumeric() => Some(character),
        _ if character.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.trim().to_lowercase().chars().filter_map(kept).collect()
}

/// The path without `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            _ => normal.push(part),
        }
    }
    normal
}

#[test]
fn links_and_anchors_are_found() {
    let page = "# A page\n[a](b.md#c) and ![`x`](d.svg), `[no](e.md)`, [`src`](src/lib.rs)\n\
                ```rust\nlet f = [g](h.md);\n```\n## What's *the* `x_y`: [1](2.md)?\n## A page\n<https://a.b> [i](https://j.k)";
    let mut found: Vec<_> = links(page).iter().map(|link| (link.file, link.anchor)).collect();
    found.sort_unstable();
    assert_eq!(found, [("2.md", None), ("b.md", Some("c")), ("d.svg", None), ("src/lib.rs", None)]);
    assert_eq!(anchors(page), ["a-page", "whats-the-x_y-1", "a-page-1"]);
    assert_eq!(normal(Path::new("/a/b/../c/./d")), Path::new("/a/c/d"));
}
