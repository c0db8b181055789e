//! A replica: this test binary once more, in a role of its own.
//!
//! The role is a test of the binary that does nothing unless the environment says so. It is told what to do by
//! `key=value` words there, and writes lines that begin with `@`. What it writes has the machine's
//! true time, whatever clock it believes in.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    LIMIT,
    process::{self, Clock},
};

/// Which role the process has.
pub(crate) const ROLE: &str = "PUNCTUAL_ROLE";
/// Its orders.
pub(crate) const ORDERS: &str = "PUNCTUAL_ORDERS";

/// A report of a replica: a word, and what followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) word: String,
    pub(crate) numbers: Vec<i64>,
    /// Which of the replicas said it.
    pub(crate) replica: usize,
}

/// A running replica. It is killed when this is dropped.
pub(crate) struct Replica {
    child: Child,
    number: usize,
    lines: Receiver<Said>,
    pub(crate) said: Vec<Said>,
}

impl Replica {
    /// Starts the test `role` of this binary, alone, with these orders.
    pub(crate) fn start(role: &str, number: usize, orders: &str, ahead: i32) -> Self {
        let clock = (ahead != 0).then_some(Clock::Ahead(ahead));
        let command = process::mortal(std::env::current_exe().unwrap(), clock);
        Self::start_command(command, role, number, orders)
    }

    /// The same with this variable in its environment.
    pub(crate) fn start_with(role: &str, orders: &str, (name, value): (&str, &str)) -> Self {
        let mut command = process::mortal(std::env::current_exe().unwrap(), None);
        command.env(name, value);
        Self::start_command(command, role, 0, orders)
    }

    fn start_command(mut command: Command, role: &str, number: usize, orders: &str) -> Self {
        command.args([role, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env(ORDERS, orders);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process::start(command);
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let Some(said) = line.find('@').and_then(|at| parse(&line[at + 1..], number))
                else {
                    continue;
                };
                if sender.send(said).is_err() {
                    break;
                }
            }
        });
        Self { child, number, lines, said: Vec::new() }
    }

    /// Waits for a line that begins with the word, after those that have been waited for; returns its numbers.
    pub(crate) fn wait_for(&mut self, word: &str) -> Vec<i64> {
        self.wait_for_within(word, LIMIT).unwrap_or_else(|| {
            panic!("replica {} did not say {word}, but {:?}", self.number, self.said)
        })
    }

    pub(crate) fn wait_for_within(&mut self, word: &str, span: Duration) -> Option<Vec<i64>> {
        let deadline = Instant::now() + span;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(said) => {
                    self.said.push(said.clone());
                    if said.word == word {
                        return Some(said.numbers);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        process::signal(&self.child, signal);
    }

    /// Kills it, and returns all that it has said.
    pub(crate) fn kill(mut self) -> Vec<Said> {
        process::signal(&self.child, Signal::KILL);
        self.child.wait().unwrap();
        self.rest()
    }

    /// Asks it to end, which the end of its input does, waits until it has, and returns all that it has said.
    pub(crate) fn end(mut self) -> Vec<Said> {
        drop(self.child.stdin.take());
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < LIMIT, "replica {} does not end", self.number);
            thread::sleep(Duration::from_millis(5));
        }
        self.rest()
    }

    fn rest(&mut self) -> Vec<Said> {
        // Until the pipe ends.
        while self.wait_for_within("", LIMIT).is_some() {}
        std::mem::take(&mut self.said)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            process::signal(&self.child, Signal::KILL);
            drop(self.child.wait());
        }
    }
}

fn parse(line: &str, replica: usize) -> Option<Said> {
    let mut words = line.split_whitespace();
    let word = words.next()?.to_owned();
    let numbers = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some(Said { word, numbers, replica })
}

/// In a replica: says something.
pub(crate) fn say(word: &str, numbers: &[i64]) {
    use std::io::Write;
    let mut line = format!("@{word}");
    for number in numbers {
        line.push_str(&format!(" {number}"));
    }
    line.push('\n');
    // In one piece, so that lines of several threads do not mix.
    drop(std::io::stdout().lock().write_all(line.as_bytes()));
}

/// In a replica: blocks until it is asked to end.
pub(crate) fn wait_for_the_end() {
    let mut rest = String::new();
    while std::io::stdin().read_line(&mut rest).is_ok_and(|read| read > 0) {}
}

/// In a replica: what it is to do.
pub(crate) struct Orders(HashMap<String, String>);

impl Orders {
    /// Returns the orders if this process has that role.
    pub(crate) fn of(role: &str) -> Option<Self> {
        std::env::var(ROLE).ok().filter(|it| it == role)?;
        let text = std::env::var(ORDERS).unwrap();
        let pair = |line: &str| {
            let (key, value) = line.split_once('=').unwrap();
            (key.trim().to_owned(), value.to_owned())
        };
        Some(Self(text.lines().filter(|line| line.contains('=')).map(pair).collect()))
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.0.get(key).unwrap_or_else(|| panic!("no order {key}"))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(self.text(key).parse().unwrap())
    }
}
