//! The manifests that build the crate: the published one; `tests/proof/models/Cargo.toml`, which has the model
//! checkers as well (`docs/decisions/testing.md`); and
//! `tests/proof/optimised/Cargo.toml`, with which CI builds the soak and the counted calls. And what the
//! manifests of all published crates say to registries
//! (`docs/decisions/release.md`).

use std::{collections::BTreeSet, fs, path::PathBuf};

use toml::{Table, Value};

use crate::root;

/// Crates that only our tests use, and that must not appear in a user's lock file.
const FOR_TESTS_ALONE: [&str; 5] = ["croner", "loom", "proptest", "rand", "shuttle"];

/// A manifest that exists; `None` in the published package, which has no `ci`.
fn manifest(path: &str) -> Option<Table> {
    let root = root();
    if !root.join("ci").is_dir() {
        return None;
    }
    let text =
        fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    Some(text.parse().unwrap_or_else(|error| panic!("{path}: {error}")))
}

fn both() -> Option<(Table, Table)> {
    Some((manifest("Cargo.toml")?, manifest("tests/proof/models/Cargo.toml")?))
}

fn table<'a>(of: &'a Table, name: &str) -> Option<&'a Table> {
    of.get(name).and_then(Value::as_table)
}

/// Each table that a dependent resolves, for whichever target it is built.
fn dependencies(manifest: &Table) -> Vec<(String, Table)> {
    let kinds = ["dependencies", "build-dependencies"];
    let targets = table(manifest, "target").into_iter().flatten();
    let everywhere = [("every target".to_owned(), manifest)];
    let targets = targets.map(|(name, rest)| (name.clone(), rest.as_table().expect("a target")));
    let tables = everywhere.into_iter().chain(targets).flat_map(|(target, tables)| {
        kinds.map(|kind| (format!("{kind} of {target}"), table(tables, kind).cloned()))
    });
    tables.filter_map(|(name, table)| Some((name, table?))).collect()
}

/// The library is the same in every manifest that builds it.
#[test]
fn what_the_library_is_made_of_is_the_same_in_both_manifests() {
    let Some((published, models)) = both() else { return };
    assert_eq!(published.get("features"), models.get("features"));
    assert_eq!(published.get("lints"), models.get("lints"));
    for key in ["name", "version", "edition", "rust-version"] {
        let of = |manifest| table(manifest, "package").expect("a package").get(key);
        assert_eq!(of(&published), of(&models), "{key}");
        assert!(of(&published).is_some(), "{key}");
    }
    let checkers = ["cfg(loom)", "cfg(shuttle)"];
    let mut beside = dependencies(&models);
    beside.retain(|(name, _)| !checkers.iter().any(|checker| name.ends_with(checker)));
    assert_eq!(dependencies(&published), beside);
    assert_eq!(dependencies(&models).len(), beside.len() + checkers.len(), "one for each checker");
}

/// A lock file covers every target, so anything listed here under any `cfg` is in every user's lock
/// file.
#[test]
fn the_published_manifest_names_nothing_that_only_tests_use() {
    let Some((published, _)) = both() else { return };
    let tables = dependencies(&published);
    assert!(!tables.is_empty(), "those of every target");
    for (place, named) in tables {
        for (name, value) in &named {
            let package = value.get("package").and_then(Value::as_str).unwrap_or(name);
            assert!(!FOR_TESTS_ALONE.contains(&package), "{package} in the {place}");
        }
    }
}

/// The dependencies of the models' tests have the same requirement in both manifests, and the same
/// version is locked.
#[test]
fn what_both_lock_is_the_same() {
    let Some((published, models)) = both() else { return };
    let [in_use, mine] = [&published, &models].map(|manifest| table(manifest, "dev-dependencies"));
    for (name, value) in mine.expect("proptest") {
        assert_eq!(in_use.and_then(|named| named.get(name)), Some(value), "{name}");
    }
    let [theirs, ours] = ["Cargo.lock", "tests/proof/models/Cargo.lock"]
        .map(|path| locked(&manifest(path).expect("a lock file that is committed")));
    for (name, _) in dependencies(&published).iter().flat_map(|(_, named)| named) {
        let versions = |locked: &BTreeSet<_>| -> Vec<(String, String)> {
            locked.iter().filter(|(locked, _)| locked == name).cloned().collect()
        };
        assert!(!versions(&ours).is_empty(), "{name} is not locked");
        assert_eq!(versions(&theirs), versions(&ours));
    }
}

/// The manifest for optimised builds builds the same sources as the published one, with the same
/// versions.
#[test]
fn what_is_built_optimised_is_what_users_build() {
    let Some(published) = manifest("Cargo.toml") else { return };
    let optimised =
        manifest("tests/proof/optimised/Cargo.toml").expect("a manifest that is committed");
    for profile in ["release", "bench"] {
        let of = |manifest| table(manifest, "profile").and_then(|profiles| profiles.get(profile));
        assert!(of(&published).is_some(), "{profile}");
        assert_eq!(of(&published), of(&optimised), "{profile}");
    }
    let [theirs, mut ours] = ["Cargo.lock", "tests/proof/optimised/Cargo.lock"]
        .map(|path| locked(&manifest(path).expect("a lock file that is committed")));
    ours.retain(|(name, _)| name != "punctual-optimised");
    assert!(ours.len() > 1 && ours.is_subset(&theirs), "{:?}", &ours - &theirs);
}

/// The names and versions in a lock file.
fn locked(file: &Table) -> BTreeSet<(String, String)> {
    let packages = file.get("package").and_then(Value::as_array).expect("packages");
    let text = |package: &Value, key| package[key].as_str().expect("text").to_owned();
    packages.iter().map(|package| (text(package, "name"), text(package, "version"))).collect()
}

/// Categories that the registry knows. It refuses others only when a crate is published.
const CATEGORIES: [&str; 4] = ["asynchronous", "concurrency", "database", "date-and-time"];

/// The folders and the manifests of the crates that are published.
fn published() -> Vec<(PathBuf, Table)> {
    let root = root();
    let mut folders = vec![root.to_owned()];
    let companions = fs::read_dir(root.join("crates")).into_iter().flatten();
    folders.extend(companions.map(|entry| entry.expect("a folder").path()));
    let manifests = folders.into_iter().filter_map(|folder| {
        let manifest = manifest(folder.join("Cargo.toml").to_str()?)?;
        let publish = table(&manifest, "package")?.get("publish").and_then(Value::as_bool);
        (publish != Some(false)).then_some((folder, manifest))
    });
    manifests.collect()
}

fn text<'a>(of: &'a Table, key: &str) -> &'a str {
    of.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("no {key} in {of:?}"))
}

fn texts<'a>(of: &'a Table, key: &str) -> Vec<&'a str> {
    let values = of.get(key).and_then(Value::as_array).unwrap_or_else(|| panic!("no {key}"));
    values.iter().map(|value| value.as_str().expect("a text")).collect()
}

/// The entries that the registry and the documentation site show of a crate, and go by.
#[test]
fn each_published_crate_says_what_registries_show() {
    let crates = published();
    assert!(crates.is_empty() || crates.len() == 3, "{} published crates", crates.len());
    for (folder, manifest) in crates {
        let package = table(&manifest, "package").expect("a package");
        let name = text(package, "name");
        assert!(text(package, "description").ends_with('.'), "{name}");
        assert_eq!(text(package, "license"), "MIT OR Apache-2.0", "{name}");
        assert_eq!(text(package, "documentation"), format!("https://docs.rs/{name}"));
        let keywords = texts(package, "keywords");
        assert!((1..=5).contains(&keywords.len()), "{name}: {keywords:?}");
        assert!(keywords.iter().all(|word| word.len() <= 20 && word.is_ascii()), "{name}");
        let categories = texts(package, "categories");
        assert!((1..=5).contains(&categories.len()), "{name}: {categories:?}");
        assert!(categories.iter().all(|it| CATEGORIES.contains(it)), "{name}: {categories:?}");
        let docs = table(package, "metadata").and_then(|metadata| table(metadata, "docs"));
        let docs = docs.and_then(|docs| table(docs, "rs")).expect("metadata for docs.rs");
        assert_eq!(docs.get("all-features"), Some(&Value::Boolean(true)), "{name}");
        assert_eq!(texts(docs, "rustdoc-args"), ["--cfg", "docsrs"], "{name}");
        let readme = fs::read_to_string(folder.join(text(package, "readme"))).expect("the README");
        let is_title = |line: &str| line.starts_with("# ") && line.contains(name);
        assert!(readme.lines().any(is_title), "{name}: its README");
    }
}

/// A package has what its manifest lists, and no file that is only not excluded yet; and the licences and
/// the changelog are there.
#[test]
fn each_package_lists_what_is_in_it() {
    let root = root();
    for (folder, manifest) in published() {
        let package = table(&manifest, "package").expect("a package");
        let (name, version) = (text(package, "name"), text(package, "version"));
        assert!(package.get("exclude").is_none(), "{name}");
        let included = texts(package, "include");
        for file in ["/src/**/*.rs", "/CHANGELOG.md", "/LICENSE-*", "/README.md"] {
            assert!(included.contains(&file), "{name}: {file}");
        }
        assert!(included.iter().all(|pattern| pattern.starts_with('/')), "{name}: {included:?}");
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let [ours, theirs] = [root, &folder].map(|folder| fs::read(folder.join(licence)));
            assert_eq!(ours.expect("the licence"), theirs.expect("the licence"), "{name}");
        }
        let changes = fs::read_to_string(folder.join("CHANGELOG.md")).expect("the changelog");
        let newest = changes.lines().find_map(|line| line.strip_prefix("## ")).expect("a version");
        assert_eq!(newest.split(' ').next(), Some(version), "{name}: its changelog");
    }
}

/// The crates are released together: they have one version and one minimum Rust version, and a companion asks for the core
/// of its own version.
#[test]
fn the_companions_go_with_the_core() {
    let crates = published();
    let Some((_, core)) = crates.first() else { return };
    let core = table(core, "package").expect("a package");
    for (_, manifest) in &crates[1..] {
        let package = table(manifest, "package").expect("a package");
        for key in ["version", "edition", "rust-version", "license"] {
            assert_eq!(text(package, key), text(core, key), "{key} of {}", text(package, "name"));
        }
        let needed = table(manifest, "dependencies").and_then(|all| table(all, "punctual"));
        assert_eq!(text(needed.expect("the core"), "version"), text(core, "version"));
    }
}

/// The models run only with the manifest that has the checkers: with the published one their tests
/// are empty, and would pass.
#[test]
fn the_models_are_run_with_their_own_manifest() {
    let root = root();
    let Some((_, models)) = both() else { return };
    for script in ["loom.sh", "model.sh", "simulate.sh"] {
        let text = fs::read_to_string(root.join("ci").join(script)).expect("the script");
        let runs: Vec<_> = text.lines().filter(|line| line.contains("cargo test")).collect();
        let own = |line: &&str| line.contains("--manifest-path tests/proof/models/Cargo.toml");
        assert!(!runs.is_empty() && runs.iter().all(own), "{script}: {runs:?}");
    }
    for test in models.get("test").and_then(Value::as_array).expect("tests") {
        let path = test["path"].as_str().expect("a path");
        assert!(root.join("tests/proof/models").join(path).is_file(), "{path}");
    }
}
