//! An example program as its user sees it: a process, its input, its output, and its exit code.
//!
//! Each wait has patience, and when it ends without its event, the test fails and the process is killed.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{self, ChildStdin, Command, Stdio},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
};

use shared_child::SharedChild;

use super::patience::{Patience, TURN, next_of, receive};

/// A running program.
pub(crate) struct Program {
    child: SharedChild,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    /// The lines that have been read.
    stdout: Vec<String>,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: String,
}

impl Program {
    /// Starts an example without input.
    pub(crate) fn start(example: &str, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Self {
        Self::start_with(Stdio::null(), Stdio::piped(), example, args)
    }

    /// Starts an example without input, whose output goes to `stdout` and is not recorded.
    pub(crate) fn start_into(
        stdout: Stdio,
        example: &str,
        args: impl IntoIterator<Item: AsRef<OsStr>>,
    ) -> Self {
        Self::start_with(Stdio::null(), stdout, example, args)
    }

    /// Starts an example with input.
    pub(crate) fn start_with_input(
        example: &str,
        args: impl IntoIterator<Item: AsRef<OsStr>>,
    ) -> Self {
        Self::start_with(Stdio::piped(), Stdio::piped(), example, args)
    }

    fn start_with(
        stdin: Stdio,
        stdout: Stdio,
        example: &str,
        args: impl IntoIterator<Item: AsRef<OsStr>>,
    ) -> Self {
        let mut command = Command::new(path(example));
        command.args(args).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let child = SharedChild::spawn(&mut command).expect("the example is built");
        let mut stderr = child.take_stderr().expect("it is piped");
        let (line, lines) = mpsc::channel();
        if let Some(stdout) = child.take_stdout() {
            thread::spawn(move || {
                for read in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if line.send(read).is_err() {
                        break;
                    }
                }
            });
        }
        let (error, errors) = mpsc::channel();
        thread::spawn(move || {
            let mut read = String::new();
            let _ = stderr.read_to_string(&mut read);
            let _ = error.send(read);
        });
        let stdin = child.take_stdin();
        Self { child, stdin, lines, errors, stdout: Vec::new() }
    }

    /// Sends some lines of input.
    pub(crate) fn type_in(&mut self, lines: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("it was started with input");
        stdin.write_all(lines.as_ref()).expect("it still reads");
    }

    /// Returns the next line, or `None` at the end of the output.
    fn read_line(&mut self) -> Option<&str> {
        let line = next_of(&self.lines, format_args!("a line after {:?}", self.stdout))?;
        self.stdout.push(line);
        self.stdout.last().map(String::as_str)
    }

    /// Returns the next line that contains `part`.
    pub(crate) fn read_until(&mut self, part: &str) -> String {
        loop {
            let line = self.read_line().expect("it still runs");
            if line.contains(part) {
                return line.to_owned();
            }
        }
    }

    /// Reads one more line, and then closes the pipe, as `head` does.
    pub(crate) fn stop_reading(&mut self) {
        self.lines = mpsc::channel().1;
    }

    /// The number of its threads.
    #[cfg(target_os = "linux")]
    pub(crate) fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs").count()
    }

    /// Interrupts the program, as Ctrl-C does.
    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        use shared_child::unix::SharedChildExt;

        /// The number is the same on every unix.
        const SIGINT: i32 = 2;

        self.child.send_signal(SIGINT).expect("it runs");
    }

    /// Ends the input, and waits for the end of the program and of every command it has started:
    /// each has inherited stderr, which stays open while one of them lives.
    pub(crate) fn end(mut self) -> End {
        self.stdin = None;
        self.ended()
    }

    /// Waits likewise for a program that ends by itself, with its input still open.
    pub(crate) fn ended(mut self) -> End {
        // The lines of a program that writes for ever come one by one, and there is one patience for all.
        let mut patience = Patience::new();
        while self.read_line().is_some() {
            patience.go_on("the end of the output");
        }
        let stderr = receive(&self.errors, "no command survives");
        let status = loop {
            if let Some(status) = self.child.wait_timeout(TURN).expect("it can be waited for") {
                break status;
            }
            patience.go_on("it ends");
        };
        End { code: status.code(), stdout: std::mem::take(&mut self.stdout), stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl End {
    /// Returns `true` if a line contains all these parts, in this order.
    pub(crate) fn has_line(&self, parts: &[&str]) -> bool {
        self.stdout.iter().any(|line| has_in_order(line, parts))
    }

    /// Returns `true` if there are lines with these parts, in this order.
    pub(crate) fn has_lines(&self, parts: &[&str]) -> bool {
        has_in_order(&self.stdout.join("\n"), parts)
    }
}

/// Runs a program until it ends as it should. What it does by the system's clock is something else if the machine stands still
/// at the wrong moment, which costs one attempt; a factor by which to lengthen the program's own limits is given to `run`.
pub(crate) fn some_end(run: impl Fn(u64) -> End, is_right: impl Fn(&End) -> bool) {
    let mut wrong = Vec::new();
    for factor in [1, 3, 9, 27] {
        let end = run(factor);
        if is_right(&end) {
            return;
        }
        wrong.push(end);
    }
    panic!("it never ends as it should: {wrong:#?}");
}

fn has_in_order(text: &str, parts: &[&str]) -> bool {
    let mut rest = text;
    parts.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// A pipe whose reading end is closed.
#[cfg(unix)]
pub(crate) fn closed_pipe() -> Stdio {
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().expect("there is `true`");
    let mut pipe = reader.stdin.take().expect("it is piped");
    reader.wait().expect("it ends");
    // A process that another test starts meanwhile holds the other end for a moment too.
    while pipe.write_all(b".").is_ok() {}
    pipe.into()
}

/// A full disk.
#[cfg(target_os = "linux")]
pub(crate) fn full_disk() -> Stdio {
    fs::File::options().write(true).open("/dev/full").expect("Linux has it").into()
}

/// The path of an example, found from that of this test, `target/debug/deps/THIS`: the program of a package is
/// `target/debug/NAME`, and an example of the core `target/debug/examples/NAME`.
pub(crate) fn path(example: &str) -> PathBuf {
    let this = env::current_exe().expect("a test has a path");
    let profile = this.ancestors().nth(2).expect("it is deep in the target directory");
    let file = Path::new(example).with_extension(env::consts::EXE_EXTENSION);
    let places = [profile.join(&file), profile.join("examples").join(&file)];
    places.into_iter().find(|place| place.is_file()).unwrap_or_else(|| {
        panic!(
            "there is no {example} in {}: `cargo test --test` builds no examples, `cargo build --examples` does",
            profile.display()
        )
    })
}

/// A call of an example: its name, and its arguments.
pub(crate) type Call = (&'static str, &'static [&'static str]);

/// The end of an example, without the remark that it writes to standard error.
fn written_to(stdout: Stdio, (example, args): &Call) -> End {
    let mut end = Program::start_into(stdout, example, *args).end();
    let errors = end.stderr.lines().filter(|line| !line.starts_with("note: "));
    end.stderr = errors.collect::<Vec<_>>().join("\n");
    end
}

/// Asserts that each call ends quietly, and with success, when no process reads its output.
#[cfg(unix)]
pub(crate) fn end_quietly_when_unread(calls: &[Call]) {
    for call in calls {
        let end = written_to(closed_pipe(), call);
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{call:?}: {end:?}");
    }
}

/// Asserts that each call reports in one line that its output cannot be written, and ends without success.
#[cfg(target_os = "linux")]
pub(crate) fn report_a_full_disk(calls: &[Call]) {
    let expected = "error: cannot write the output: No space left on device (os error 28)";
    for call in calls {
        let end = written_to(full_disk(), call);
        assert_eq!((end.code, end.stderr.as_str()), (Some(1), expected), "{call:?}: {end:?}");
    }
}

/// A file for the program to read, which is removed on drop.
pub(crate) struct TempFile(PathBuf);

impl TempFile {
    pub(crate) fn new(extension: &str, text: impl AsRef<[u8]>) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-{}-{number}.{extension}", process::id());
        let path = env::temp_dir().join(name);
        fs::write(&path, text).expect("the temporary directory can be written");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
