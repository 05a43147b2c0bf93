//! Dates and times of day, without zones: `2026-01-31`, `2026-01-31T08:30`.

use alloc::{format, string::String};

/// Minutes since the first minute of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    minutes: i64,
    /// Whether a time of day was said.
    has_clock: bool,
}

const MINUTES_PER_DAY: i64 = 24 * 60;
/// No time further from 1970 than this many days (some 8,000 years).
const DAYS_MAX: i64 = 3_000_000;

fn number(text: &str, digits: usize) -> Option<i64> {
    let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

const fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01, counted in eras of 400 years from March of year 0.
const fn days_from(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

const fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

impl Moment {
    /// Reads a date, or a date and a time of day; seconds are dropped.
    #[must_use]
    pub fn parse(text: &str) -> Option<Moment> {
        let text = text.trim();
        let (date, clock) = match text.split_once(['T', ' ']) {
            Some((date, clock)) => (date, Some(clock)),
            None => (text, None),
        };
        let mut parts = date.split('-');
        let year = number(parts.next()?, 4)?;
        let month = number(parts.next()?, 2)?;
        let day = number(parts.next()?, 2)?;
        let real = (1..=12).contains(&month) && day >= 1 && day <= days_in(year, month);
        if parts.next().is_some() || !real {
            return None;
        }
        let of_day = match clock {
            None => 0,
            Some(clock) => {
                let mut parts = clock.split(':');
                let hour = number(parts.next()?, 2)?;
                let minute = number(parts.next()?, 2)?;
                let seconds = parts.next().is_none_or(|text| number(text, 2).is_some());
                if hour > 23 || minute > 59 || !seconds || parts.next().is_some() {
                    return None;
                }
                hour * 60 + minute
            }
        };
        Some(Moment {
            minutes: days_from(year, month, day) * MINUTES_PER_DAY + of_day,
            has_clock: clock.is_some(),
        })
    }

    /// So many minutes later.
    #[must_use]
    pub fn later(self, minutes: i64) -> Option<Moment> {
        let minutes = self.minutes.checked_add(minutes)?;
        // Years are written with four digits.
        let (year, _, _) = date_of(
            minutes
                .div_euclid(MINUTES_PER_DAY)
                .clamp(-DAYS_MAX, DAYS_MAX),
        );
        (0..=9999)
            .contains(&year)
            .then_some(Moment { minutes, ..self })
    }

    /// The same with a time of day.
    #[must_use]
    pub const fn with_clock(self) -> Moment {
        Moment {
            has_clock: true,
            ..self
        }
    }

    /// The minutes to another.
    #[must_use]
    pub fn minutes_to(self, other: Moment) -> i64 {
        other.minutes.saturating_sub(self.minutes)
    }

    /// The date alone.
    #[must_use]
    pub fn day(self) -> String {
        let (year, month, day) = date_of(self.minutes.div_euclid(MINUTES_PER_DAY));
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// The time of day alone.
    #[must_use]
    pub fn clock(self) -> String {
        let of_day = self.minutes.rem_euclid(MINUTES_PER_DAY);
        format!("{:02}:{:02}", of_day / 60, of_day % 60)
    }

    /// As it is written.
    #[must_use]
    pub fn text(self) -> String {
        if self.has_clock {
            format!("{}T{}", self.day(), self.clock())
        } else {
            self.day()
        }
    }

    /// The day of the week.
    #[must_use]
    pub const fn weekday(self) -> &'static str {
        match self.minutes.div_euclid(MINUTES_PER_DAY).rem_euclid(7) {
            0 => "Thursday",
            1 => "Friday",
            2 => "Saturday",
            3 => "Sunday",
            4 => "Monday",
            5 => "Tuesday",
            _ => "Wednesday",
        }
    }
}
