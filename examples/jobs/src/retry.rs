//! `retry`: how often a command that fails is tried.

use std::{fmt, time::Duration};

use punctual::Backoff;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::values::Readable;

/// `retry` as written: a number of attempts, or a table.
#[derive(Clone, Copy)]
pub(crate) struct Attempts {
    attempts: u32,
    first: Option<Readable>,
    longest: Option<Readable>,
}

impl Attempts {
    pub(crate) fn check(self) -> Result<Backoff, &'static str> {
        let first = self.first.map_or(Duration::from_secs(1), |first| first.0);
        let longest = self.longest.map_or(first.max(Duration::from_secs(60)), |longest| longest.0);
        if self.attempts == 0 {
            Err("a command is tried once at least; write `retry = 2`, or leave the key out")
        } else if longest < first {
            Err("`longest` is shorter than `first`; make it longer, or leave it out")
        } else {
            Ok(Backoff::exponential(first..=longest).max_attempts(self.attempts))
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
