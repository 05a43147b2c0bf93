//! Cron expressions: which minutes they name, and the next one.
//!
//! Five to seven columns: minute, hour, day, month, weekday, and perhaps second
//! and year. This module must never take a column it cannot read for "any".

use jiff::{Span, Zoned, civil};

/// How far ahead a next time is looked for, in days; a leap day comes back within nine years.
const DAYS_AHEAD: u32 = 366 * 9;

/// One column: its numbers, and whether it is free.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    numbers: Vec<i64>,
    any: bool,
}

impl Column {
    fn has(&self, number: i8) -> bool {
        self.any || self.numbers.contains(&i64::from(number))
    }
}

/// What an expression names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    minute: Column,
    hour: Column,
    day: Column,
    month: Column,
    weekday: Column,
    second: Option<Column>,
    year: Option<Column>,
}

/// Lowest and highest number of each column, in the order they are written.
const BOUNDS: [(i64, i64); 7] = [
    (0, 59),
    (0, 23),
    (1, 31),
    (1, 12),
    (0, 7),
    (0, 59),
    (1970, 2099),
];

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if !(5..=7).contains(&words.len()) {
            return Err(
                "Exactly 5, 6 or 7 columns has to be specified for iterator expression.".into(),
            );
        }
        let mut columns = words
            .iter()
            .zip(BOUNDS)
            .map(|(word, bounds)| column(word, bounds, text))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter();
        let mut next = || columns.next();
        match (next(), next(), next(), next(), next()) {
            (Some(minute), Some(hour), Some(day), Some(month), Some(mut weekday)) => {
                // Both 0 and 7 are Sunday.
                for number in &mut weekday.numbers {
                    *number %= 7;
                }
                Ok(Self {
                    minute,
                    hour,
                    day,
                    month,
                    weekday,
                    second: next(),
                    year: next(),
                })
            }
            _ => Err(format!("[{text}] is not acceptable")),
        }
    }

    fn names_day(&self, date: civil::Date) -> bool {
        let day = self.day.has(date.day());
        let weekday = self.weekday.has(date.weekday().to_sunday_zero_offset());
        // Where both are given, either will do.
        let days = if self.day.any || self.weekday.any {
            day && weekday
        } else {
            day || weekday
        };
        days && self.month.has(date.month())
            && self
                .year
                .as_ref()
                .is_none_or(|years| years.any || years.numbers.contains(&i64::from(date.year())))
    }

    /// The first named moment after `base`, in its time zone.
    #[must_use]
    pub fn after(&self, base: &Zoned) -> Option<Zoned> {
        let zone = base.time_zone();
        let mut date = base.date();
        for _ in 0..DAYS_AHEAD {
            if self.names_day(date) {
                for hour in (0..24_i8).filter(|hour| self.hour.has(*hour)) {
                    for minute in (0..60_i8).filter(|minute| self.minute.has(*minute)) {
                        if let Some(found) =
                            self.second_after(date.at(hour, minute, 0, 0), zone, base)
                        {
                            return Some(found);
                        }
                    }
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn second_after(
        &self,
        minute: civil::DateTime,
        zone: &jiff::tz::TimeZone,
        base: &Zoned,
    ) -> Option<Zoned> {
        let last = minute
            .to_zoned(zone.clone())
            .ok()?
            .checked_add(Span::new().seconds(59))
            .ok()?;
        if last <= *base {
            return None;
        }
        (0..60_i64)
            .filter(|second| match &self.second {
                None => *second == 0,
                Some(column) => column.any || column.numbers.contains(second),
            })
            .filter_map(|second| {
                let moment = minute.checked_add(Span::new().seconds(second)).ok()?;
                moment.to_zoned(zone.clone()).ok()
            })
            .find(|moment| moment > base)
    }
}

fn column(word: &str, bounds: (i64, i64), whole: &str) -> Result<Column, String> {
    let mut found = Column {
        numbers: Vec::new(),
        any: false,
    };
    for part in word.split(',') {
        if part.starts_with('-') {
            return Err(format!(
                "[{whole}] is not acceptable,negative numbers not allowed"
            ));
        }
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step, whole)?)),
            None => (part, None),
        };
        if range == "*" && step.is_none_or(|step| step == 1) {
            found.any = true;
            continue;
        }
        let step = step.unwrap_or(1);
        let (low, high) = if range == "*" {
            (bounds.0, highest(bounds))
        } else if let Some((low, high)) = range.split_once('-') {
            (number(low, whole)?, number(high, whole)?)
        } else {
            let low = number(range, whole)?;
            let open = part.contains('/');
            (low, if open { highest(bounds) } else { low })
        };
        if step == 0 {
            return Err("invalid range: range() arg 3 must not be zero".into());
        }
        let inside = |number: i64| (bounds.0..=bounds.1).contains(&number);
        if !inside(low) || !inside(high) {
            return Err(format!("[{whole}] is not acceptable, out of range"));
        }
        let skip = usize::try_from(step).unwrap_or(usize::MAX);
        if low <= high {
            found.numbers.extend((low..=high).step_by(skip));
        } else {
            // Over the end of the hour, the day or the week.
            let around = (low..=highest(bounds)).chain(bounds.0..=high);
            found.numbers.extend(around.step_by(skip));
        }
    }
    Ok(found)
}

/// The week has seven days, with two numbers for one of them.
fn highest(bounds: (i64, i64)) -> i64 {
    if bounds == (0, 7) { 6 } else { bounds.1 }
}

fn number(text: &str, whole: &str) -> Result<i64, String> {
    let refused = || format!("[{whole}] is not acceptable");
    if text.is_empty() || !text.bytes().all(|letter| letter.is_ascii_digit()) {
        return Err(refused());
    }
    // What has too many digits for a number is out of every range.
    Ok(text.parse().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use jiff::Zoned;

    use super::Expression;

    fn next(text: &str) -> String {
        let base: Zoned = "2026-11-22T12:18:03.5+00:00[UTC]".parse().unwrap();
        match Expression::parse(text) {
            Ok(read) => read
                .after(&base)
                .map_or_else(|| "never".into(), |at| at.strftime("%F %T").to_string()),
            Err(why) => why,
        }
    }

    #[test]
    fn the_next_moment_is_the_first_one_named() {
        let check = |text: &str, expected: &str| assert_eq!(next(text), expected, "{text}");
        check("* * * * *", "2026-11-22 12:19:00");
        check("0 9 * * *", "2026-11-23 09:00:00");
        check("18 12 * * *", "2026-11-23 12:18:00");
        check("*/5 * * * *", "2026-11-22 12:20:00");
        check("30/5 * * * *", "2026-11-22 12:30:00");
        check("0 0 1 * 1", "2026-11-23 00:00:00");
        check("0 0 1 * *", "2026-12-01 00:00:00");
        check("0 0 * * 7", "2026-11-29 00:00:00");
        check("* 22-2 * * *", "2026-11-22 22:00:00");
        check("0 0 29 2 *", "2028-02-29 00:00:00");
        check("0 0 31 2 *", "never");
        check("* * * * * *", "2026-11-22 12:18:04");
        check("0 0 1 1 * 30 2028", "2028-01-01 00:00:30");
    }

    #[test]
    fn what_cannot_be_read_is_no_expression() {
        for (text, why) in [
            ("61 * * * *", "[61 * * * *] is not acceptable, out of range"),
            ("* * 0 * *", "[* * 0 * *] is not acceptable, out of range"),
            ("* * * * 8", "[* * * * 8] is not acceptable, out of range"),
            (
                "*/0 * * * *",
                "invalid range: range() arg 3 must not be zero",
            ),
            ("1,,2 * * * *", "[1,,2 * * * *] is not acceptable"),
            ("1-2-3 * * * *", "[1-2-3 * * * *] is not acceptable"),
            ("*-5 * * * *", "[*-5 * * * *] is not acceptable"),
            (
                "- * * * *",
                "[- * * * *] is not acceptable,negative numbers not allowed",
            ),
            (
                "* * * * * * * *",
                "Exactly 5, 6 or 7 columns has to be specified for iterator expression.",
            ),
        ] {
            assert_eq!(next(text), why, "{text}");
        }
    }
}
