//! Numbers for readers: three significant digits.

use crate::results::Spread;

/// A ratio, or a figure without a unit.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// A figure with its unit, in the multiple of the unit that reads best.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    let (size, name) = multiple(value, unit);
    format!("{}{name}", number(value / size))
}

/// The median, and in parentheses the least and the most, all in one unit.
pub(super) fn with_range(spread: Spread, unit: &str) -> String {
    let (size, name) = multiple(spread.median, unit);
    let [median, min, max] =
        [spread.median, spread.min, spread.max].map(|value| number(value / size));
    format!("{median}{name} ({min}–{max})")
}

/// The multiple of the unit in which a value reads best, and its name.
fn multiple(value: f64, unit: &str) -> (f64, &str) {
    let size = value.abs();
    match unit {
        "ns" if size < 1e3 => (1.0, " ns"),
        "ns" => (1e3, " µs"),
        "us" if size < 1.0 => (1e-3, " ns"),
        "us" if size < 1e3 => (1.0, " µs"),
        "us" => (1e3, " ms"),
        "ms" => (1.0, " ms"),
        "B" if size < 1e4 => (1.0, " B"),
        "B" => (1e6, " MB"),
        "1/s" if size < 1e6 => (1e3, " k/s"),
        "1/s" => (1e6, " M/s"),
        "1" if size >= 1e6 => (1e6, " million"),
        _ => (1.0, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::{Spread, number, quantity, with_range};

    #[test]
    fn three_digits_count() {
        assert_eq!(number(0.8512), "0.85");
        assert_eq!(number(9.999), "10.0");
        assert_eq!(number(99.96), "100");
        assert_eq!(number(-12.34), "-12.3");
    }

    #[test]
    fn units_grow_with_the_value() {
        assert_eq!(quantity(96.4, "ns"), "96.4 ns");
        assert_eq!(quantity(12_340.0, "us"), "12.3 ms");
        assert_eq!(quantity(2_500_000.0, "1/s"), "2.50 M/s");
        assert_eq!(quantity(0.11, "us"), "110 ns");
        assert_eq!(quantity(0.5, "1"), "0.50");
        assert_eq!(quantity(2.5e9, "1"), "2500 million");
    }

    #[test]
    fn a_range_has_the_unit_of_its_median() {
        let spread = Spread { min: 900.0, median: 1100.0, max: 1200.0 };
        assert_eq!(with_range(spread, "us"), "1.10 ms (0.90–1.20)");
    }
}
