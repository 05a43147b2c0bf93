//! Names as the rules compare them: without regard to case, and quickly where they differ.

/// A table of names, with a first look that most other names fail: every
/// decision about a file asks here.
pub(super) struct Names {
    pub(super) names: &'static [&'static str],
    /// A bit for each length among them.
    lengths: u64,
    /// A bit for each first letter among them, in lower case.
    firsts: u128,
}

impl Names {
    pub(super) const fn of(names: &'static [&'static str]) -> Names {
        let (mut lengths, mut firsts) = (0, 0);
        let mut rest = names;
        while let [name, others @ ..] = rest {
            lengths |= bit_of_length(name.len());
            if let [first, ..] = name.as_bytes() {
                firsts |= bit_of_letter(*first);
            }
            rest = others;
        }
        Names {
            names,
            lengths,
            firsts,
        }
    }

    pub(super) fn holds(&self, name: &[u8]) -> bool {
        let may = self.lengths & bit_of_length(name.len()) != 0
            && name
                .first()
                .is_some_and(|first| self.firsts & bit_of_letter(*first) != 0);
        may && self.names.iter().any(|known| same(name, known))
    }
}

/// Longer names share a bit.
const fn bit_of_length(length: usize) -> u64 {
    if length < 63 { 1 << length } else { 1 << 63 }
}

/// Letters that are not ASCII share a bit.
const fn bit_of_letter(letter: u8) -> u128 {
    let letter = letter.to_ascii_lowercase();
    if letter < 127 { 1 << letter } else { 1 << 127 }
}

/// Most names differ in their length or their first letter.
#[inline]
pub(super) fn same(name: &[u8], known: &str) -> bool {
    let known = known.as_bytes();
    name.len() == known.len()
        && match (name.first(), known.first()) {
            (Some(letter), Some(wanted)) => letter.eq_ignore_ascii_case(wanted),
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        }
        && name.eq_ignore_ascii_case(known)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::{Names, bit_of_length, bit_of_letter, same};

    /// Of as many names as these bits are wide, all but the last have their own.
    #[test]
    fn the_first_look_tells_lengths_and_letters_apart_as_far_as_there_are_bits() {
        let lengths: BTreeSet<u64> = (0..64).map(bit_of_length).collect();
        assert_eq!(lengths.len(), 64);
        assert!((64..300).all(|length| bit_of_length(length) == bit_of_length(63)));
        let letters: BTreeSet<u128> = (0..128).map(bit_of_letter).collect();
        assert_eq!(
            letters.len(),
            128 - 26,
            "a letter has one bit in both cases"
        );
        assert!((128..=255).all(|letter| bit_of_letter(letter) == bit_of_letter(127)));
        for bits in lengths.iter().map(|bit| bit.count_ones()) {
            assert_eq!(bits, 1);
        }
        for bits in letters.iter().map(|bit| bit.count_ones()) {
            assert_eq!(bits, 1);
        }
    }

    #[test]
    fn a_table_holds_names_that_are_longer_or_begin_otherwise_than_there_are_bits_for() {
        const LONG: &str =
            "a-name-of-seventy-letters-is-longer-than-there-are-bits-in-the-first-look";
        const TABLE: Names = Names::of(&[LONG, "\u{fc}ber"]);
        assert!(LONG.len() > 63);
        assert!(TABLE.holds(LONG.to_ascii_uppercase().as_bytes()));
        assert!(TABLE.holds("\u{fc}ber".as_bytes()));
        assert!(!TABLE.holds(LONG.replace("seventy", "thirty-").as_bytes()));
        assert!(!TABLE.holds("\u{f6}ber".as_bytes()));
    }

    #[test]
    fn a_table_of_one_length_or_one_first_letter_holds_its_names_and_no_others() {
        const LENGTH: Names = Names::of(&["one", "two"]);
        const LETTER: Names = Names::of(&["a", "ab"]);
        const SINGLE: Names = Names::of(&["one"]);
        for (table, names) in [
            (LENGTH, &["one", "TWO"][..]),
            (LETTER, &["a", "AB"]),
            (SINGLE, &["One"]),
        ] {
            for name in names {
                assert!(table.holds(name.as_bytes()), "{name}");
            }
            for name in ["", "o", "b", "ow", "oner", "owe", "ac", "abc"] {
                assert!(!table.holds(name.as_bytes()), "{name}");
            }
        }
    }

    #[test]
    fn names_are_the_same_whatever_their_case() {
        for (name, known, expected) in [
            ("ID_RSA", "id_rsa", true),
            (".Env", ".env", true),
            ("id_rsb", "id_rsa", false),
            ("id_rs", "id_rsa", false),
            ("xd_rsa", "id_rsa", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(same(name.as_bytes(), known), expected, "{name} {known}");
        }
    }
}
