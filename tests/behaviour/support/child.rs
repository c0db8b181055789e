//! A test that runs itself again, as a program of its own, which is then looked at.

use std::{
    env,
    process::{Command, Output, Stdio},
};

use super::in_time;

const CHILD: &str = "PUNCTUAL_TEST_CHILD";

/// Returns the test of this name as a program of its own; inside that program it returns `None`. `module` is the
/// `module_path!()` of the test.
pub fn again(module: &str, test: &str) -> Option<Command> {
    if env::var_os(CHILD).is_some() {
        return None;
    }
    let (_, module) = module.split_once("::").expect("not the root");
    let mut command = Command::new(env::current_exe().expect("a test is a program"));
    command.args(["--exact", &format!("{module}::{test}"), "--nocapture", "--test-threads=1"]);
    command.env(CHILD, "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// Runs the program to its end.
pub fn run(mut program: Command) -> Output {
    in_time("the program", move || program.output()).expect("it starts")
}

pub fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}\n{err}")
}

pub fn assert_fine(output: &Output) {
    assert!(output.status.success(), "{:?}: {}", output.status, said(output));
}
