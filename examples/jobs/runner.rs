//! One run of one job: a shell command, from its start to its end or to when it is told to stop.
//!
//! Two executors take part. A worker of the jobs' own runs the closure of the job, which has to
//! hear two things: that the command has ended, and that it is to stop it. So it does not wait
//! for the command itself: a helper does, and the closure waits for the helper's future *unless*
//! its token is raised ([`ScheduledFuture::join_unless`](punctual::ScheduledFuture::join_unless)).

use std::{
    error::Error,
    fmt,
    io::{self, BufRead, BufReader},
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use punctual::{CancellationToken, Handle, RejectedExecutionError, ScheduledFuture, current_task};
use shared_child::SharedChild;

use crate::{
    config::{Job, Schedule},
    report::{Report, Run},
};

/// How long a command that was told to stop may take before the next, less polite step.
const PATIENCE: Duration = Duration::from_secs(1);

/// How a run ended.
pub(crate) enum Outcome {
    Exited(ExitStatus),
    /// It was told to stop, and then ended so.
    Stopped(ExitStatus),
    /// It could not be started, or not be followed to its end.
    Lost(Box<dyn Error + Send + Sync>),
}

impl Outcome {
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Exited(status) => !status.success(),
            Self::Stopped(_) => false,
            Self::Lost(_) => true,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) if status.success() => f.write_str("ok"),
            Self::Exited(status) => write!(f, "FAILED ({status})"),
            Self::Stopped(status) => write!(f, "stopped ({status})"),
            Self::Lost(error) => write!(f, "FAILED ({error})"),
        }
    }
}

/// Runs a job again and again.
pub(crate) struct Runner {
    job: Job,
    /// Which job it is, for the report.
    index: usize,
    report: Arc<Report>,
    helpers: Handle,
}

impl Runner {
    pub(crate) fn new(job: &Job, index: usize, report: &Arc<Report>, helpers: &Handle) -> Self {
        Self { job: job.clone(), index, report: Arc::clone(report), helpers: helpers.clone() }
    }

    /// Hands the job to the executor.
    pub(crate) fn start(
        self,
        executor: &Handle,
    ) -> Result<ScheduledFuture<()>, RejectedExecutionError> {
        let task = executor.task().name(self.job.name.as_str());
        match self.job.schedule {
            Schedule::After(delay) => task.schedule(delay, move || self.run()),
            Schedule::Every { initial, period, missed } => {
                task.missed_runs(missed).schedule_at_fixed_rate(initial, period, move || self.run())
            }
            Schedule::Delay { initial, delay } => {
                task.schedule_with_fixed_delay(initial, delay, move || self.run())
            }
        }
    }

    /// The closure of the job.
    fn run(&self) {
        let Some(task) = current_task() else { return };
        let begun = Instant::now();
        let outcome = self.command(&task.token()).unwrap_or_else(Outcome::Lost);
        self.report.add(
            self.index,
            &Run {
                number: task.run_number(),
                missed: task.missed_runs(),
                lateness: task.lateness(),
                took: begun.elapsed(),
                outcome,
            },
        );
    }

    /// Runs the command until it ends, or, once the token is raised, until it is made to.
    fn command(&self, token: &CancellationToken) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
        let child = SharedChild::spawn(&mut shell(&self.job.command))
            .map_err(|error| format!("the shell cannot be started: {error}"))?;
        let child = Arc::new(child);
        let (report, index) = (Arc::clone(&self.report), self.index);
        let followed = Arc::clone(&child);
        let end = self
            .helpers
            .submit(move || follow(&followed, |line| report.output(index, line)))
            .inspect_err(|_| kill(&child))?;
        if let Some(status) = end.join_unless(token) {
            return Ok(Outcome::Exited(status??));
        }
        for step in [terminate, kill] {
            step(&child);
            if let Some(status) = end.join_timeout(PATIENCE) {
                return Ok(Outcome::Stopped(status??));
            }
        }
        Err("killed, but something it has started still holds its output".into())
    }
}

/// Passes on what the command says, and waits for its end. In this order: as long as there is
/// somebody to be stopped who talks, the process has not been waited for, and so its number
/// cannot be another's.
fn follow(child: &SharedChild, mut heard: impl FnMut(&str)) -> io::Result<ExitStatus> {
    if let Some(output) = child.take_stdout() {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            heard(&String::from_utf8_lossy(&line));
        }
    }
    child.wait()
}

/// The command as a process. On unix it leads a group of its own: what it starts can be stopped
/// together with it, and a Ctrl-C at the terminal does not reach it before its grace is over.
fn shell(line: &str) -> Command {
    #[cfg(unix)]
    let mut command = {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).process_group(0);
        command
    };
    #[cfg(windows)]
    let mut command = {
        use std::os::windows::process::CommandExt;
        let mut command = Command::new("cmd");
        // Unquoted: `cmd` has quoting rules of its own.
        command.arg("/C").raw_arg(line);
        command
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Asks the command to stop; where there is no way to ask, makes it.
fn terminate(child: &SharedChild) {
    if cfg!(unix) {
        signal_group(child, "TERM");
    } else {
        kill(child);
    }
}

/// Ends the command. What goes wrong shows in that it does not end.
fn kill(child: &SharedChild) {
    if cfg!(unix) {
        signal_group(child, "KILL");
    }
    let _ = child.kill();
}

/// The shell's own `kill`, as std has none for groups.
fn signal_group(child: &SharedChild, signal: &str) {
    let _ = Command::new("sh")
        .args(["-c", r#"kill -s "$0" -- "-$1""#, signal])
        .arg(child.id().to_string())
        .stderr(Stdio::null())
        .status();
}
