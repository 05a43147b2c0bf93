//! How numbers are typed, and what is said of one that is none.

/// More workers than any machine has use for; each is a process or several.
const JOBS_MAX: usize = 1024;
/// More lines in worlds than anybody waits for; all of them are held at once.
const HELD_MAX: u64 = 10_000_000;

/// What names a campaign, or draws.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    any(text, u64::MAX)
}

/// A number that may be none.
pub(super) fn any_usize(text: &str) -> Result<usize, String> {
    any(text, u64::MAX).and_then(|number| usize::try_from(number).map_err(|_| large(u64::MAX)))
}

/// A number of things to try: none tried is none that passed.
pub(super) fn some(text: &str) -> Result<u64, String> {
    some_of(text, u64::MAX)
}

/// The same of things that are counted in memory.
pub(super) fn some_usize(text: &str) -> Result<usize, String> {
    some(text).and_then(|number| usize::try_from(number).map_err(|_| large(u64::MAX)))
}

/// The same of things that are all held at once.
pub(super) fn some_held(text: &str) -> Result<u64, String> {
    some_of(text, HELD_MAX)
}

/// Times that something is tried again.
pub(super) fn tries(text: &str) -> Result<u32, String> {
    let most = u64::from(u32::MAX);
    some_of(text, most).and_then(|number| u32::try_from(number).map_err(|_| large(most)))
}

/// Workers, or pairs of them, at the same time.
pub(super) fn jobs(text: &str) -> Result<usize, String> {
    let most = JOBS_MAX as u64;
    some_of(text, most).and_then(|number| usize::try_from(number).map_err(|_| large(most)))
}

fn some_of(text: &str, most: u64) -> Result<u64, String> {
    match any(text, most)? {
        0 => Err("nothing would be tried, and nothing would have passed".to_owned()),
        number => Ok(number),
    }
}

fn any(text: &str, most: u64) -> Result<u64, String> {
    // A sign is none of the digits, and is not read over.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("write it as a whole number without a sign, such as 100".to_owned());
    }
    let number = text.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| large(most))
}

fn large(most: u64) -> String {
    format!("that is too large; {most} is the most")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_told_from_what_is_none_and_from_one_that_is_of_no_use() {
        assert_eq!(seed("0"), Ok(0));
        assert_eq!(seed("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(
            (some("1"), jobs("1024"), tries("3")),
            (Ok(1), Ok(1024), Ok(3))
        );
        for wrong in [
            "", "x", "-1", "+1", "1.5", "1e3", "0x10", " 1", "1,000", "\u{661}",
        ] {
            let said = seed(wrong).unwrap_err();
            assert!(
                said.starts_with("write it as a whole number"),
                "{wrong}: {said}"
            );
        }
        for none in [
            some("0").err(),
            jobs("0").map(|_| 0).err(),
            tries("00").map(|_| 0).err(),
        ] {
            assert!(none.unwrap().starts_with("nothing would be tried"));
        }
        for (said, most) in [
            (
                seed("18446744073709551616").unwrap_err(),
                "18446744073709551615",
            ),
            (jobs("1025").unwrap_err(), "1024"),
            (tries("4294967296").unwrap_err(), "4294967295"),
            (some_held("10000001").unwrap_err(), "10000000"),
        ] {
            assert_eq!(said, format!("that is too large; {most} is the most"));
        }
        assert_eq!(any_usize("0"), Ok(0));
        assert!(some_usize("0").is_err());
    }
}
