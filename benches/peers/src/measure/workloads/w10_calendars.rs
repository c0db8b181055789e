//! W10: calendars.
//!
//! The next moment of an expression, each from the one before, sixteen in a row, and then from the
//! beginning again.

use std::{hint::black_box, time::Instant};

use anyhow::{Context, Result, ensure};

use crate::measure::{args::Args, calendar::Calendar, emit::Emitter};

/// Expressions that mean the same to all, none of whose times is ever missing or comes twice.
const EXPRESSIONS: [&str; 4] =
    ["0 */15 * * * *", "0 30 9 * * *", "0 0 9 * * MON-FRI", "0 0 12 29 2 *"];

const ZONE: &str = "America/New_York";

/// Noon on 1 January 2026, in UTC.
const BEGIN: u32 = 1_767_268_800;

/// As many as a calendar that ends with the century has leap days.
const IN_A_ROW: u64 = 16;

pub(in crate::measure) fn run<C: Calendar>(name: &str, args: &Args) -> Result<()> {
    let moments = args.number("N", 200_000)?.next_multiple_of(IN_A_ROW);
    for number in args.list("E", "0,1,2,3")? {
        let expression = EXPRESSIONS.get(number as usize).context("there is no such expression")?;
        let out = Emitter::new(name, "W10", &[("E", number), ("N", moments)]);
        let calendar = C::new(expression, ZONE);
        let reached = C::second(&rows(&calendar, moments / IN_A_ROW / 10));
        ensure!(reached > BEGIN.into(), "{expression}: after {BEGIN} comes {reached}");
        let start = Instant::now();
        black_box(rows(&calendar, moments / IN_A_ROW));
        out.emit("next_ns", start.elapsed().as_nanos() as f64 / moments as f64, "ns");
        let start = Instant::now();
        for _ in 0..moments / 10 {
            black_box(C::new(black_box(expression), ZONE));
        }
        out.emit("parse_ns", start.elapsed().as_nanos() as f64 / (moments / 10) as f64, "ns");
    }
    Ok(())
}

/// Asks for so many rows, and returns the last moment.
fn rows<C: Calendar>(calendar: &C, rows: u64) -> C::Moment {
    let mut moment = calendar.moment(BEGIN);
    for number in 0..rows * IN_A_ROW {
        if number % IN_A_ROW == 0 {
            moment = calendar.moment(BEGIN);
        }
        moment = calendar.next_after(black_box(&moment));
    }
    moment
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, EXPRESSIONS, IN_A_ROW, ZONE};
    use crate::measure::calendar::{Calendar, Cron, Croner, Punctual};

    fn found<C: Calendar>(expression: &str) -> Vec<i64> {
        let calendar = C::new(expression, ZONE);
        let mut moment = calendar.moment(BEGIN);
        let row = (0..IN_A_ROW).map(|_| {
            moment = calendar.next_after(&moment);
            C::second(&moment)
        });
        row.collect()
    }

    #[test]
    fn all_find_the_same_moments() {
        for expression in EXPRESSIONS {
            let ours = found::<Punctual>(expression);
            assert_eq!(ours, found::<Croner>(expression), "{expression}");
            assert_eq!(ours, found::<Cron>(expression), "{expression}");
        }
    }
}
