//! When a job runs: the words for it, and the next time.

use jiff::{
    Span, Zoned, civil,
    tz::{Offset, TimeZone},
};
use serde_json::{Map, Value, json};

use super::expression::Expression;
use crate::text::pytext;

/// How late a job for one moment may still be, in seconds.
pub const GRACE_SECONDS: i64 = 120;

/// A moment as it is kept: with its offset, to the microsecond.
#[must_use]
pub fn iso(moment: &Zoned) -> String {
    let micros = moment.subsec_nanosecond() / 1000;
    let form = if micros == 0 {
        "%Y-%m-%dT%H:%M:%S%:z"
    } else {
        "%Y-%m-%dT%H:%M:%S%.6f%:z"
    };
    moment.strftime(form).to_string()
}

/// Reads a schedule.
///
/// # Errors
/// What is wrong with it, in words for the model.
pub fn parse(text: &str, now: &Zoned) -> Result<Map<String, Value>, String> {
    let text = pytext::strip(text);
    if let Some(rest) = after_every(text) {
        let minutes = minutes(rest)?;
        return Ok(object(json!({
            "kind": "interval", "minutes": minutes, "display": format!("every {minutes}m"),
        })));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let numeric = |word: &&str| word.chars().all(|c| c.is_numeric() || "*-,/".contains(c));
    if words.len() >= 5 && words.iter().take(5).all(numeric) {
        return match Expression::parse(text) {
            Ok(_) => Ok(object(
                json!({"kind": "cron", "expr": text, "display": text}),
            )),
            Err(why) => Err(format!("Invalid cron expression '{text}': {why}")),
        };
    }
    if text.contains('T') || begins_with_date(text) {
        let moment =
            moment(text, now).map_err(|why| format!("Invalid timestamp '{text}': {why}"))?;
        return Ok(object(json!({
            "kind": "once",
            "run_at": iso(&moment),
            "display": format!("once at {}", moment.strftime("%Y-%m-%d %H:%M")),
        })));
    }
    if let Ok(minutes) = minutes(text) {
        let at = later(now, minutes)?;
        return Ok(object(json!({
            "kind": "once", "run_at": iso(&at), "display": format!("once in {text}"),
        })));
    }
    Err(format!(
        "Invalid schedule '{text}'. Use:\n  - Duration: '30m', '2h', '1d' (one-shot)\n  - Interval: 'every 30m', \
         'every 2h' (recurring)\n  - Cron: '0 9 * * *' (cron expression)\n  - Timestamp: '2026-02-03T14:00:00' \
         (one-shot at time)"
    ))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn after_every(text: &str) -> Option<&str> {
    let (head, rest) = text.split_at_checked("every ".len())?;
    head.eq_ignore_ascii_case("every ")
        .then(|| pytext::strip(rest))
}

fn begins_with_date(text: &str) -> bool {
    let mut letters = text.chars();
    "dddd-dd-dd".chars().all(|form| match letters.next() {
        Some(letter) if form == 'd' => letter.is_numeric(),
        Some(letter) => letter == form,
        None => false,
    })
}

/// A span such as `30m`, `2 hours` or `1d`, in minutes.
fn minutes(text: &str) -> Result<i64, String> {
    let text = pytext::strip(text).to_lowercase();
    let refused = || format!("Invalid duration: '{text}'. Use format like '30m', '2h', or '1d'");
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits).ok_or_else(refused)?;
    let factor = match pytext::strip(unit) {
        "m" | "min" | "mins" | "minute" | "minutes" => 1,
        "h" | "hr" | "hrs" | "hour" | "hours" => 60,
        "d" | "day" | "days" => 1440,
        _ => return Err(refused()),
    };
    number
        .parse::<i64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(refused)
}

fn later(now: &Zoned, minutes: i64) -> Result<Zoned, String> {
    Span::new()
        .try_minutes(minutes)
        .and_then(|span| now.checked_add(span))
        .map_err(|_| "date value out of range".to_owned())
}

/// A moment in ISO form; without an offset it is the user's own.
fn moment(text: &str, now: &Zoned) -> Result<Zoned, String> {
    let odd = || {
        format!(
            "Invalid isoformat string: '{}'",
            text.replace('Z', "+00:00")
        )
    };
    let plain = text.replace('Z', "+00:00");
    let (date, rest) = plain.split_at_checked(10).ok_or_else(odd)?;
    let mut parts = date.split('-').map(digits);
    let (Some(Some(year)), Some(Some(month)), Some(Some(day)), true) = (
        parts.next(),
        parts.next(),
        parts.next(),
        begins_with_date(date),
    ) else {
        return Err(odd());
    };
    if !(1..=12).contains(&month) {
        return Err("month must be in 1..12".into());
    }
    let date = civil::Date::new(short(year), tiny(month), tiny(day))
        .map_err(|_| "day is out of range for month".to_owned())?;
    let mut letters = rest.chars();
    let (clock, offset) = match letters.next() {
        None => (civil::Time::midnight(), None),
        Some(_) => {
            let rest = letters.as_str();
            let at = rest.find(['+', '-']).unwrap_or(rest.len());
            let (clock, offset) = rest.split_at_checked(at).ok_or_else(odd)?;
            (
                clock_of(pytext::strip(clock), &odd)?,
                offset_of(offset, &odd)?,
            )
        }
    };
    let zone = offset.unwrap_or_else(|| now.time_zone().clone());
    date.to_datetime(clock)
        .to_zoned(zone)
        .map_err(|error| error.to_string())
}

fn clock_of(text: &str, odd: &dyn Fn() -> String) -> Result<civil::Time, String> {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let mut numbers = [0_i64; 3];
    let mut count = 0;
    for (place, part) in whole.split(':').enumerate() {
        let (Some(slot), 2) = (numbers.get_mut(place), part.len()) else {
            return Err(odd());
        };
        *slot = digits(part).ok_or_else(odd)?;
        count = place + 1;
    }
    let [hour, minute, second] = numbers;
    let nanos = match fraction {
        None => 0,
        Some(fraction) if count == 3 && (1..=9).contains(&fraction.len()) => {
            let cut: String = fraction.chars().take(6).collect();
            digits(&format!("{cut:0<6}")).ok_or_else(odd)? * 1000
        }
        Some(_) => return Err(odd()),
    };
    for (name, value, most) in [
        ("hour", hour, 23),
        ("minute", minute, 59),
        ("second", second, 59),
    ] {
        if value > most {
            return Err(format!("{name} must be in 0..{most}"));
        }
    }
    civil::Time::new(
        tiny(hour),
        tiny(minute),
        tiny(second),
        i32::try_from(nanos).unwrap_or(0),
    )
    .map_err(|_| odd())
}

fn offset_of(text: &str, odd: &dyn Fn() -> String) -> Result<Option<TimeZone>, String> {
    let Some(sign) = text.chars().next() else {
        return Ok(None);
    };
    let plain: String = text
        .chars()
        .skip(1)
        .filter(|letter| *letter != ':')
        .collect();
    let number = digits(&plain).ok_or_else(odd)?;
    let seconds = match plain.len() {
        2 => number * 3600,
        4 => number / 100 * 3600 + number % 100 * 60,
        _ => return Err(odd()),
    };
    let signed = if sign == '-' { -seconds } else { seconds };
    let offset = i32::try_from(signed)
        .ok()
        .and_then(|seconds| Offset::from_seconds(seconds).ok())
        .ok_or_else(odd)?;
    Ok(Some(TimeZone::fixed(offset)))
}

fn digits(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn tiny(number: i64) -> i8 {
    i8::try_from(number).unwrap_or(-1)
}

fn short(number: i64) -> i16 {
    i16::try_from(number).unwrap_or(-1)
}

/// A moment as it was kept.
#[must_use]
pub fn kept(text: &str, now: &Zoned) -> Option<Zoned> {
    moment(text, now).ok()
}

/// When a schedule is due next; `None` if never again.
#[must_use]
pub fn next(schedule: &Value, last: Option<&str>, now: &Zoned) -> Option<String> {
    let word = |name: &str| schedule.get(name).and_then(Value::as_str);
    let last = last.and_then(|text| kept(text, now));
    match word("kind")? {
        "once" if last.is_none() => {
            let text = word("run_at")?;
            let latest = now.checked_sub(Span::new().seconds(GRACE_SECONDS)).ok()?;
            (kept(text, now)? >= latest).then(|| text.to_owned())
        }
        "interval" => {
            let minutes = schedule.get("minutes").and_then(Value::as_i64)?;
            let base = last.as_ref().unwrap_or(now);
            later(base, minutes).ok().map(|at| iso(&at))
        }
        "cron" => {
            let expression = Expression::parse(word("expr")?).ok()?;
            let base = last.as_ref().unwrap_or(now);
            expression.after(base).map(|at| iso(&at))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Zoned;
    use serde_json::{Value, json};

    use super::{next, parse};

    fn now() -> Zoned {
        "2026-11-22T12:18:03.5+01:00[+01:00]".parse().unwrap()
    }

    fn read(text: &str) -> Value {
        match parse(text, &now()) {
            Ok(schedule) => Value::Object(schedule),
            Err(why) => Value::String(why),
        }
    }

    #[test]
    fn schedules_are_spans_intervals_expressions_and_moments() {
        assert_eq!(
            read(" Every 2 hours "),
            json!({"kind": "interval", "minutes": 120, "display": "every 120m"})
        );
        assert_eq!(
            read("1D"),
            json!({"kind": "once", "run_at": "2026-11-23T12:18:03.500000+01:00", "display": "once in 1D"})
        );
        assert_eq!(read("0 9 * * *")["kind"], "cron");
        assert_eq!(
            read("2027-02-03 14:00")["run_at"],
            "2027-02-03T14:00:00+01:00"
        );
        assert_eq!(
            read("2027-02-03T14:00Z")["run_at"],
            "2027-02-03T14:00:00+00:00"
        );
        assert_eq!(
            read("2027-02-03T14:00Z")["display"],
            "once at 2027-02-03 14:00"
        );
        assert_eq!(
            read("2027-02-03T14:00:00.25-0530")["run_at"],
            "2027-02-03T14:00:00.250000-05:30"
        );
    }

    #[test]
    fn what_is_no_schedule_says_what_would_be_one() {
        let said = |text: &str| read(text).as_str().map(str::to_owned).unwrap_or_default();
        assert!(said("soon").starts_with("Invalid schedule 'soon'. Use:"));
        assert!(said("every now").starts_with("Invalid duration: 'now'"));
        assert_eq!(
            said("Tomorrow"),
            "Invalid timestamp 'Tomorrow': Invalid isoformat string: 'Tomorrow'"
        );
        assert!(said("2026-13-01").ends_with("month must be in 1..12"));
        assert!(said("2026-02-30").ends_with("day is out of range for month"));
        assert!(said("2026-02-03T24:00").ends_with("hour must be in 0..23"));
        assert!(said("99 * * * *").starts_with("Invalid cron expression '99 * * * *'"));
    }

    #[test]
    fn the_next_time_counts_from_the_last_one() {
        let schedule = read("every 30m");
        assert_eq!(
            next(&schedule, None, &now()).as_deref(),
            Some("2026-11-22T12:48:03.500000+01:00")
        );
        assert_eq!(
            next(&schedule, Some("2026-11-22T12:00:00+01:00"), &now()).as_deref(),
            Some("2026-11-22T12:30:00+01:00")
        );
        let once = read("2026-11-22T12:17");
        assert!(next(&once, None, &now()).is_some());
        assert!(next(&once, Some("2026-11-22T12:17:00+01:00"), &now()).is_none());
        assert!(next(&read("2026-11-22T12:16"), None, &now()).is_none());
    }
}
