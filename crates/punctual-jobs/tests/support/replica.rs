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
    time::Duration,
};

use rustix::process::Signal;

use super::{
    Patience,
    patience::TURN,
    process::{self, Clock},
    wait_until,
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
    #[track_caller]
    pub(crate) fn wait_for(&mut self, word: &str) -> Vec<i64> {
        self.next_that(word, |said| said.word == word).numbers
    }

    /// Waits until it has said this, before or after what has been waited for.
    #[track_caller]
    pub(crate) fn has_said(&mut self, what: &str, is_it: impl Fn(&Said) -> bool) {
        if !self.said.iter().any(&is_it) {
            self.next_that(what, is_it);
        }
    }

    #[track_caller]
    fn next_that(&mut self, what: &str, is_it: impl Fn(&Said) -> bool) -> Said {
        let mut patience = Patience::new();
        loop {
            match self.lines.recv_timeout(TURN) {
                Ok(said) => {
                    self.said.push(said.clone());
                    if is_it(&said) {
                        return said;
                    }
                }
                Err(RecvTimeoutError::Timeout) if patience.lasts() => {}
                Err(error) => {
                    panic!(
                        "replica {} did not say {what} ({error}), but {:?}",
                        self.number, self.said
                    )
                }
            }
        }
    }

    /// Returns the next line that it has said by now.
    pub(crate) fn next_said(&mut self) -> Option<Said> {
        let said = self.lines.try_recv().ok()?;
        self.said.push(said.clone());
        Some(said)
    }

    /// Returns the number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
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
        let number = self.number;
        wait_until(&format!("replica {number} ends"), || self.child.try_wait().unwrap().is_some());
        self.rest()
    }

    fn rest(&mut self) -> Vec<Said> {
        let mut patience = Patience::new();
        loop {
            match self.lines.recv_timeout(TURN) {
                Ok(said) => self.said.push(said),
                Err(RecvTimeoutError::Timeout) => patience.go_on("the end of the pipe"),
                Err(RecvTimeoutError::Disconnected) => return std::mem::take(&mut self.said),
            }
        }
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
