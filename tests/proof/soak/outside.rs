//! The outer process: it starts the inner one, stops and continues it every few seconds, passes its
//! output on, and ends it if it does not end by itself or says that it has found a fault.
//!
//! Only the outer process asks the debugger for the stacks. A process that asks for its own is stopped
//! while it should read the answer, and the debugger waits without end once the pipe is full.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{self, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use shared_child::SharedChild;

use crate::{
    dice::Dice,
    ledger::GRACE,
    patience::{Patience, TURN},
};

/// This variable is set to the seed in the inner process.
pub(crate) const INSIDE: &str = "PUNCTUAL_SOAK_INSIDE";

/// What the inner process says when it has found a fault, and waits to be looked at.
const HAS_FAULT: &str = "soak: this is wrong";

/// Runs `test` of this program in a process of its own, and disturbs that process.
pub(crate) fn run(test: &str, seed: u64, length: Duration) {
    let mut command = Command::new(env::current_exe().expect("a test is a program"));
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, seed.to_string());
    let child = SharedChild::spawn(command.stdout(Stdio::piped())).expect("it starts");
    let lines = BufReader::new(child.take_stdout().expect("it is piped")).lines();
    let limit = Patience::of(length + 4 * GRACE);
    let has_fault = AtomicBool::new(false);
    let (status, stops) = thread::scope(|scope| {
        let disturbed = scope.spawn(|| disturb(&child, seed, limit, &has_fault));
        // The lines of the test's own harness are left out.
        for line in lines.map_while(Result::ok) {
            has_fault.fetch_or(line.contains(HAS_FAULT), Ordering::SeqCst);
            if let Some((_, said)) = line.split_once("soak: ") {
                println!("soak: {said}");
            }
        }
        disturbed.join().expect("it does not panic")
    });
    println!("soak: stopped and continued {stops} times");
    assert!(status.is_some_and(|status| status.success()), "it ended so: {status:?}");
}

/// Stops and continues the process until it ends. Returns its status, or `None` if it had to be
/// killed, and how often it was stopped.
fn disturb(
    child: &SharedChild,
    seed: u64,
    mut limit: Patience,
    has_fault: &AtomicBool,
) -> (Option<ExitStatus>, u64) {
    let (mut dice, mut stops) = (Dice::new(seed, 0, u64::MAX), 0);
    loop {
        let pause = Duration::from_millis(500) + dice.up_to_ms(3_500);
        if let Some(status) = ended_within(child, pause, &mut limit) {
            return (Some(status), stops);
        }
        if !limit.lasts() || has_fault.load(Ordering::SeqCst) {
            eprintln!("soak: it is ended\n{}", stacks_of(child.id()));
            child.kill().expect("it can be ended");
            return (None, stops);
        }
        if signal(child.id(), "STOP") {
            child.wait_timeout(dice.up_to_ms(800)).expect("it can be waited for");
            assert!(signal(child.id(), "CONT"), "what was stopped can be continued");
            stops += 1;
        }
    }
}

/// Waits for the end of the process for so long, turn by turn.
fn ended_within(child: &SharedChild, span: Duration, limit: &mut Patience) -> Option<ExitStatus> {
    let mut span = Patience::of(span);
    while span.lasts() && limit.lasts() {
        if let Some(status) = child.wait_timeout(TURN).expect("it can be waited for") {
            return Some(status);
        }
    }
    None
}

/// Sends a signal by way of the shell, which has `kill` wherever there are signals. Returns `true`
/// if it was sent.
fn signal(process: u32, name: &str) -> bool {
    let kill = format!("kill -{name} {process}");
    let sent = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
    cfg!(unix) && sent.is_ok_and(|status| status.success())
}

/// Ends the inner process, once the outer one has looked at its stacks.
pub(crate) fn end_as_faulty() -> ! {
    println!("{HAS_FAULT}");
    thread::sleep(2 * GRACE);
    process::exit(1)
}

/// The backtraces of all threads of a process, if a debugger is installed.
fn stacks_of(process: u32) -> String {
    let ask = ["-batch", "-ex", "thread apply all backtrace", "-p", &process.to_string()];
    match Command::new("gdb").args(ask).stdin(Stdio::null()).output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&said).into_owned()
        }
        Err(error) => format!("no stacks: gdb: {error}"),
    }
}
