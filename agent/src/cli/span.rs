//! How long something lasts, as it is told and as it is typed.

use std::time::Duration;

/// The widest unit that fits, and no more of it than is left.
#[must_use]
pub fn words(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let more = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{more}")
}

/// What somebody typed: seconds, or a number of `s`, `m` or `h`.
///
/// # Errors
/// It is no time, or none that could be waited for; how one is written.
pub fn read(text: &str) -> Result<Duration, String> {
    let (number, factor) = match text.char_indices().next_back() {
        Some((end, 's')) => (text.get(..end), 1),
        Some((end, 'm')) => (text.get(..end), 60),
        Some((end, 'h')) => (text.get(..end), 3600),
        _ => (Some(text), 1),
    };
    // `u32` takes a sign before a number.
    let number = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let number: Option<u32> = number.and_then(|number| number.parse().ok());
    match number.map(|number| number.checked_mul(factor)) {
        Some(Some(0)) => Err("that is no time at all".to_owned()),
        Some(Some(seconds)) => Ok(Duration::from_secs(seconds.into())),
        Some(None) => Err("that is more than a hundred years".to_owned()),
        None => Err("write seconds, or it as 90s, 10m or 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{read, words};

    #[test]
    fn a_time_is_read_in_seconds_and_in_units() {
        for (typed, seconds) in [
            ("1", 1),
            ("90", 90),
            ("90s", 90),
            ("10m", 600),
            ("2h", 7200),
        ] {
            assert_eq!(read(typed), Ok(Duration::from_secs(seconds)), "{typed}");
        }
        assert!(read("4294967295").is_ok());
        for wrong in [
            "4294967295h",
            "",
            "s",
            "0",
            "0m",
            "-1",
            "+1",
            "1.5",
            "1d",
            "1 s",
            "4294967296",
            "m1",
            "1ß",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_told_in_the_widest_unit_that_fits() {
        for (seconds, told) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (43_199, "11 hours"),
            (86_400, "1 day"),
            (2_591_999, "29 days"),
        ] {
            assert_eq!(words(seconds), told);
        }
    }
}
