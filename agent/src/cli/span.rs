//! How long something lasts, in words.

/// The widest unit that fits, and no more of it than is left.
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

#[cfg(test)]
mod tests {
    use super::words;

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
