//! The meaning of an expression's text, and the errors for a text that has none.

use proptest::{collection::vec, prelude::*};

use super::super::{CronError, CronErrorKind, expression::Expression, fields::Fields};

fn parse(text: &str) -> Expression {
    Expression::parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

fn refused(text: &str) -> CronError {
    Expression::parse(text).expect_err(text)
}

/// Several ways to write the same expression.
#[test]
fn what_means_the_same_is_the_same() {
    let same = [
        ("@yearly", "0 0 1 1 *"),
        ("@Annually", "0 0 1 JAN *"),
        ("@monthly", "0 0 1 * *"),
        (" @weekly\n", "0 0 * * SUN"),
        ("@daily", "0 0 * * *"),
        ("@MIDNIGHT", "00 00 * * *"),
        ("@hourly", "0 * * * *"),
        ("\t5  4\u{a0}* * *  ", "5 4 * * *"),
        ("0 5 4 * * *", "5 4 * * *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * fri-Sun", "0 0 * * 0,5,6"),
        ("0 0 * * 5-7", "0 0 * * 5-0"),
        ("0 0 * * 0-7", "0 0 * * *"),
        ("0 0 * * SUN-SAT", "0 0 * * 0-6"),
        ("0 0 * * 7L,7#1", "0 0 * * SUNL,sun#1"),
        ("0 0 l,lw,15w * *", "0 0 L,LW,15W * *"),
        ("0 0 1 jan-mar/2 *", "0 0 1 1,3 *"),
        ("*/60 */24 */31 */12 *", "0 0 1 1 *"),
        ("0 0 * * */7", "0 0 * * SUN"),
        ("1,2,2-3,1 * * * *", "1-3 * * * *"),
    ];
    for (one, other) in same {
        // The days that match are compared, since a field that begins with `*` may mean the same as one that does not.
        let [one, other] = [one, other].map(|text| (text, parse(text).fields));
        let dates = (0..4 * 365).map(|day| day * 86_400 + 1_700_000_000 / 86_400 * 86_400);
        for date in dates {
            let [first, second] =
                [&one, &other].map(|(_, fields)| fields.first_within(date, date + 86_400));
            assert_eq!(first, second, "`{}` and `{}`", one.0, other.0);
        }
    }
}

/// The default policy depends on how the second, the minute and the hour begin.
#[test]
fn an_interval_is_what_begins_with_a_star() {
    for text in ["* * * * *", "0 * * * *", "*/5 2 * * *", "30 */2 * * *", "* 0 0 * * *", "@hourly"]
    {
        assert!(parse(text).is_wildcard, "{text}");
    }
    assert!(parse("*,5 0 * * *").is_wildcard);
    for text in ["0 0 * * *", "0-59 1-3 * * *", "5,*/15 0 * * *", "0 0 0 * * *", "@daily"] {
        assert!(!parse(text).is_wildcard, "{text}");
    }
}

/// Returns the first four matching days from 1 January 2026, a Thursday, on.
fn days(text: &str) -> Vec<String> {
    let fields = parse(text).fields;
    let begin = super::second("2026-01-01T00:00:00Z");
    let all = std::iter::successors(fields.first_within(begin, i64::MAX), |last| {
        fields.first_within(last + 1, i64::MAX)
    });
    all.take(4)
        .map(|second| {
            jiff::Timestamp::from_second(second).expect("near").strftime("%m-%d").to_string()
        })
        .collect()
}

/// The day fields are alternatives only if neither begins with `*`.
#[test]
fn a_day_field_that_begins_with_a_star_restricts_the_other() {
    assert_eq!(days("0 0 13 * FRI"), ["01-02", "01-09", "01-13", "01-16"]);
    assert_eq!(days("0 0 */2 * FRI"), ["01-09", "01-23", "02-13", "02-27"]);
    assert_eq!(days("0 0 13 * */5"), ["02-13", "03-13", "09-13", "11-13"]);
}

/// The last day, the nearest weekday and the nth weekday of a month.
#[test]
fn last_nearest_and_nth_days_are_found() {
    assert_eq!(days("0 0 L * *"), ["01-31", "02-28", "03-31", "04-30"]);
    // The last days of January, February and May 2026 are at weekends.
    assert_eq!(days("0 0 LW * *"), ["01-30", "02-27", "03-31", "04-30"]);
    // 1 February is a Sunday; so is 1 March.
    assert_eq!(days("0 0 1W * *"), ["01-01", "02-02", "03-02", "04-01"]);
    // 31 January is a Saturday; 31 May is a Sunday; not every month has that day.
    assert_eq!(days("0 0 31W * *"), ["01-30", "03-31", "05-29", "07-31"]);
    assert_eq!(days("0 0 * * FRIL"), ["01-30", "02-27", "03-27", "04-24"]);
    assert_eq!(days("0 0 * * 4#5"), ["01-29", "04-30", "07-30", "10-29"]);
    assert_eq!(days("0 0 15W,L * MON#1"), ["01-05", "01-15", "01-31", "02-02"]);
}

/// Each error says what was found, what is allowed, and where.
#[test]
fn each_fault_is_shown_and_explained() {
    let faults = [
        ("60 * * * *", "60", "`60` is not a minute; use 0 to 59"),
        ("* 24 * * *", "24", "`24` is not an hour; use 0 to 23"),
        ("0 0 0 * *", "0", "`0` is not a day of the month; use 1 to 31"),
        ("0 0 1 13 *", "13", "`13` is not a month; use 1 to 12, or JAN to DEC"),
        ("0 0 * * 8", "8", "`8` is not a day of the week; use 0 to 7, or SUN to SAT"),
        ("0 0 * * NODAY", "NODAY", "`NODAY` is not a day of the week; use 0 to 7, or SUN to SAT"),
        (
            "0 0 * * MONDAY",
            "MONDAY",
            "`MONDAY` is not a day of the week; use 0 to 7, or SUN to SAT",
        ),
        (
            "0 0 * * L",
            "L",
            "`L` does not say which day of the week; write `SATL` for the last Saturday of the month, \
             or write `SAT` for each Saturday",
        ),
        ("0 0 1-5W * *", "1-5", "`1-5` is not a day of the month; use 1 to 31"),
        ("0 0 * * 1,+2", "+2", "`+2` is not a day of the week; use 0 to 7, or SUN to SAT"),
        ("é * * * *", "é", "`é` is not a minute; use 0 to 59"),
        ("99 * * * * *", "99", "`99` is not a second; use 0 to 59"),
        ("0 9-25 * * *", "25", "`25` is not an hour; use 0 to 23"),
        ("1,,2 * * * *", "", "a minute is missing; use 0 to 59"),
        ("- * * * *", "", "a minute is missing; use 0 to 59"),
        ("*/90 * * * *", "90", "`90` is not a step; use 1 to 60"),
        ("*/0 * * * *", "0", "`0` is not a step; use 1 to 60"),
        ("0 0 * * */8", "8", "`8` is not a step; use 1 to 7"),
        ("*/ * * * *", "", "`` is not a step; use 1 to 60"),
        ("5/15 * * * *", "5/15", "`5/15` has a step but no range; write `5-59/15`"),
        ("0/15 * * * *", "0/15", "`0/15` has a step but no range; write `*/15`"),
        ("0 22-2/3 * * *", "22-2/3", "the range `22-2/3` goes down; write `22,1`"),
        ("0 0 * * TUE/2", "TUE/2", "`TUE/2` has a step but no range; write `TUE-SAT/2`"),
        ("0 22-2 * * *", "22-2", "the range `22-2` goes down; write `22-23,0-2`"),
        ("0 0 * * FRI-MON", "FRI-MON", "the range `FRI-MON` goes down; write `FRI-SAT,SUN-MON`"),
        ("0 0 * * FRI#6", "6", "`6` does not count weekdays of a month; use 1 to 5"),
        (
            " @reboot ",
            "@reboot",
            "`@reboot` is not a nickname; use one of @yearly, @annually, @monthly, @weekly, @daily, \
             @midnight, @hourly",
        ),
        (
            "0 0 * *",
            "0 0 * *",
            "an expression has 5 fields: minute, hour, day of the month, month, day of the week; or \
             6, with the second before them; this one has 4",
        ),
    ];
    for (text, part, message) in faults {
        let error = refused(text);
        let span = error.span().expect("it is in the expression");
        assert_eq!((&text[span], error.to_string().as_str()), (part, message), "`{text}`");
        assert_eq!(error.kind(), CronErrorKind::Syntax);
    }
    assert!(refused("  ").span().is_some_and(|span| span.is_empty()));
    assert_eq!(refused("0 0 1,  * *").span(), Some(6..6));
}

/// An expression in another program's form is refused as a whole, and the error names the form.
#[test]
fn a_form_of_others_is_named() {
    let forms = [
        ("0 0 9 ? * 2-6", "`?` is from Quartz"),
        (" 0 0/5 14,18 * * ?\n", "`?` is from Quartz"),
        ("Mon..Fri *-*-* 09:00:00", "in the form of systemd"),
        ("*:0/10", "in the form of systemd"),
        ("CRON_TZ=Europe/London 0 9 * * *", "the zone is an argument of its own"),
        ("TZ=UTC", "the zone is an argument of its own"),
        ("@every 5m", "use `trigger::every`"),
    ];
    for (text, said) in forms {
        let error = refused(text);
        let place = error.span().expect("it is in the expression");
        assert_eq!(&text[place], text.trim(), "{error}");
        assert!(error.to_string().contains(said), "`{text}`: {error}");
    }
}

/// Returns the replacements that an error proposes.
fn proposals(error: &CronError) -> Vec<String> {
    let message = error.to_string();
    let all = message.split("write `").skip(1).filter_map(|rest| rest.split_once('`'));
    all.map(|(proposal, _)| proposal.to_owned()).collect()
}

/// Checks that the parser accepts each expression, or part of one, that an error proposes. Returns how many there were.
fn each_proposal_is_good(text: &str) -> usize {
    let Err(error) = Expression::parse(text) else { return 0 };
    let place = error.span().expect("it is in the expression");
    let proposals = proposals(&error);
    for proposal in &proposals {
        let mut better = text.to_owned();
        better.replace_range(place.clone(), proposal);
        if let Err(next) = Expression::parse(&better) {
            let behind = next.span().is_some_and(|next| next.start >= place.start + proposal.len());
            let never = next.kind() == CronErrorKind::NeverMatches;
            assert!(behind || never, "`{text}`: {error}; `{better}`: {next}");
        }
    }
    proposals.len()
}

/// In a proposal, a descending range wraps around at the end of its field.
#[test]
fn a_proposal_means_what_was_meant() {
    let fields = [(0, 60, 0), (0, 24, 1), (1, 31, 2), (1, 12, 3), (0, 7, 4)];
    for (first, count, place) in fields {
        // A range may end with Sunday.
        let lowest = usize::from(place == 4);
        let all = (0..count).flat_map(|from| (lowest..from).map(move |to| (from, to)));
        for ((from, to), step) in all.flat_map(|range| [1, 2, 3, 5].map(|step| (range, step))) {
            let mut words = ["*"; 5];
            let down = format!("{}-{}/{step}", first + from, first + to);
            words[place] = &down;
            let error = refused(&words.join(" "));
            let proposed = proposals(&error).remove(0);
            let meant =
                (from..=to + count).step_by(step).map(|value| (first + value % count).to_string());
            let meant = meant.collect::<Vec<_>>().join(",");
            let [proposed, meant] = [&proposed, &meant].map(|field| {
                let mut words = words;
                words[place] = field;
                Fields { either_day: false, ..parse(&words.join(" ")).fields }
            });
            assert_eq!(proposed, meant, "{down}: {error}");
        }
    }
}

/// Golden calendar row 12, and others like it.
#[test]
fn what_never_matches_is_refused() {
    for text in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30W 2 *"] {
        let error = refused(text);
        assert_eq!(error.kind(), CronErrorKind::NeverMatches, "{text}");
        assert_eq!(error.span(), Some(4..text.len()), "{text}");
    }
    // 29 February is rare, but it comes.
    assert_eq!(days("0 0 29 2 *").len(), 4);
    // A leap day falls on each weekday once in 28 years.
    for weekday in 0..7 {
        assert_eq!(days(&format!("0 0 */28 2 {weekday}#5")), ["02-29"; 4]);
    }
    // Either of the two day fields is enough.
    parse("0 0 30 2 MON");
}

proptest! {
    /// Any text is either accepted or refused, and the place of a fault lies within the text.
    #[test]
    fn no_text_breaks_the_parser(
        any in any::<String>(),
        likely in vec("[0-9*,/#LWé?-]{0,6}|JAN|FRI|@daily", 0..8),
    ) {
        for text in [any, likely.join(" ")] {
            match Expression::parse(&text) {
                Ok(parsed) => {
                    let begin = super::second("2026-01-01T00:00:00Z");
                    prop_assert!(parsed.fields.first_within(begin, i64::MAX).is_some(), "{text}");
                }
                Err(error) => {
                    let span = error.span().expect("it is in the expression");
                    prop_assert!(text.get(span).is_some(), "{text}");
                }
            }
        }
    }

    /// Every expression that an error proposes is itself accepted.
    #[test]
    fn what_an_error_proposes_is_accepted(
        // Values, ranges and steps of our form, and the words of Quartz.
        fields in vec("([*?]|[0-9]{1,2}|[A-Z]{3}|(MON|Tuesday|fri|JAN|sept)|L|L-[0-9]{1,2}|[0-9]{1,2}W)\
                       ((-|\\.\\.)([0-9]{1,2}|mon|THU))?(/[0-9]{1,2})?(,[0-9]{1,2}|L|#[0-6])?", 3..8),
    ) {
        each_proposal_is_good(&fields.join(" "));
    }
}

/// The property above is not vacuous: for these forms, which the property draws, an error has proposals.
#[test]
fn each_form_has_a_proposal() {
    let forms =
        ["5/15 * * * *", "5/90 * * * *", "0 22-2 * * *", "0 0 * * FRI-MON", "0 0 * * fri-mon"];
    let beside = ["0 0 * * 7-2", "0 0 * * 7/2", "0 0 2/9 * *", "0 0 * * L"];
    let counts = forms.into_iter().chain(beside).map(each_proposal_is_good);
    assert_eq!(counts.collect::<Vec<_>>(), [1, 0, 1, 1, 1, 1, 1, 1, 2]);
}
