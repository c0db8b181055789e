//! What is outside of the process that soaks: it starts it, stops and continues it every few
//! seconds, passes on what it says, and ends it if it does not end by itself.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use shared_child::SharedChild;

use crate::{dice::Dice, ledger::GRACE};

/// Set, to the seed, in the process that soaks.
pub(crate) const INSIDE: &str = "PUNCTUAL_SOAK_INSIDE";

/// Runs `test` of this program in a process of its own, and disturbs it.
pub(crate) fn run(test: &str, seed: u64, length: Duration) {
    let mut command = Command::new(env::current_exe().expect("a test is a program"));
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, seed.to_string());
    let child = SharedChild::spawn(command.stdout(Stdio::piped())).expect("it starts");
    let lines = BufReader::new(child.take_stdout().expect("it is piped")).lines();
    let limit = Instant::now() + length + 4 * GRACE;
    let (status, stops) = thread::scope(|scope| {
        let disturbed = scope.spawn(|| disturb(&child, seed, limit));
        // The lines of the test's own harness are nobody's business.
        for line in lines.map_while(Result::ok) {
            if let Some((_, said)) = line.split_once("soak: ") {
                println!("soak: {said}");
            }
        }
        disturbed.join().expect("it does not panic")
    });
    println!("soak: stopped and continued {stops} times");
    assert!(status.is_some_and(|status| status.success()), "it ended so: {status:?}");
}

/// Until it ends; with nothing if it had to be ended. And how often it was stopped.
fn disturb(child: &SharedChild, seed: u64, limit: Instant) -> (Option<ExitStatus>, u64) {
    let (mut dice, mut stops) = (Dice::new(seed, 0, u64::MAX), 0);
    loop {
        let pause = Duration::from_millis(500) + dice.up_to_ms(3_500);
        if let Some(status) = child.wait_timeout(pause).expect("it can be waited for") {
            return (Some(status), stops);
        }
        if Instant::now() > limit {
            eprintln!("soak: it does not end\n{}", stacks_of(child.id()));
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

/// Whether it was sent. By the shell, which has `kill` wherever there are signals.
fn signal(process: u32, name: &str) -> bool {
    let kill = format!("kill -{name} {process}");
    let sent = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
    cfg!(unix) && sent.is_ok_and(|status| status.success())
}

/// Where all the threads of a process are, if a debugger is here to ask.
pub(crate) fn stacks_of(process: u32) -> String {
    let ask = ["-batch", "-ex", "thread apply all backtrace", "-p", &process.to_string()];
    match Command::new("gdb").args(ask).stdin(Stdio::null()).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => format!("no stacks: gdb: {error}"),
    }
}
