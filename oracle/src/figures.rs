//! Figures as people read them.

/// So many of them, in the word for one or for others.
#[must_use]
pub fn counted(count: u64, one: &str, others: &str) -> String {
    format!(
        "{} {}",
        grouped(count),
        if count == 1 { one } else { others }
    )
}

/// A number of calls.
#[must_use]
pub fn calls(count: u64) -> String {
    counted(count, "call", "calls")
}

/// A share with one place, as an interval has it.
#[must_use]
pub fn tenths(tenths: u64) -> String {
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A share in percent, with one place.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0.0 %".to_owned();
    }
    if part == 0 || part >= whole {
        return tenths(part.saturating_mul(1000) / whole);
    }
    // Rounded, but what is not all is never 100 and what is something never 0.
    let rounded = part.saturating_mul(2000).saturating_add(whole) / whole.saturating_mul(2);
    tenths(rounded.clamp(1, 999))
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_thousands_are_apart() {
        for (count, said) in [
            (0, "0 calls"),
            (1, "1 call"),
            (999, "999 calls"),
            (1_000, "1,000 calls"),
            (12_345_678, "12,345,678 calls"),
        ] {
            assert_eq!(calls(count), said);
        }
    }
}
