//! The types and traits of other crates that are in the public interface of a published crate are those that
//! `docs/adopting.md` lists, no more and no fewer. `ci/interface.sh` runs this, since it reads the data that rustdoc
//! writes about an interface, in a format that is not stable: it needs a flag of the compiler, and one version of the
//! format. What is private is not in these data, and what rustdoc implements for every type is passed over.

#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

/// The crates whose types every program has, and the one that is released together with the companions.
const ALWAYS: [&str; 4] = ["alloc", "core", "punctual", "std"];

/// The published crates, by the names of their data.
const CRATES: [(&str, &str); 3] = [
    ("punctual", "punctual"),
    ("punctual-thread-pool", "punctual_thread_pool"),
    ("punctual-jobs", "punctual_jobs"),
];

/// A type or a trait of another crate, where it is defined; and the public items that name it.
type Named = BTreeMap<String, BTreeSet<String>>;

/// Adds each reference to an item of another crate that is within the value.
fn collect(value: &Value, paths: &Value, item: &str, named: &mut Named) {
    match value {
        Value::Object(fields) => {
            // A path to a type or to a trait has its arguments beside its id.
            if let (Some(id), true) = (fields.get("id"), fields.contains_key("args")) {
                let meant = &paths[id.to_string()];
                if meant["crate_id"].as_u64().is_some_and(|number| number != 0) {
                    named.entry(path(meant)).or_default().insert(item.to_owned());
                }
            }
            fields.values().for_each(|field| collect(field, paths, item, named));
        }
        Value::Array(values) => {
            values.iter().for_each(|value| collect(value, paths, item, named));
        }
        _ => {}
    }
}

fn path(meant: &Value) -> String {
    let parts = meant["path"].as_array().expect("a path").iter();
    parts.map(|part| part.as_str().expect("a name")).collect::<Vec<_>>().join("::")
}

/// The items of other crates than those that the public interface names.
fn of_other_crates(data: &Value) -> Named {
    let (paths, mut named) = (&data["paths"], Named::new());
    for item in data["index"].as_object().expect("items").values() {
        let inner = &item["inner"];
        let block = &inner["impl"];
        let by_rustdoc = block["is_synthetic"] == true || !block["blanket_impl"].is_null();
        if item["crate_id"] != 0 || by_rustdoc {
            continue;
        }
        let place = item["span"]["filename"].as_str().unwrap_or("?");
        let name = format!("{} in {place}", item["name"].as_str().unwrap_or("an implementation"));
        collect(inner, paths, &name, &mut named);
        // An item of another crate that we export under a name of our own.
        let exported = &paths[inner["use"]["id"].to_string()];
        if exported["crate_id"].as_u64().is_some_and(|number| number != 0) {
            named.entry(path(exported)).or_default().insert(name);
        }
    }
    named.retain(|path, _| !ALWAYS.contains(&path.split("::").next().expect("a crate")));
    named
}

/// The rows of the page: a crate, and a type that its interface names.
fn listed(page: &str) -> BTreeSet<(String, String)> {
    let section = page.split("## Types of other crates").nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | `"));
    let cells = |(package, rest): (&str, &str)| {
        (package.to_owned(), rest.split('`').next().expect("a type").to_owned())
    };
    rows.map(cells).collect()
}

#[test]
fn the_page_lists_every_type_of_another_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/adopting.md")).expect("the page");
    let mut listed = listed(&page);
    let mut unlisted = Vec::new();
    for (package, name) in CRATES {
        let file = root.join("target/interface").join(format!("{name}.json"));
        let text = fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}: run ci/interface.sh", file.display()));
        let data: Value = serde_json::from_str(&text).expect("what rustdoc writes");
        assert!(data["index"].as_object().is_some_and(|items| items.len() > 20), "{name}");
        for (path, items) in of_other_crates(&data) {
            if !listed.remove(&(package.to_owned(), path.clone())) {
                unlisted.push(format!("{package}: {path}, by {items:?}"));
            }
        }
    }
    assert!(unlisted.is_empty(), "not on docs/adopting.md: {unlisted:#?}");
    assert!(listed.is_empty(), "listed, and in no public interface: {listed:?}");
}
