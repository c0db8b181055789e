//! Payloads: the text that a job takes to wherever it runs.
//!
//! A payload is written as JSON when the job is enqueued, and read when a handler is called. Between the
//! two it is a text that nothing parses, on either queue: what a parser in the middle does to numbers and keys
//! cannot happen.
//!
//! The sender reads it once as well: a job that no run could read, because a number in it is not finite or its type does
//! not read what it writes, would fail in each of its attempts, days later and elsewhere.

use std::{fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::error::Category;

use crate::{Job, JobError};

/// The JSON of a job. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Payload(Arc<str>);

impl Payload {
    /// Writes the job, and reads it once. Fails with the error of either step.
    pub(crate) fn of<J: Job>(job: &J) -> Result<Self, serde_json::Error> {
        let text = serde_json::to_string(job)?;
        serde_json::from_str::<J>(&text)?;
        Ok(Self(text.into()))
    }

    /// Writes a value.
    pub(crate) fn of_value<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::to_string(value)?.into()))
    }

    /// Makes a value again.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Makes the job again. The error says what kind of fault there is, and where. What serde says beyond that
    /// quotes the payload, and an error is stored and printed.
    pub(crate) fn read<J: Job>(&self) -> Result<J, JobError> {
        serde_json::from_str(&self.0).map_err(|error: serde_json::Error| {
            let fault = match error.classify() {
                Category::Data => "it does not fit the type of the kind",
                Category::Eof => "it ends too early",
                Category::Syntax | Category::Io => "it is not JSON",
            };
            let (name, line, column) = (J::NAME, error.line(), error.column());
            JobError::new(format_args!(
                "the payload of the job {name:?} cannot be decoded: {fault}, at line {line} column {column}"
            ))
        })
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns the payload for a report, as it was sent: a value of JSON has no number as large as a `u128`.
    pub(crate) fn to_text(&self) -> String {
        (*self.0).to_owned()
    }
}

/// Leaves out what the payload says: a program's log is no place for it.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

#[cfg(feature = "postgres")]
mod in_tables {
    use std::error::Error;

    use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, private::BytesMut, to_sql_checked};

    use super::Payload;

    type Failure = Box<dyn Error + Sync + Send>;

    /// Of its own, because the driver logs parameters as they print themselves.
    impl ToSql for Payload {
        fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
            (&*self.0).to_sql(ty, out)
        }

        fn accepts(ty: &Type) -> bool {
            <&str as ToSql>::accepts(ty)
        }

        to_sql_checked!();
    }

    impl<'a> FromSql<'a> for Payload {
        fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
            // A database without an encoding may have anything there. This text is no JSON, so the attempt fails.
            Ok(Self(<&str>::from_sql(ty, raw).unwrap_or("not UTF-8").into()))
        }

        fn accepts(ty: &Type) -> bool {
            <&str as FromSql<'_>>::accepts(ty)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Secret {
        number: f64,
        most: u128,
    }

    impl Job for Secret {
        const NAME: &'static str = "secret";
    }

    #[test]
    fn what_is_read_is_what_was_written_and_is_not_printed() {
        let job = Secret { number: 5e-324, most: u128::MAX };
        let payload = Payload::of(&job).expect("it is JSON");
        assert_eq!(payload.read::<Secret>().expect("it is JSON"), job);
        assert!(format!("{payload:?}").ends_with(" bytes"));
    }

    /// JSON has no such numbers, and serde writes `null` for them, which is no number.
    #[test]
    fn a_number_that_is_not_finite_is_refused() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Payload::of(&Secret { number, most: 0 }).expect_err("nothing can read it");
            assert!(error.is_data(), "{error}");
        }
    }
}
