//! Which words of a heading are numbers, and which: as YAML had it before version 1.2,
//! with other bases, blanks between digits and sixties.

/// A whole number; none that is too long to be one here.
pub(super) fn whole(text: &str) -> Option<i64> {
    let (sign, digits) = signed(text);
    let (first, rest) = digits.split_at_checked(1)?;
    let in_base = |digits: &str, base: u32| {
        let plain = digits.replace('_', "");
        let fits = !digits.is_empty() && plain.chars().all(|digit| digit.is_digit(base));
        fits.then(|| i64::from_str_radix(&format!("{sign}{plain}"), base))?
            .ok()
    };
    match (first, rest.split_at_checked(1)) {
        ("0", None) => Some(0),
        ("0", Some(("b", digits))) => in_base(digits, 2),
        ("0", Some(("x", digits))) => in_base(digits, 16),
        ("0", Some(_)) if rest.bytes().all(|byte| byte == b'_') => Some(0),
        ("0", Some(_)) => in_base(rest, 8),
        ("_" | "+" | "-", _) => None,
        _ if digits.contains(':') => {
            let value = sixties(digits, |last| last.parse().ok())?;
            Some(if sign == "-" { -value } else { value })
        }
        _ => in_base(digits, 10),
    }
}

/// A number with a point in it; an exponent has a sign.
pub(super) fn part(text: &str) -> Option<f64> {
    let (sign, digits) = signed(text);
    let is_digits = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let (before, after) = digits.split_once('.')?;
    if before.is_empty() && digits != text {
        return None;
    }
    if before.contains(':') {
        let above = sixties(before, |last| last.parse().ok())?;
        let below: f64 = format!("0.{}", after.replace('_', "")).parse().ok()?;
        let value = is_digits(after)
            .then(|| f64::from(i32::try_from(above).unwrap_or(i32::MAX)) + below)?;
        return Some(if sign == "-" { -value } else { value });
    }
    let (after, exponent) = match after.split_once(['e', 'E']) {
        Some((after, exponent)) => (after, Some(exponent)),
        None => (after, None),
    };
    let begins = |text: &str| text.starts_with(|letter: char| letter.is_ascii_digit());
    let is_number = is_digits(before)
        && is_digits(after)
        && begins(if before.is_empty() { after } else { before })
        && exponent.is_none_or(|exponent| {
            exponent.strip_prefix(['+', '-']).is_some_and(|digits| {
                begins(digits) && digits.bytes().all(|byte| byte.is_ascii_digit())
            })
        });
    let plain = text.replace('_', "");
    is_number.then(|| plain.parse().ok())?
}

/// The sign, if it is written, and what follows it.
fn signed(text: &str) -> (&str, &str) {
    match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    }
}

/// A number as of hours, minutes and seconds.
fn sixties(text: &str, number: impl Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut parts = text.split(':');
    let first = parts.next()?.replace('_', "");
    let mut value = number(&first).filter(|_| first.bytes().all(|byte| byte.is_ascii_digit()))?;
    for next in parts {
        let digits = next.bytes().all(|byte| byte.is_ascii_digit());
        let next = number(next).filter(|next| digits && *next < 60)?;
        value = value.checked_mul(60)?.checked_add(next)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{part, whole};

    #[test]
    fn whole_numbers_are_read_in_every_base_they_are_written_in() {
        for (text, value) in [
            ("0", Some(0)),
            ("-7", Some(-7)),
            ("+1", Some(1)),
            ("1_000", Some(1000)),
            ("017", Some(15)),
            ("0_", Some(0)),
            ("08", None),
            ("0x1f", Some(31)),
            ("-0x1F", Some(-31)),
            ("0b11", Some(3)),
            ("0o17", None),
            ("12:30", Some(750)),
            ("-1:00:00", Some(-3600)),
            ("12:75", None),
            ("0:30", None),
            ("_1", None),
            ("", None),
            ("-", None),
            ("+-1", None),
            ("1e3", None),
            ("99999999999999999999", None),
            ("9223372036854775807:1", None),
        ] {
            assert_eq!(whole(text), value, "{text:?}");
        }
    }

    #[test]
    fn a_number_with_a_point_has_digits_and_a_signed_exponent() {
        for (text, value) in [
            ("1.5", Some(1.5)),
            ("1.", Some(1.0)),
            (".5", Some(0.5)),
            ("-1_0.2_5", Some(-10.25)),
            ("1.5e+3", Some(1500.0)),
            ("1.5e3", None),
            ("-.5", None),
            (".", None),
            ("._1", None),
            ("1.2.3", None),
            ("1:30.5", Some(90.5)),
            (".inf", None),
            ("v1.0", None),
        ] {
            assert_eq!(part(text), value, "{text:?}");
        }
    }
}
