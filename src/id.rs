//! The id of a task (a number for programs, a short text for people), and the task and run that a report is about.
//!
//! The number is the task's sequence number in the queue. In decimal, that number has many digits. So the text is in
//! base 32, in groups of four digits, without the letters that look like digits (Crockford's alphabet). On Linux the
//! text has up to seven digits in an executor's first second, and eleven after a week.

use std::{error::Error, fmt, str::FromStr};

use crate::sync::Arc;

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BITS: u32 = DIGITS.len().trailing_zeros();
/// The number of digits of the largest id.
const LONGEST: u32 = u64::BITS.div_ceil(BITS);
const GROUP: u32 = 4;

/// The id of a task, unique within its executor. Ids are in the order of submission: a task that was
/// submitted before another, in whichever thread, has the smaller id.
///
/// `Display` writes a short text that people can read and type, and [`FromStr`] parses it; logs,
/// reports and spans show the same text.
///
/// ```
/// use punctual::{ScheduledThreadPoolExecutor, TaskId};
///
/// let executor = ScheduledThreadPoolExecutor::new(1);
/// let id = executor.submit(|| ())?.id();
/// let text = id.to_string(); // groups of four digits and letters
/// assert_eq!(text.to_uppercase().replace('-', "").parse::<TaskId>()?, id);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(crate) u64);

impl TaskId {
    /// Returns the id as a number, for programs. Numbers are not consecutive.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = (u64::BITS - self.0.leading_zeros()).div_ceil(BITS).max(1);
        let mut text = String::with_capacity((LONGEST + LONGEST / GROUP) as usize);
        for place in (0..digits).rev() {
            let digit = (self.0 >> (place * BITS)) as usize % DIGITS.len();
            text.push(char::from(DIGITS[digit]));
            if place > 0 && place % GROUP == 0 {
                text.push('-');
            }
        }
        f.pad(&text)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({self})")
    }
}

impl FromStr for TaskId {
    type Err = ParseTaskIdError;

    /// Parses what `Display` writes. Case makes no difference. Dashes may be missing, or stand between any two digits.
    /// The letters `o`, `i` and `l` count as the digits they look like. A dash at the beginning or at the end is an
    /// error, so that no negative number parses. Signs and spaces are errors too.
    fn from_str(text: &str) -> Result<Self, ParseTaskIdError> {
        let (mut number, mut may_be_dash) = (0, false);
        for byte in text.bytes() {
            if byte == b'-' && may_be_dash {
                may_be_dash = false;
                continue;
            }
            number = append(number, byte).ok_or(ParseTaskIdError(()))?;
            may_be_dash = true;
        }
        // A text without a digit, or one that ends with a dash, is not complete.
        if may_be_dash { Ok(Self(number)) } else { Err(ParseTaskIdError(())) }
    }
}

/// The task and the run that a report is about.
#[derive(Debug, Default)]
pub(crate) struct Subject {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) run: Option<u64>,
    pub(crate) attempt: Option<Attempt>,
}

/// `task "mirror" (2v-9qk0)`, or as much as is known.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_known = self.id.is_some() || self.name.is_some();
        f.write_str(if is_known { "task" } else { "a task" })?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        self.id.map_or(Ok(()), |id| write!(f, " ({})", TaskId(id)))
    }
}

/// Which attempt a run is, by a trigger that tries failed runs again; from
/// [`FailureReport::attempt`](crate::FailureReport::attempt). Its `Display` is `2 of 5`, or `2` if there is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// The most attempts that are made, if there is a limit.
    pub of: Option<u32>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        self.of.map_or(Ok(()), |of| write!(f, " of {of}"))
    }
}

/// Returns `number` with `digit` appended; `None` if `digit` is not a digit, or if the result would be too large.
fn append(number: u64, digit: u8) -> Option<u64> {
    let digit = match digit.to_ascii_lowercase() {
        b'o' => b'0',
        b'i' | b'l' => b'1',
        digit => digit,
    };
    let value = DIGITS.iter().position(|known| *known == digit)?;
    Some(number.checked_mul(DIGITS.len() as u64)? | value as u64)
}

/// The error of parsing a text that is not the id of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTaskIdError(());

impl fmt::Display for ParseTaskIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a task id: expected up to 13 digits and letters, such as 2v-9qk0")
    }
}

impl Error for ParseTaskIdError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_the_way_there_and_back() {
        let known = [
            (0, "0"),
            (31, "z"),
            (32, "10"),
            ((1 << 20) - 1, "zzzz"),
            (1 << 20, "1-0000"),
            (u64::MAX, "f-zzzz-zzzz-zzzz"),
        ];
        for (number, text) in known {
            assert_eq!(TaskId(number).to_string(), text);
            assert_eq!(text.parse(), Ok(TaskId(number)));
            assert_eq!(text.to_uppercase().parse(), Ok(TaskId(number)));
        }
        for bits in 0..64 {
            let id = TaskId(0x9e37_79b9_7f4a_7c15 >> bits);
            assert_eq!(id.to_string().replace('-', "").parse(), Ok(id));
        }
        assert_eq!("oil".parse(), Ok(TaskId((1 << 5) + 1)));
        assert_eq!(format!("{:>6}|{:?}", TaskId(32), TaskId(32)), "    10|TaskId(10)");
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in ["", "-", "u", "1 2", "é", "g-0000-0000-0000", "1-0000-0000-0000-0000"] {
            assert_eq!(text.parse::<TaskId>(), Err(ParseTaskIdError(())), "{text}");
        }
        for text in ["-1", "+1", "--1", "1-", "1--0", " 1", "1 ", "1.0", "-", "1-+1"] {
            assert_eq!(text.parse::<TaskId>(), Err(ParseTaskIdError(())), "{text}");
        }
        assert!(ParseTaskIdError(()).to_string().contains("2v-9qk0"));
    }

    /// Returns the digits of a text, as `Display` writes them, without leading zeros.
    fn digits(text: &str) -> String {
        let plain: String = text
            .to_ascii_lowercase()
            .chars()
            .filter(|letter| *letter != '-')
            .map(|letter| match letter {
                'o' => '0',
                'i' | 'l' => '1',
                letter => letter,
            })
            .collect();
        plain.trim_start_matches('0').to_owned()
    }

    proptest::proptest! {
        #[test]
        fn every_id_comes_back(number: u64) {
            let text = TaskId(number).to_string();
            proptest::prop_assert_eq!(text.parse(), Ok(TaskId(number)));
        }

        /// A text that parses has the same digits as its id, and begins and ends with a digit.
        #[test]
        fn a_text_that_is_parsed_is_its_id(text in "[-+ 0-9a-zA-Zéß]{0,15}") {
            if let Ok(id) = text.parse::<TaskId>() {
                proptest::prop_assert_eq!(digits(&text), digits(&id.to_string()));
                let is_digit = |letter: char| letter.is_ascii_alphanumeric();
                proptest::prop_assert!(text.starts_with(is_digit) && text.ends_with(is_digit));
            }
        }
    }
}
