//! The errors for expressions in the forms of others: Quartz, systemd, and the cron of Go; and for zones that
//! are offsets.
//!
//! The parser asks once it has refused an expression, so one that is good costs nothing here. What the other
//! form means is written in ours, field by field, and proposed only if the parser accepts it. A form that has
//! no counterpart is explained.

use super::{
    CronError,
    expression::{DAY, Expression, HOUR, MINUTE, MONTH, SECOND, Unit, WEEKDAY},
};

/// The words of systemd. Its weeks begin on Monday.
const WORDS: [(&str, &str); 9] = [
    ("minutely", "* * * * *"),
    ("hourly", "@hourly"),
    ("daily", "@daily"),
    ("weekly", "0 0 * * MON"),
    ("monthly", "@monthly"),
    ("quarterly", "0 0 1 1,4,7,10 *"),
    ("semiannually", "0 0 1 1,7 *"),
    ("yearly", "@yearly"),
    ("annually", "@annually"),
];

/// Returns the error for an expression in another form, if it is in one.
pub(super) fn explain(text: &str) -> Option<CronError> {
    let begin = text.len() - text.trim_start().len();
    let text = text.trim();
    let message = of_go(text).or_else(|| of_quartz(text)).or_else(|| of_systemd(text))?;
    Some(CronError::syntax(begin..begin + text.len(), message))
}

/// Returns the expression if the parser accepts it, and if a day has to be in both of its day fields, as in the
/// other forms.
fn good(ours: String) -> Option<String> {
    Expression::read(&ours).is_ok_and(|parsed| !parsed.fields.either_day).then_some(ours)
}

/// `@every 5m` and `CRON_TZ=Europe/London 0 9 * * *`.
fn of_go(text: &str) -> Option<String> {
    if text.starts_with("@every") {
        let message = "`@every` is a period, and no time that a clock shows; use `trigger::every` in place \
                       of `trigger::cron`";
        return Some(message.to_owned());
    }
    let rest = text.strip_prefix("CRON_").unwrap_or(text).strip_prefix("TZ=")?;
    let (zone, ours) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let ours = Expression::read(ours).is_ok().then(|| format!("; write `{}`", ours.trim()));
    Some(format!("{zone:?} is the zone, an argument of its own{}", ours.unwrap_or_default()))
}

/// Returns the name that is meant by a zone: one without its white space, or an offset in hours.
pub(super) fn zone(text: &str) -> Option<String> {
    let name = text.trim();
    if name != text {
        return Some(name.to_owned());
    }
    let offset = name.strip_prefix("UTC").or_else(|| name.strip_prefix("GMT")).unwrap_or(name);
    let opposite = match offset.get(..1)? {
        "+" => '-',
        "-" => '+',
        _ => return None,
    };
    let hours = offset[1..].trim_end_matches(":00");
    let hours = hours.strip_suffix("00").filter(|hours| hours.len() == 2).unwrap_or(hours);
    Some(format!("Etc/GMT{opposite}{}", hours.parse::<u8>().ok()?))
}

/// Everything with a `?`.
fn of_quartz(text: &str) -> Option<String> {
    if !text.contains('?') {
        return None;
    }
    let words: Vec<_> = text.split_whitespace().collect();
    let fields = match words.as_slice() {
        [fields @ .., "*" | "?"] if fields.len() == 6 => fields,
        // Amazon's form has years, but no seconds.
        [fields @ .., "*"] if fields.len() == 5 && [fields[2], fields[4]].contains(&"?") => fields,
        all => all,
    };
    Some(match written(fields, 1).and_then(good) {
        Some(ours) => {
            format!("`?` is from Quartz, whose days of the week count from 1; write `{ours}`")
        }
        None => "`?` is from Quartz, whose days of the week count from 1, and which has years; use `*` in \
                 its place, the names of days, and `Trigger::until` for an end"
            .to_owned(),
    })
}

/// A word of systemd, or weekdays, a date, a time and a zone, each of which may be missing, as in
/// `Mon..Fri *-*-* 09:00 Europe/London`.
fn of_systemd(text: &str) -> Option<String> {
    let word = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    if let Some((_, ours)) = word {
        return Some(format!("`{text}` is from systemd; write `{ours}`"));
    }
    if !text.contains(':') && !text.contains("..") {
        return None;
    }
    let (mut weekdays, mut date, mut time, mut zone) = ("*", "*-*", "0:0", None);
    for word in text.split_whitespace() {
        match word {
            _ if word.contains(':') => time = word,
            _ if word.starts_with(|first: char| !first.is_ascii_alphabetic()) => date = word,
            _ if text.starts_with(word) => weekdays = word,
            _ => zone = Some(word),
        }
    }
    let ours =
        from_parts(weekdays, date, time).and_then(good).map(|ours| format!("write `{ours}`"));
    let ours = ours
        .as_deref()
        .unwrap_or("use fields for the minute, hour, day, month and day of the week, and no year");
    let zone = zone.map(|zone| format!("; {zone:?} is the zone, an argument of its own"));
    Some(format!("this is in the form of systemd; {ours}{}", zone.unwrap_or_default()))
}

fn from_parts(weekdays: &str, date: &str, time: &str) -> Option<String> {
    let date: Vec<_> = date.split('-').collect();
    let (month, day) = match date.as_slice() {
        ["*", month, day] | [month, day] => (month, day),
        _ => return None,
    };
    let time: Vec<_> = time.split(':').collect();
    let (hour, minute, second) = match time.as_slice() {
        [hour, minute] | [hour, minute, "00" | "0"] => (hour, minute, None),
        [hour, minute, second] => (hour, minute, Some(*second)),
        _ => return None,
    };
    let fields: Vec<_> = second.into_iter().chain([minute, hour, day, month, weekdays]).collect();
    written(&fields, 0)
}

/// Writes fields in our form, in which Sunday had this number.
fn written(fields: &[&str], sunday: u8) -> Option<String> {
    const UNITS: [Unit; 6] = [SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY];
    let units = UNITS.iter().skip(UNITS.len().checked_sub(fields.len())?);
    let fields = fields.iter().zip(units).map(|(field, unit)| {
        let items: Option<Vec<_>> = field.split(',').map(|text| item(text, unit, sunday)).collect();
        items.map(|items| items.join(","))
    });
    fields.collect::<Option<Vec<_>>>().map(|fields| fields.join(" "))
}

fn item(text: &str, unit: &Unit, sunday: u8) -> Option<String> {
    let value = |text: &str| value(text, unit, sunday);
    let special = text.strip_suffix(['L', 'l']).map(|day| (day, "L".to_owned()));
    let special =
        special.or_else(|| text.split_once('#').map(|(day, nth)| (day, format!("#{nth}"))));
    match special {
        Some(("", _)) if unit.is_weekday() => return Some("SAT".to_owned()),
        Some((day, rest)) if unit.is_weekday() => {
            let day = value(day)?;
            return Some(unit.written(day, day, 1) + &rest);
        }
        _ if unit.names.is_empty() && text.ends_with(['L', 'W', 'l', 'w']) => {
            return Some(text.to_owned());
        }
        _ => {}
    }
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step.parse().ok()?)),
        None => (text, None),
    };
    let (from, to) = match range.replace("..", "-").split_once('-') {
        Some((from, to)) => (value(from)?, value(to)?),
        None if matches!(range, "" | "*" | "?") => (unit.min, unit.last()),
        None if step.is_some() => (value(range)?, unit.last()),
        None => (value(range)?, value(range)?),
    };
    let step = step.unwrap_or(1);
    (1..=unit.len()).contains(&step).then(|| unit.written(from, to, step))
}

fn value(text: &str, unit: &Unit, sunday: u8) -> Option<u8> {
    let offset = if unit.is_weekday() { sunday } else { 0 };
    let number = || text.parse::<u8>().ok()?.checked_sub(offset);
    let value = unit.by_long_name(text).or_else(number)?;
    (unit.min..=unit.last()).contains(&value).then_some(value)
}
