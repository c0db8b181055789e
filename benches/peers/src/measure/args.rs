//! The parameters of a workload: `key=value`, each with a default.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// The parameters that were given.
pub(super) struct Args(BTreeMap<String, String>);

impl Args {
    pub(super) fn parse(args: &[String]) -> Result<Self> {
        let pairs = args.iter().map(|arg| {
            let (key, value) =
                arg.split_once('=').with_context(|| format!("not key=value: {arg}"))?;
            Ok((key.to_owned(), value.to_owned()))
        });
        pairs.collect::<Result<_>>().map(Self)
    }

    pub(super) fn text<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.0.get(key).map_or(default, String::as_str)
    }

    pub(super) fn number(&self, key: &str, default: u64) -> Result<u64> {
        self.0.get(key).map_or(Ok(default), |value| parse(key, value))
    }

    /// Numbers with commas between them.
    pub(super) fn list(&self, key: &str, default: &str) -> Result<Vec<u64>> {
        self.text(key, default).split(',').map(|value| parse(key, value)).collect()
    }
}

fn parse(key: &str, value: &str) -> Result<u64> {
    value.parse().with_context(|| format!("not a number: {key}={value}"))
}
