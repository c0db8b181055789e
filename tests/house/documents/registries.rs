//! No file names the host of a package registry, so nothing here depends on which one a user has. A page links to the
//! documentation site of a crate, and a lock file names what it has to.

use std::{fs, path::Path};

use super::root;

/// The hosts of the registries of Rust, Python, npm and Debian, in pieces, so that this file does not name them either.
const HOSTS: [[&str; 2]; 7] = [
    ["crates", "io"],
    ["pypi", "org"],
    ["pythonhosted", "org"],
    ["npmjs", "org"],
    ["npmjs", "com"],
    ["debian", "org"],
    ["debian", "net"],
];

/// Files that may name a registry.
const LOCK_FILES: [&str; 4] = ["Cargo.lock", "go.sum", "imports.lock", "package-lock.json"];

/// Folders that hold what is built or fetched, and no source.
const BUILT: [&str; 4] = [".git", "artifacts", "node_modules", "target"];

/// Reads each file below the folder, and returns how many there are.
fn each_file(folder: &Path, check: &mut impl FnMut(&Path, &str)) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().expect("its type");
        if kind.is_dir() && !BUILT.contains(&name.as_str()) {
            files += each_file(&path, check);
        } else if kind.is_file() && !LOCK_FILES.contains(&name.as_str()) {
            let text = fs::read(&path).expect("a file");
            check(&path, &String::from_utf8_lossy(&text));
            files += 1;
        }
    }
    files
}

fn names_a_registry(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    HOSTS.iter().map(|host| host.join(".")).find(|host| text.contains(host))
}

#[test]
fn no_file_names_a_registry() {
    let mut found = Vec::new();
    let files = each_file(root(), &mut |path, text| {
        if let Some(host) = names_a_registry(text) {
            found.push(format!("{} names {host}", path.display()));
        }
    });
    assert!(files > 100, "{files} files");
    assert!(found.is_empty(), "link to the documentation site instead: {found:#?}");
}

#[test]
fn a_registry_is_recognised() {
    let host = HOSTS[0].join(".");
    assert_eq!(names_a_registry(&format!("[a](https://Static.{host}/a)")), Some(host));
    assert_eq!(names_a_registry("[patch.crates-io] https://docs.rs/punctual"), None);
}
