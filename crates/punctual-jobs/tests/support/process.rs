//! Processes that die with the test, however it dies.
//!
//! The system kills a child when the *thread* that has started it ends, so one thread starts all of them, and
//! lives as long as the process.

use std::{
    ffi::OsStr,
    io,
    path::Path,
    process::{Child, Command},
    sync::{
        LazyLock,
        mpsc::{Sender, channel},
    },
    thread,
};

use rustix::process::{Pid, Signal, kill_process};

type Order = (Command, Sender<io::Result<Child>>);

static STARTER: LazyLock<Sender<Order>> = LazyLock::new(|| {
    let (orders, receiver) = channel::<Order>();
    let serve = move || {
        for (mut command, reply) in receiver {
            drop(reply.send(command.spawn()));
        }
    };
    thread::Builder::new().name("starter".to_owned()).spawn(serve).unwrap();
    orders
});

/// Returns a command for a program that is killed when this process is gone, and that sees this clock.
pub(crate) fn mortal(program: impl AsRef<OsStr>, clock: Option<Clock<'_>>) -> Command {
    wrapped(&[], program.as_ref(), clock)
}

/// The same for a program of the database, as the package's own user if this one is root: they refuse root.
pub(crate) fn mortal_as_server(program: impl AsRef<OsStr>, clock: Option<Clock<'_>>) -> Command {
    let as_user = ["--reuid=postgres", "--regid=postgres", "--init-groups"];
    let is_root = rustix::process::geteuid().is_root();
    wrapped(if is_root { &as_user } else { &[] }, program.as_ref(), clock)
}

fn wrapped(privileges: &[&str], program: &OsStr, clock: Option<Clock<'_>>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(privileges).arg("--pdeathsig=KILL");
    if let Some(clock) = clock {
        // Only for the program itself: what the library shares it makes as the user that it is first loaded by.
        command.arg("env").args(clock.environment());
    }
    command.arg(program);
    command
}

/// Starts it.
pub(crate) fn start(command: Command) -> Child {
    let (reply, started) = channel();
    let shown = format!("{command:?}");
    STARTER.send((command, reply)).unwrap();
    started.recv().unwrap().unwrap_or_else(|error| panic!("{shown}: {error}; see ci/beyond.sh"))
}

/// Sends a signal to a child.
pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(pid(child), signal).unwrap();
}

pub(crate) fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// Returns the children of a process.
pub(crate) fn children(of: Pid) -> Vec<Pid> {
    let parent = |pid: &str| {
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok()?;
        // Behind the name, which is in parentheses: the state, and the parent.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    let names = std::fs::read_dir("/proc").unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| parent(name) == Some(of.as_raw_nonzero().get()))
        .filter_map(|name| Pid::from_raw(name.parse().ok()?))
        .collect()
}

/// A clock that is not the machine's. Timers go on as they are.
#[derive(Clone, Copy)]
pub(crate) enum Clock<'a> {
    /// So many seconds ahead.
    Ahead(i32),
    /// The offset that this file holds, as `+7s`.
    File(&'a Path),
}

impl Clock<'_> {
    fn environment(self) -> [String; 4] {
        let library = std::fs::read_dir("/usr/lib").unwrap().flatten();
        let mut library = library.map(|it| it.path().join("faketime/libfaketimeMT.so.1"));
        let library = library.find(|path| path.exists());
        let library = library.expect("libfaketime is installed by ci/beyond.sh");
        let clock = match self {
            Self::Ahead(seconds) => format!("FAKETIME={seconds:+}s"),
            Self::File(file) => format!("FAKETIME_TIMESTAMP_FILE={}", file.display()),
        };
        [
            format!("LD_PRELOAD={}", library.display()),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
            "FAKETIME_NO_CACHE=1".to_owned(),
            clock,
        ]
    }
}
