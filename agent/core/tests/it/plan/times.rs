//! Dates and times of day, against a calendar that is counted day by day.

use hermitcrab_core::plan::eval::{Env, Moment, Trouble};

use super::*;

const DAY: i64 = 24 * 60;
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

fn moment(text: &str) -> Moment {
    Moment::parse(text).expect(text)
}

/// Every day of some years, one after the other, and the weekday of the first.
fn walk(first: i64, years: i64, leaps: &[i64], mut weekday: usize) {
    let mut at = moment(&format!("{first:04}-01-01"));
    for year in first..first + years {
        let february = if leaps.contains(&year) { 29 } else { 28 };
        let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, length) in (1..).zip(lengths) {
            for day in 1..=length {
                let expected = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(at.day(), expected);
                assert_eq!(moment(&expected), at);
                assert_eq!(at.weekday(), WEEKDAYS[weekday], "{expected}");
                weekday = (weekday + 1) % 7;
                match at.later(DAY) {
                    Some(next) => at = next,
                    None => assert_eq!(expected, "9999-12-31"),
                }
            }
            let after = format!("{year:04}-{month:02}-{:02}", length + 1);
            assert_eq!(Moment::parse(&after), None, "{after}");
        }
    }
}

#[test]
fn days_follow_one_another_through_every_kind_of_year() {
    walk(0, 2, &[0], 5);
    walk(1599, 3, &[1600], 4);
    walk(1899, 6, &[1904], 6);
    walk(1968, 5, &[1968, 1972], 0);
    walk(1999, 3, &[2000], 4);
    walk(2099, 6, &[2104], 3);
    walk(9996, 4, &[9996], 0);
}

#[test]
fn days_are_counted_from_the_first_of_1970() {
    let epoch = moment("1970-01-01");
    for (day, days) in [
        ("0000-01-01", -719_528),
        ("0000-02-29", -719_469),
        ("1600-01-01", -135_140),
        ("1969-12-31", -1),
        ("1970-01-02", 1),
        ("2000-02-29", 11_016),
        ("2000-03-01", 11_017),
        ("9999-12-31", 2_932_896),
    ] {
        assert_eq!(epoch.minutes_to(moment(day)), days * DAY, "{day}");
        assert_eq!(moment(day).minutes_to(epoch), -days * DAY, "{day}");
        assert_eq!(epoch.later(days * DAY).unwrap().text(), day);
    }
}

#[test]
fn a_time_is_a_real_date_with_or_without_a_time_of_day() {
    for (text, expected) in [
        ("2026-01-31", "2026-01-31"),
        (" 2026-01-31T08:30 ", "2026-01-31T08:30"),
        ("2026-01-31 08:30:15", "2026-01-31T08:30"),
        ("2026-01-31T00:00", "2026-01-31T00:00"),
        ("2026-01-31T23:59", "2026-01-31T23:59"),
    ] {
        assert_eq!(moment(text).text(), expected);
    }
    for text in [
        "",
        "2026",
        "2026-01",
        "2026-00-10",
        "2026-13-10",
        "2026-01-00",
        "2026-1-10",
        "02026-01-10",
        "12345-01-10",
        "+026-01-10",
        "2026-01-10-10",
        "2026-01-10T",
        "2026-01-10T24:00",
        "2026-01-10T25:00",
        "2026-01-10T08:60",
        "2026-01-10T08:61",
        "2026-01-10T08",
        "2026-01-10T8:30",
        "2026-01-10T08:30:1",
        "2026-01-10T08:30:15:00",
        "2026-01-10T08:30Z",
    ] {
        assert_eq!(Moment::parse(text), None, "{text}");
    }
}

#[test]
fn no_time_lies_outside_the_years_of_four_digits() {
    assert_eq!(moment("9999-12-31T23:59").later(1), None);
    assert_eq!(moment("0000-01-01T00:00").later(-1), None);
    for minutes in [i64::MIN, i64::MAX, i64::MIN / 2, i64::MAX / 2] {
        assert_eq!(moment("1970-01-01").later(minutes), None);
        assert_eq!(moment("1969-12-31").later(minutes), None);
    }
}

fn made(function: Builtin, of: Vec<Expr>) -> Result<Raw, Trouble> {
    let mut env = Env::new(FlowRules::STRICT);
    let value = env.eval(&Expr::Apply(function, of));
    value.map(|value| value.raw())
}

#[test]
fn functions_of_times_say_a_time_of_day_where_one_was_given_or_reckoned_with() {
    let whole = |number| Expr::Literal(Raw::Whole(number));
    for (function, from, by, expected) in [
        (Builtin::AddDays, "2026-01-31", 1, "2026-02-01"),
        (
            Builtin::AddDays,
            "2026-01-31T08:30",
            -31,
            "2025-12-31T08:30",
        ),
        (Builtin::AddMinutes, "2026-01-31", 1, "2026-01-31T00:01"),
        (
            Builtin::AddMinutes,
            "2026-01-31T00:00",
            -1,
            "2026-01-30T23:59",
        ),
    ] {
        let expected = Raw::Text(expected.into());
        assert_eq!(made(function, vec![text(from), whole(by)]), Ok(expected));
    }
    let many = vec![text("2026-01-31"), whole(i64::MAX)];
    assert_eq!(made(Builtin::AddDays, many), Err(Trouble::Arithmetic));
    let between = vec![text("2026-01-31"), text("2026-02-01T00:30")];
    assert_eq!(
        made(Builtin::MinutesBetween, between),
        Ok(Raw::Whole(DAY + 30))
    );
    for (function, expected) in [
        (Builtin::DayOf, "2026-01-31"),
        (Builtin::ClockOf, "08:05"),
        (Builtin::Weekday, "Saturday"),
    ] {
        let of = vec![text("2026-01-31T08:05")];
        assert_eq!(made(function, of), Ok(Raw::Text(expected.into())));
    }
    assert_eq!(
        made(Builtin::DayOf, vec![text("soon")]),
        Err(Trouble::NotATime)
    );
}
