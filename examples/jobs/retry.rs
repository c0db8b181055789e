//! `retry`: how often a command that fails is tried.

use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::values::Readable;

/// How often a command that fails is tried within one run, and how long to wait between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// How often it is tried, the first time included.
    pub(crate) attempts: u32,
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Retry {
    /// The wait after so many failures: twice as long as the one before, up to the longest.
    pub(crate) fn pause_after(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

/// `retry` as written: a number of attempts, or a table.
#[derive(Clone, Copy)]
pub(crate) struct Attempts {
    attempts: u32,
    first: Option<Readable>,
    longest: Option<Readable>,
}

impl Attempts {
    pub(crate) fn check(self) -> Result<Retry, &'static str> {
        let first = self.first.map_or(Duration::from_secs(1), |first| first.0);
        let longest = self.longest.map_or(first.max(Duration::from_secs(60)), |longest| longest.0);
        if self.attempts == 0 {
            Err("a command is tried once at least; write `retry = 2`, or leave the key out")
        } else if longest < first {
            Err("`longest` is shorter than `first`; make it longer, or leave it out")
        } else {
            Ok(Retry { attempts: self.attempts, first, longest })
        }
    }
}

impl<'de> Deserialize<'de> for Attempts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttemptsVisitor)
    }
}

// An untagged enum would hide what is wrong inside the table.
struct AttemptsVisitor;

impl<'de> Visitor<'de> for AttemptsVisitor {
    type Value = Attempts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of attempts, or { attempts = 3, first = \"1s\", longest = \"1min\" }")
    }

    fn visit_i64<E: de::Error>(self, attempts: i64) -> Result<Attempts, E> {
        let attempts = u32::try_from(attempts)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(attempts), &self))?;
        Ok(Attempts { attempts, first: None, longest: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Attempts, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            attempts: u32,
            first: Option<Readable>,
            longest: Option<Readable>,
        }
        let Fields { attempts, first, longest } =
            Fields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Attempts { attempts, first, longest })
    }
}
