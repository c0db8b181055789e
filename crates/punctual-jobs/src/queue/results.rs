//! Results: what a handler returns is stored for a while, and awaited elsewhere, by the id of the job.
//!
//! A result is a text, as a payload is. It is written by the step that ends the run, so a job that has succeeded and has a result
//! is never seen without it; and it goes when its time is over, whether it was read or not.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use crate::{JobError, job::payload::Payload};

/// A value that a handler has returned, as JSON. It prints its length alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobValue(pub(crate) Payload);

impl JobValue {
    /// Makes the value again.
    ///
    /// # Errors
    ///
    /// That of serde, if it is of another type.
    pub fn read<R: DeserializeOwned>(&self) -> Result<R, serde_json::Error> {
        self.0.parse()
    }
}

/// What a run that has succeeded leaves, and for how long.
#[derive(Clone)]
pub(crate) struct Returned {
    pub(crate) value: Payload,
    pub(crate) keep: Duration,
}

impl Returned {
    pub(crate) fn new<R: Serialize>(value: &R, keep: Duration) -> Result<Self, JobError> {
        let failed =
            |error| JobError::new(format_args!("the result cannot be made into JSON: {error}"));
        Ok(Self { value: Payload::of_value(value).map_err(failed)?, keep })
    }
}
