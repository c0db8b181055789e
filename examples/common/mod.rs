//! The command-line support that every example needs: output that cannot be written, error
//! messages, arguments, and input that is not text.
//!
//! **Output that cannot be written** ends an example as it ends other tools. If the pipe is closed
//! (`| head -1`), the reader has gone: the example ends quietly, and with success. Anything else,
//! such as a full disk, is an error: one line on standard error, and exit code 1. `println!` would
//! panic in either case.
//!
//! **Exit codes** are 0 for success, 1 for work that failed, and 2 for a wrong command line or a
//! broken input file.

use std::{
    error::Error,
    fmt, fs,
    io::{self, Write},
    path::Path,
    process::{self, ExitCode},
    str,
};

use lexopt::{Arg, Parser};

/// Writes a line to standard output, in one piece. If that fails it ends the program, from any
/// thread: the main thread may be waiting for input that never comes.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = writeln!(stdout, "{line}") {
        // Standard output is still locked, so only one of several threads complains.
        process::exit(unwritten(&error).into());
    }
}

/// Writes a line likewise, for a program that has something to do before it ends.
pub(crate) fn try_say(line: fmt::Arguments<'_>) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}")
}

/// Returns the exit code of a program whose output could not be written, after reporting it if it
/// is an error.
pub(crate) fn unwritten(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return 0;
    }
    complain(format_args!("error: cannot write the output: {error}"));
    1
}

/// Writes a line to standard error. If that cannot be written either, there is no way to report it.
pub(crate) fn complain(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Returns the exit code for the outcome of a program's work.
pub(crate) fn end(result: Result<(), Box<dyn Error + Send + Sync>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the exit code after a wrong command line or a broken file.
pub(crate) fn refuse(cause: &str) -> ExitCode {
    complain(format_args!("error: {cause}"));
    ExitCode::from(2)
}

/// Reads the command line with `parse`, which returns `None` if only the usage is asked for. If
/// there is nothing to do, the error is the program's exit code.
pub(crate) fn options<T>(
    usage: &str,
    parse: impl FnOnce(&mut Parser) -> Result<Option<T>, String>,
) -> Result<T, ExitCode> {
    match parse(&mut Parser::from_env()) {
        Ok(Some(options)) => Ok(options),
        Ok(None) => {
            say(format_args!("{usage}"));
            Err(ExitCode::SUCCESS)
        }
        Err(cause) => Err(refuse(&format!("{cause}\n\n{usage}"))),
    }
}

/// Returns the next option, or the next argument that is not an option.
pub(crate) fn next(args: &mut Parser) -> Result<Option<Arg<'_>>, String> {
    args.next().map_err(|error| error.to_string())
}

/// Returns the value of an option, as in `--for 1s` or `--for=1s`; `what` names the value if it is
/// missing.
pub(crate) fn value(args: &mut Parser, option: &str, what: &str) -> Result<String, String> {
    let value = args.value().map_err(|_| format!("{option} wants {what}"))?;
    Ok(value.to_string_lossy().into_owned())
}

/// Returns the message about an unknown argument.
pub(crate) fn unknown(arg: Arg<'_>) -> String {
    match arg {
        Arg::Short(letter) => format!("unknown option -{letter}"),
        Arg::Long(name) => format!("unknown option --{name}"),
        Arg::Value(value) => format!("unknown argument {}", value.to_string_lossy()),
    }
}

/// Reads a text file; an error is ready to be shown, and says where the file is not text.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    match text(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(NotText { line, column, cause }) => Err(format!("{shown}:{line}:{column}: {cause}")),
    }
}

/// The text of a line of standard input; an error is ready to be shown, and says where it is not
/// text.
pub(crate) fn typed(bytes: &[u8], number: usize) -> Result<&str, String> {
    text(bytes).map_err(|NotText { column, cause, .. }| {
        let shown = String::from_utf8_lossy(bytes);
        format!("line {number}, column {column}: {cause}: {shown:?}")
    })
}

/// The position where bytes are not text; the column counts characters. Both begin with 1.
struct NotText {
    line: usize,
    column: usize,
    cause: String,
}

fn text(bytes: &[u8]) -> Result<&str, NotText> {
    str::from_utf8(bytes).map_err(|error| {
        let (before, rest) = bytes.split_at(error.valid_up_to());
        let before = str::from_utf8(before).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let byte = rest.first().copied().unwrap_or_default();
        NotText {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            cause: format!("it is not text in UTF-8, because of the byte 0x{byte:02x}"),
        }
    })
}
