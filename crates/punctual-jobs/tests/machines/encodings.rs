//! Databases that are not UTF-8.

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobState, QueueError};

use crate::{
    kinds::{Named, Work},
    machine::{sender, start_at},
    support::{server::Server, wait_until},
};

/// A database of Western Europe has the tables, runs jobs, and refuses alone what it has no letters for.
#[test]
fn a_database_that_is_not_utf_8_has_the_tables() {
    let server = Server::start();
    for encoding in ["LATIN1", "EUC_JP", "SQL_ASCII"] {
        let name = encoding.to_lowercase();
        server.sql(&format!(
            "create database {name} encoding '{encoding}' locale 'C' template template0"
        ));
        let url = server.url().replace("dbname=postgres", &format!("dbname={name}"));
        let executor = ScheduledThreadPoolExecutor::new(1);
        let queue = sender(&executor, &url);
        let mut machine = start_at(&url, 0);
        let job = queue.now(Work { number: 7, millis: 0 }).key("k").enqueue().unwrap();
        assert_eq!(machine.wait_for("ran")[0], 7, "{encoding}");
        wait_until("its end", || queue.state(job.id).unwrap() == JobState::Gone);
    }
    let url = server.url().replace("dbname=postgres", "dbname=latin1");
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &url);
    let refused = queue.now(Named { name: "\u{3042}".to_owned() }).enqueue();
    assert!(matches!(refused, Err(QueueError::Server(_))), "{refused:?}");
    queue.now(Named { name: "\u{e9}".to_owned() }).enqueue().unwrap();
}

/// A statement is a text of the server's encoding, and one letter that it does not have refuses all of it.
#[test]
fn no_statement_has_a_letter_that_an_encoding_may_lack() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![here.join("postgres"), here.join("gate")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let is_product = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            for (number, line) in is_product.lines().enumerate() {
                let is_code = !line.trim_start().starts_with("//");
                assert!(!is_code || line.is_ascii(), "{}:{}", path.display(), number + 1);
                seen += 1;
            }
        }
    }
    assert!(seen > 1000, "{seen} lines");
}
