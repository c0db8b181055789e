//! The example program `jobs` as its user sees it: what it prints, how it exits, and that it
//! leaves no command behind.
//!
//! The program is a process of its own here. All waiting has one limit, after which the test
//! fails and the process is killed.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "a test with processes and threads of its own"
)]
#![cfg_attr(not(unix), allow(dead_code, reason = "commands are run on unix alone"))]

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use shared_child::SharedChild;

/// How long one process may take; only ever reached by a test that fails.
const LIMIT: Duration = Duration::from_secs(60);

/// The sample runs for as long as it is told, reports each run, and ends with a row for each job.
#[cfg(unix)]
#[test]
fn the_sample_runs_and_ends_with_a_table() {
    let end = Jobs::start(["--for", "1s", "--grace", "30s"]).end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(end.has_line(&["greeting", "| hello, world"]), "{end:?}");
    assert!(end.has_line(&["greeting", "run 1", "late, took", "ok"]), "{end:?}");
    assert!(end.has_line(&["failing", "run 1", "FAILED (exit status: 1)"]), "{end:?}");
    for job in ["greeting", "clock", "too slow", "pause", "failing", "last words", "tomorrow"] {
        assert!(end.has_line(&[&format!("│ {job} ")]), "no row for {job}: {end:?}");
    }
}

/// A job file that is broken is refused with the line and the cause, and with exit code 2.
#[test]
fn a_broken_file_is_refused_with_line_and_cause() {
    let cases = [
        ("evry = '1s'", 4, "unknown field `evry`"),
        ("every = '1s'\nafter = '2s'", 5, "this has `every` and `after`"),
        ("", 1, "this has none"),
        ("every = '1.5parsec'", 4, "unknown time unit \"parsec\""),
        ("every = '15'", 4, "time unit needed"),
        ("every = '0s'", 4, "must be more than zero"),
        ("delay = '0s'", 4, "must be more than zero"),
        ("after = '1s'\ninitial = '1s'", 5, "`initial` says nothing"),
        ("delay = '1s'\nmissed = 'skip'", 5, "`missed` says nothing"),
        ("every = '1s'\nmissed = 'never'", 5, "unknown variant `never`"),
        ("after = '1s'\n[[job]]\nname = 'it'", 5, "missing field `command`"),
        (
            "after = '1s'\n[[job]]\nname = 'it'\ncommand = 'true'\nafter = '1s'",
            6,
            "there is a job \"it\" already, in line 2",
        ),
        ("this is not TOML", 4, "expected `=`"),
    ];
    for (rest, line, cause) in cases {
        let file = TempFile::new(&format!("[[job]]\nname = 'it'\ncommand = 'true'\n{rest}\n"));
        let end = Jobs::start([file.path()]).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{rest}: {end:?}");
        let place = format!("{}:{line}: ", file.path().display());
        assert!(end.stderr.contains(&place), "{rest}: no {place} in {end:?}");
        assert!(end.stderr.contains(cause), "{rest}: no {cause} in {end:?}");
    }
}

/// A call that cannot be understood, or names a file that is not there, ends with exit code 2.
#[test]
fn a_wrong_call_is_refused() {
    let cases: [(&[&str], &str); 6] = [
        (&["--nope"], "unknown option --nope"),
        (&["--for"], "--for wants a duration"),
        (&["--for", "soon"], "--for: bad duration \"soon\""),
        (&["--grace", "1"], "--grace: bad duration \"1\""),
        (&["one", "two"], "a second file, two"),
        (&["no/such/file.toml"], "no/such/file.toml: "),
    ];
    for (args, cause) in cases {
        let end = Jobs::start(args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
}

/// Durations may have fractions, and a program whose jobs have all run ends without being told.
#[cfg(unix)]
#[test]
fn it_ends_by_itself_after_the_last_one_shot_job() {
    let file = TempFile::new("[[job]]\nname = 'it'\ncommand = 'exit 3'\nafter = '1.5ms'\n");
    let end = Jobs::start([file.path()]).end();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "FAILED (exit status: 3)"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "after 1.5ms", "1 ┆", "1 ┆", "0 ┆"]), "{end:?}");
}

/// Interrupted, it gives a command that does not end its grace, stops all its processes, and
/// still prints the table.
#[cfg(unix)]
#[test]
fn an_interrupt_stops_a_command_that_does_not_end() {
    let end = interrupted("echo begun; sleep 600; echo survived", "10ms");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "stopped (signal: 15"]), "{end:?}");
    assert!(end.has_line(&["│ it ", "1 ┆", "0 ┆"]), "{end:?}");
    assert!(!end.has_line(&["| survived"]), "{end:?}");
}

/// A command that ignores the request to stop is killed, together with what it has started.
#[cfg(unix)]
#[test]
fn a_command_that_does_not_listen_is_killed() {
    let end = interrupted("trap '' TERM; echo begun; sleep 600; echo survived", "0s");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "stopped (signal: 9"]), "{end:?}");
    assert!(!end.has_line(&["| survived"]), "{end:?}");
}

/// A command that runs when the interrupt comes may finish within the grace period.
#[cfg(unix)]
#[test]
fn an_interrupt_lets_a_command_finish_in_its_grace() {
    let end = interrupted("echo begun; sleep 1; echo finished", "1h");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.has_line(&["it", "| finished"]), "{end:?}");
    assert!(end.has_line(&["it", "run 1", "ok"]), "{end:?}");
}

/// Runs one job every millisecond, and interrupts when its command says that it has begun.
#[cfg(unix)]
fn interrupted(command: &str, grace: &str) -> End {
    use shared_child::unix::SharedChildExt;

    /// The same on every unix.
    const SIGINT: i32 = 2;

    let file =
        TempFile::new(&format!("[[job]]\nname = 'it'\ncommand = \"{command}\"\nevery = '1ms'\n"));
    let mut jobs = Jobs::start(["--grace".as_ref(), grace.as_ref(), file.path().as_os_str()]);
    jobs.read_until("| begun");
    jobs.child.send_signal(SIGINT).expect("it runs");
    jobs.end()
}

/// The program as it runs.
struct Jobs {
    child: SharedChild,
    limit: Instant,
    lines: Receiver<String>,
    errors: Receiver<String>,
    /// The lines that have been read.
    stdout: Vec<String>,
}

/// The program when it has ended.
#[derive(Debug)]
struct End {
    code: Option<i32>,
    stdout: Vec<String>,
    stderr: String,
}

impl Jobs {
    fn start<I>(args: I) -> Self
    where
        I: IntoIterator<Item: AsRef<std::ffi::OsStr>>,
    {
        let mut command = Command::new(program());
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = SharedChild::spawn(&mut command).expect("the example is built");
        let stdout = child.take_stdout().expect("it is piped");
        let mut stderr = child.take_stderr().expect("it is piped");
        let (line, lines) = mpsc::channel();
        thread::spawn(move || {
            for read in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = line.send(read);
            }
        });
        let (error, errors) = mpsc::channel();
        thread::spawn(move || {
            let mut read = String::new();
            let _ = stderr.read_to_string(&mut read);
            let _ = error.send(read);
        });
        Self { child, limit: Instant::now() + LIMIT, lines, errors, stdout: Vec::new() }
    }

    fn time_left(&self) -> Duration {
        self.limit.saturating_duration_since(Instant::now())
    }

    /// The next line, until there is none.
    fn read_line(&mut self) -> Option<&str> {
        match self.lines.recv_timeout(self.time_left()) {
            Ok(line) => self.stdout.push(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(error) => panic!("{error} in {LIMIT:?}: {:?}", self.stdout),
        }
        self.stdout.last().map(String::as_str)
    }

    fn read_until(&mut self, part: &str) {
        while !self.read_line().expect("it still runs").contains(part) {}
    }

    /// Waits for its end, and for that of every command: each has inherited stderr, which is not
    /// over while one of them lives.
    fn end(mut self) -> End {
        while self.read_line().is_some() {}
        let stderr = self.errors.recv_timeout(self.time_left());
        let status = self.child.wait_timeout(self.time_left());
        End {
            code: status.expect("it can be waited for").expect("it ends").code(),
            stdout: std::mem::take(&mut self.stdout),
            stderr: stderr.expect("no command survives"),
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl End {
    /// Whether a line has all these parts, in this order.
    fn has_line(&self, parts: &[&str]) -> bool {
        self.stdout.iter().any(|line| {
            let mut rest = line.as_str();
            parts.iter().all(|part| match rest.split_once(part) {
                Some((_, after)) => {
                    rest = after;
                    true
                }
                None => false,
            })
        })
    }
}

/// `target/debug/examples/jobs`, seen from `target/debug/deps/this_test`.
fn program() -> PathBuf {
    let this = env::current_exe().expect("a test has a path");
    let profile = this.ancestors().nth(2).expect("it is deep in the target directory");
    let program = profile.join("examples").join("jobs").with_extension(env::consts::EXE_EXTENSION);
    assert!(
        program.exists(),
        "there is no {}: `cargo test --test` builds no examples, `cargo build --examples` does",
        program.display()
    );
    program
}

/// A job file, which is removed again.
struct TempFile(PathBuf);

impl TempFile {
    fn new(text: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-jobs-{}-{number}.toml", process::id());
        let path = env::temp_dir().join(name);
        fs::write(&path, text).expect("the temporary directory can be written");
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
