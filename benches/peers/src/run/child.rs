//! Runs one process to its end.

use std::{
    io::{self, Read},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

/// Many times the duration of the slowest measurement.
pub(super) const LIMIT: Duration = Duration::from_secs(600);

/// The outcome of a process.
pub(super) struct Outcome {
    pub(super) stdout: String,
    pub(super) took: Duration,
    /// How it failed.
    pub(super) error: Option<String>,
}

impl Outcome {
    fn not_started(error: &io::Error) -> Self {
        let error = Some(format!("it does not start: {error}"));
        Self { stdout: String::new(), took: Duration::ZERO, error }
    }
}

/// While the process runs, all threads of this program sleep, because they must not disturb the
/// measurement.
pub(super) fn run(mut command: Command, limit: Duration) -> Result<Outcome> {
    let start = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Outcome::not_started(&error)),
    };
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    // Its output ends when it ends.
    let all = stdout.recv_timeout(limit);
    if all.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    let error = match &all {
        Err(_) => Some(format!("it took more than {limit:?}")),
        Ok(_) if status.success() => None,
        Ok(_) => Some(format!("{status}: {}", first_lines(&stderr.recv().unwrap_or_default()))),
    };
    Ok(Outcome { stdout: all.unwrap_or_default(), took: start.elapsed(), error })
}

/// Reads on a thread of its own, so that the read can have a time limit.
fn read_all(source: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut source) = source {
            // The output until then is all there is.
            _ = source.read_to_end(&mut bytes);
        }
        send.send(String::from_utf8_lossy(&bytes).into_owned())
    });
    receive
}

/// The line in which a program reports why it failed: in all four languages a trace follows.
fn first_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(3).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Duration};

    use super::{LIMIT, run};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn gives_the_output() {
        let outcome = run(shell("echo one; echo two >&2; echo three"), LIMIT).unwrap();
        assert_eq!(outcome.stdout, "one\nthree\n");
        assert_eq!(outcome.error, None);
    }

    #[test]
    fn what_does_not_start_has_failed() {
        let error = run(Command::new("/no/such/program"), LIMIT).unwrap().error.unwrap();
        assert!(error.starts_with("it does not start"), "{error}");
    }

    #[test]
    fn a_failure_comes_with_what_was_said_of_it() {
        let outcome = run(shell("echo one; echo no such luck >&2; exit 3"), LIMIT).unwrap();
        assert_eq!(outcome.stdout, "one\n");
        assert_eq!(outcome.error.unwrap(), "exit status: 3: no such luck");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let limit = Duration::from_millis(20);
        let outcome = run(shell("exec sleep 60"), limit).unwrap();
        assert_eq!(outcome.error.unwrap(), "it took more than 20ms");
        assert!(outcome.took < Duration::from_secs(30));
    }
}
