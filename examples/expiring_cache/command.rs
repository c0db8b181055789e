//! The line protocol: one command per line.

use std::{sync::Arc, time::Duration};

pub(crate) enum Command {
    Set { name: Arc<str>, lifetime: Duration, value: String },
    Get(Arc<str>),
    Del(Arc<str>),
    List,
    Quit,
}

impl Command {
    /// Returns `None` for an empty line and for a comment; an error is ready to be shown.
    pub(crate) fn parse(line: &str) -> Result<Option<Self>, String> {
        let (word, rest) = split_word(line);
        let command = match word {
            "" => return Ok(None),
            comment if comment.starts_with('#') => return Ok(None),
            "set" => Self::set(rest)?,
            "get" => Self::Get(only("get", "KEY", rest)?.into()),
            "del" => Self::Del(only("del", "KEY", rest)?.into()),
            "list" | "quit" if !rest.is_empty() => {
                return Err(format!("{word} stands alone; it was given {rest:?}"));
            }
            "list" => Self::List,
            "quit" => Self::Quit,
            other => {
                return Err(format!(
                    "there is no command {other:?}; there are set, get, del, list, quit"
                ));
            }
        };
        Ok(Some(command))
    }

    fn set(rest: &str) -> Result<Self, String> {
        let (name, rest) = split_word(rest);
        let (seconds, value) = split_word(rest);
        if value.is_empty() {
            return Err("set wants KEY SECONDS VALUE".to_owned());
        }
        let lifetime = parse_seconds(seconds)?;
        Ok(Self::Set { name: name.into(), lifetime, value: value.to_owned() })
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| format!("SECONDS is a number, and not {text:?}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{text} seconds: {error}"))
}

/// Returns the only argument of a command.
fn only<'a>(command: &str, what: &str, rest: &'a str) -> Result<&'a str, String> {
    match split_word(rest) {
        ("", _) => Err(format!("{command} wants a {what}")),
        (word, "") => Ok(word),
        _ => Err(format!("{command} wants one {what}; it was given {rest:?}")),
    }
}

/// Returns the first word, and the rest.
fn split_word(line: &str) -> (&str, &str) {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (word, rest.trim_start())
}
