//! The table of Java's private names at the head of `src/queue.rs`.

use std::fs;

use crate::root;

use super::functions::{find, functions};

/// Each function of the table is in the file that the table gives.
#[test]
fn each_java_name_leads_to_a_function() {
    let queue = root().join("src/queue.rs");
    let text = fs::read_to_string(queue).expect("the source");
    let functions = functions();
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let mut leads = Vec::new();
    for row in rows {
        let cells: Vec<_> = row.split(" | ").collect();
        let [java, function, file] = cells[..] else { continue };
        let [function, file] = [function, file].map(|cell| cell.split('`').nth(1).expect("a name"));
        let file = format!("src/{file}");
        let found = find(&functions, function, Some(&file));
        let found = found.unwrap_or_else(|error| panic!("{java}: {error} in {file}"));
        leads.extend(java.split("`, `").map(|java| (java.trim_end_matches('`'), &found.name)));
    }
    assert!(leads.len() > 20, "{leads:?}");
    for java in ["siftUp", "siftDown", "grow", "finishPoll", "setIndex", "removeAt", "indexOf"] {
        assert!(leads.iter().any(|lead| lead.0 == java), "{java} is missing");
    }
}
