//! The difference of two whole texts, however long they are.
//!
//! To compare line by line takes many times the room of the lines. Of a long text only what
//! lies between its first and its last change is compared so. It never touches files.

use super::{difflib, difflib::Effort, pytext};

/// Of longer texts both ends that are equal are left out before lines are compared.
const COMPARED_BYTES_MAX: usize = 64 << 20;
/// Equal lines that are kept at each end: what a difference shows around a change.
const LINES_AROUND: usize = 3;

/// The unified difference, empty when the texts are equal. Of changes that lie further apart
/// than can be compared it says where they are and how long.
#[must_use]
pub fn unified(old: &str, new: &str, name_a: &str, name_b: &str) -> String {
    within(old, new, (name_a, name_b), COMPARED_BYTES_MAX)
}

fn within(old: &str, new: &str, names: (&str, &str), compared_max: usize) -> String {
    if old.len().max(new.len()) <= compared_max {
        let lines = (pytext::lines_kept(old), pytext::lines_kept(new));
        return difflib::unified(&lines.0, &lines.1, names.0, names.1);
    }
    // One long line has no ends that could be left out.
    if old == new {
        return String::new();
    }
    let (start, end) = equal_ends(old.as_bytes(), new.as_bytes());
    let part = |text: &'_ str| -> (usize, usize) { (start, text.len() - end) };
    let (old_part, new_part) = (part(old), part(new));
    let cut =
        |text: &str, (from, to): (usize, usize)| text.get(from..to).unwrap_or(text).to_owned();
    let before = old.get(..start).unwrap_or_default();
    let skipped = before
        .split_inclusive('\n')
        .map(|line| pytext::lines_kept(line).len())
        .sum();
    let (from, to) = old_part;
    if (to - from).max(new_part.1 - new_part.0) > compared_max {
        return format!(
            "--- {}\n+++ {}\n# from line {} on {} bytes become {}: too long to be compared line by line\n",
            names.0,
            names.1,
            skipped + 1,
            to - from,
            new_part.1 - new_part.0
        );
    }
    let (old, new) = (cut(old, old_part), cut(new, new_part));
    let lines = (pytext::lines_kept(&old), pytext::lines_kept(&new));
    difflib::unified_behind(skipped, &lines.0, &lines.1, names, &mut Effort::default())
}

/// How long two texts are equal at their beginning and at their end, in whole lines and but
/// for some lines around what is between.
fn equal_ends(old: &[u8], new: &[u8]) -> (usize, usize) {
    let same = |(one, other): &(&u8, &u8)| one == other;
    let start = old.iter().zip(new).take_while(same).count();
    let start = back_by_lines(old.get(..start).unwrap_or_default());
    let rest = |text: &[u8]| text.len() - start;
    let most = rest(old).min(rest(new));
    let end = old.iter().rev().zip(new.iter().rev()).take(most);
    let end = end.take_while(same).count();
    let tail = old.get(old.len() - end..).unwrap_or_default();
    let mut around = tail
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        // The first line of it may have begun with another text.
        .skip(LINES_AROUND);
    let end = around.next().map_or(0, |(at, _)| end - at - 1);
    (start, end)
}

/// Where the lines begin that are kept before the end of this.
fn back_by_lines(text: &[u8]) -> usize {
    let mut ends = text
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n')
        // The last line of it may go on.
        .skip(LINES_AROUND);
    ends.next().map_or(0, |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::within;

    fn texts() -> impl Strategy<Value = (String, String)> {
        let line = prop::sample::select(vec![
            "a\n",
            "b\n",
            "\n",
            "long line\r\n",
            "\u{e9}\n",
            "x\ry\n",
        ]);
        let lines = prop::collection::vec(line, 0..40);
        (
            lines.clone(),
            lines.clone(),
            lines.clone(),
            lines,
            any::<bool>(),
        )
            .prop_map(|(start, old, new, end, is_ended)| {
                let mut texts =
                    [old, new].map(|middle| [&start[..], &middle[..], &end[..]].concat().concat());
                if !is_ended {
                    texts
                        .iter_mut()
                        .for_each(|text| text.truncate(text.len() - 1));
                }
                let [old, new] = texts;
                (old, new)
            })
    }

    /// Lines numbered, so that there is one way to tell a change.
    fn numbered(changed: &[usize]) -> String {
        let line = |number| {
            if changed.contains(&number) {
                format!("changed {number}\n")
            } else {
                format!("line {number}\n")
            }
        };
        (0..100).map(line).collect()
    }

    #[test]
    fn what_is_left_out_changes_nothing_of_what_is_told() {
        for changed in [
            &[0][..],
            &[99],
            &[50],
            &[3],
            &[96],
            &[0, 99],
            &[40, 41, 55],
            &[],
        ] {
            let (old, new) = (numbered(&[]), numbered(changed));
            let whole = within(&old, &new, ("a", "b"), usize::MAX);
            let compared_max = if changed.len() > 1 { 900 } else { 100 };
            assert_eq!(
                within(&old, &new, ("a", "b"), compared_max),
                whole,
                "{changed:?}"
            );
        }
    }

    #[test]
    fn one_line_longer_than_can_be_compared_is_equal_to_itself() {
        assert_eq!(within("long line\r", "long line\r", ("a", "b"), 8), "");
        assert!(!within("long line\r", "long line!", ("a", "b"), 8).is_empty());
    }

    #[test]
    fn changes_too_far_apart_are_told_by_place_and_length() {
        // Lines 18 to 84, of eight bytes each; two of them become three bytes longer.
        assert_eq!(
            within(&numbered(&[]), &numbered(&[20, 80]), ("a", "b"), 100),
            "--- a\n+++ b\n# from line 18 on 536 bytes become 542: too long to be compared line by line\n"
        );
    }

    proptest! {
        #[test]
        fn equal_texts_and_none_but_equal_texts_have_no_difference((old, new) in texts()) {
            let told = within(&old, &new, ("a", "b"), 8);
            prop_assert_eq!(told.is_empty(), old == new);
        }
    }
}
