//! A shell command as a process that can be polled without waiting: for its output, and for its end.

use std::{
    io,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
};

/// The largest piece in which an endless line is passed on.
const LONGEST_LINE: usize = 64 * 1024;
/// The number of reads per poll, before other processes have their turn.
const READS: usize = 16;

/// The ways to ask a command to end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Terminate,
    Kill,
}

pub(crate) struct Process {
    child: Child,
    /// `None` after the end of the output, which the process may outlive.
    output: Option<ChildStdout>,
    /// The beginning of a line whose end has not been read yet.
    line: Vec<u8>,
}

/// The result of a poll.
pub(crate) enum Seen {
    Ended(ExitStatus),
    /// There was output, and there may be more.
    Talking,
    Nothing,
}

impl Process {
    pub(crate) fn start(command: &str) -> io::Result<Self> {
        let mut child = shell(command).spawn()?;
        let output = child.stdout.take();
        #[cfg(unix)]
        if let Some(output) = &output {
            // This sets only our end of the pipe: the command does not notice.
            rustix::io::ioctl_fionbio(output, true)?;
        }
        Ok(Self { child, output, line: Vec::new() })
    }

    /// Passes the command's output on, and asks whether the shell has ended. If it has, so has the command, also if something
    /// that it has left in the background still holds the output: nobody reads that any more.
    ///
    /// A process that was told to stop is not waited for before the end of its output. So as long as something of its group
    /// is alive and holds the output, it can be killed by the group's number, which cannot have been reused.
    pub(crate) fn look(
        &mut self,
        is_to_stop: bool,
        mut heard: impl FnMut(&str),
    ) -> io::Result<Seen> {
        let may_be_over = !is_to_stop || self.output.is_none();
        // Before the last reads: what the shell has written is in the pipe by now, which holds no more than they take.
        let status = if may_be_over { self.child.try_wait()? } else { None };
        let has_talked = self.hear(&mut heard);
        if let Some(status) = status {
            if !self.line.is_empty() {
                pass_on(&mut self.line, &mut heard);
            }
            return Ok(Seen::Ended(status));
        }
        Ok(if has_talked { Seen::Talking } else { Seen::Nothing })
    }

    /// Returns `true` if anything was read, including the end.
    fn hear(&mut self, heard: &mut impl FnMut(&str)) -> bool {
        use io::{ErrorKind, Read};

        let Some(output) = &mut self.output else { return false };
        let mut piece = [0; 4096];
        for read in 0..READS {
            match output.read(&mut piece) {
                Ok(count @ 1..) => {
                    for line in piece[..count].split_inclusive(|byte| *byte == b'\n') {
                        self.line.extend_from_slice(line);
                        if line.ends_with(b"\n") || self.line.len() >= LONGEST_LINE {
                            pass_on(&mut self.line, heard);
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return read > 0,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => {
                    self.output = None;
                    break;
                }
            }
        }
        true
    }

    /// Ignores errors: they show in that the command does not end. On unix this concerns all
    /// processes that the command has started; elsewhere there is no way to ask, and the command is
    /// killed.
    pub(crate) fn request(&mut self, request: Request) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};

            let signal = match request {
                Request::Terminate => Signal::TERM,
                Request::Kill => Signal::KILL,
            };
            let _ = kill_process_group(Pid::from_child(&self.child), signal);
        }
        #[cfg(not(unix))]
        {
            let (Request::Terminate | Request::Kill) = request;
            let _ = self.child.kill();
        }
    }
}

fn pass_on(line: &mut Vec<u8>, heard: &mut impl FnMut(&str)) {
    let text = String::from_utf8_lossy(line);
    heard(text.trim_end_matches(['\n', '\r']));
    line.clear();
}

/// Starts the command as a process. On unix it leads a process group of its own: the processes that
/// it starts can be stopped together with it, and a Ctrl-C at the terminal does not reach it before
/// its grace period is over.
#[cfg(unix)]
fn shell(line: &str) -> Command {
    use std::os::unix::process::CommandExt;

    let mut command = Command::new("sh");
    command.arg("-c").arg(line).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Elsewhere a pipe cannot be read without blocking, so the command's output goes where the program's own output goes.
#[cfg(windows)]
fn shell(line: &str) -> Command {
    use std::os::windows::process::CommandExt;

    let mut command = Command::new("cmd");
    // The command is not quoted: `cmd` has quoting rules of its own.
    command.arg("/C").raw_arg(line);
    command.stdin(Stdio::null());
    command
}
