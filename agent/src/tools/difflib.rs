//! Matching blocks, similarity and unified diffs.
//!
//! Patch results show a diff and "did you mean" sections whose exact lines
//! depend on how similar parts are found: longest block first, then left and
//! right of it, with very frequent elements ignored as anchors in long
//! sequences. This module implements that (Ratcliff and Obershelp's method);
//! it never touches files.

use std::{collections::HashMap, hash::Hash};

/// Sequences shorter than this have no "too frequent" elements.
const FREQUENT_FROM_LEN: usize = 200;
/// Unchanged lines kept around a change in a unified diff.
const CONTEXT_LINES: usize = 3;

/// `a[at_a..at_a + len]` equals `b[at_b..at_b + len]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// Start in the first sequence.
    pub at_a: usize,
    /// Start in the second sequence.
    pub at_b: usize,
    /// How many elements.
    pub len: usize,
}

/// How a part of the first sequence becomes a part of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Both parts are equal.
    Equal,
    /// The part is replaced.
    Replace,
    /// The part is only in the first.
    Delete,
    /// The part is only in the second.
    Insert,
}

/// One step from the first sequence to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub change: Change,
    /// Part of the first sequence, start and end.
    pub a: (usize, usize),
    /// Part of the second sequence, start and end.
    pub b: (usize, usize),
}

struct Matcher<'s, T> {
    a: &'s [T],
    b: &'s [T],
    places: HashMap<&'s T, Vec<usize>>,
}

impl<'s, T: Eq + Hash> Matcher<'s, T> {
    fn new(a: &'s [T], b: &'s [T]) -> Self {
        let mut places: HashMap<&T, Vec<usize>> = HashMap::new();
        for (at, element) in b.iter().enumerate() {
            places.entry(element).or_default().push(at);
        }
        if b.len() >= FREQUENT_FROM_LEN {
            let often = b.len() / 100 + 1;
            places.retain(|_, at| at.len() <= often);
        }
        Self { a, b, places }
    }

    fn same(&self, at_a: usize, at_b: usize) -> bool {
        match (self.a.get(at_a), self.b.get(at_b)) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        }
    }

    fn longest(&self, a: (usize, usize), b: (usize, usize)) -> Block {
        let mut best = Block {
            at_a: a.0,
            at_b: b.0,
            len: 0,
        };
        let mut run: HashMap<usize, usize> = HashMap::new();
        for at_a in a.0..a.1 {
            let mut next = HashMap::new();
            let places = self
                .a
                .get(at_a)
                .and_then(|element| self.places.get(element));
            for &at_b in places.into_iter().flatten() {
                if at_b < b.0 {
                    continue;
                }
                if at_b >= b.1 {
                    break;
                }
                let before = at_b
                    .checked_sub(1)
                    .and_then(|left| run.get(&left))
                    .copied()
                    .unwrap_or(0);
                let len = before + 1;
                next.insert(at_b, len);
                if len > best.len {
                    best = Block {
                        at_a: at_a + 1 - len,
                        at_b: at_b + 1 - len,
                        len,
                    };
                }
            }
            run = next;
        }
        while best.at_a > a.0 && best.at_b > b.0 && self.same(best.at_a - 1, best.at_b - 1) {
            best = Block {
                at_a: best.at_a - 1,
                at_b: best.at_b - 1,
                len: best.len + 1,
            };
        }
        while best.at_a + best.len < a.1
            && best.at_b + best.len < b.1
            && self.same(best.at_a + best.len, best.at_b + best.len)
        {
            best.len += 1;
        }
        best
    }

    fn blocks(&self) -> Vec<Block> {
        let mut todo = vec![((0, self.a.len()), (0, self.b.len()))];
        let mut found = Vec::new();
        while let Some((a, b)) = todo.pop() {
            let block = self.longest(a, b);
            if block.len == 0 {
                continue;
            }
            found.push(block);
            if a.0 < block.at_a && b.0 < block.at_b {
                todo.push(((a.0, block.at_a), (b.0, block.at_b)));
            }
            if block.at_a + block.len < a.1 && block.at_b + block.len < b.1 {
                todo.push(((block.at_a + block.len, a.1), (block.at_b + block.len, b.1)));
            }
        }
        found.sort_unstable();
        let mut joined: Vec<Block> = Vec::with_capacity(found.len() + 1);
        for block in found {
            match joined.last_mut() {
                Some(last)
                    if last.at_a + last.len == block.at_a && last.at_b + last.len == block.at_b =>
                {
                    last.len += block.len;
                }
                _ => joined.push(block),
            }
        }
        joined.push(Block {
            at_a: self.a.len(),
            at_b: self.b.len(),
            len: 0,
        });
        joined
    }
}

/// The steps that turn `a` into `b`.
#[must_use]
pub fn steps<T: Eq + Hash>(a: &[T], b: &[T]) -> Vec<Step> {
    let (mut at_a, mut at_b) = (0, 0);
    let mut steps = Vec::new();
    for block in Matcher::new(a, b).blocks() {
        let change = match (at_a < block.at_a, at_b < block.at_b) {
            (true, true) => Some(Change::Replace),
            (true, false) => Some(Change::Delete),
            (false, true) => Some(Change::Insert),
            (false, false) => None,
        };
        if let Some(change) = change {
            steps.push(Step {
                change,
                a: (at_a, block.at_a),
                b: (at_b, block.at_b),
            });
        }
        at_a = block.at_a + block.len;
        at_b = block.at_b + block.len;
        if block.len > 0 {
            steps.push(Step {
                change: Change::Equal,
                a: (block.at_a, at_a),
                b: (block.at_b, at_b),
            });
        }
    }
    steps
}

/// How alike two texts are, 0 to 1, letter by letter.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "texts are far shorter than 2^52 letters"
)]
pub fn ratio(a: &str, b: &str) -> f64 {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let total = a.len() + b.len();
    if total == 0 {
        return 1.0;
    }
    let same: usize = Matcher::new(&a, &b)
        .blocks()
        .iter()
        .map(|block| block.len)
        .sum();
    2.0 * same as f64 / total as f64
}

/// Steps in groups, each with up to [`CONTEXT_LINES`] equal lines around.
fn groups(mut steps: Vec<Step>) -> Vec<Vec<Step>> {
    if let Some(first) = steps
        .first_mut()
        .filter(|step| step.change == Change::Equal)
    {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT_LINES));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT_LINES));
    }
    if let Some(last) = steps.last_mut().filter(|step| step.change == Change::Equal) {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT_LINES);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT_LINES);
    }
    let mut groups = Vec::new();
    let mut group: Vec<Step> = Vec::new();
    for mut step in steps {
        if step.change == Change::Equal && step.a.1 - step.a.0 > 2 * CONTEXT_LINES {
            group.push(Step {
                change: Change::Equal,
                a: (step.a.0, step.a.1.min(step.a.0 + CONTEXT_LINES)),
                b: (step.b.0, step.b.1.min(step.b.0 + CONTEXT_LINES)),
            });
            groups.push(std::mem::take(&mut group));
            step.a.0 = step.a.0.max(step.a.1.saturating_sub(CONTEXT_LINES));
            step.b.0 = step.b.0.max(step.b.1.saturating_sub(CONTEXT_LINES));
        }
        group.push(step);
    }
    if group.iter().any(|step| step.change != Change::Equal) {
        groups.push(group);
    }
    groups
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        len => format!("{},{len}", start + 1),
    }
}

/// A unified diff of two lists of lines (line ends kept), empty when equal.
#[must_use]
pub fn unified(a: &[&str], b: &[&str], name_a: &str, name_b: &str) -> String {
    let mut out = String::new();
    for group in groups(steps(a, b)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        if out.is_empty() {
            out.push_str(&format!("--- {name_a}\n+++ {name_b}\n"));
        }
        out.push_str(&format!(
            "@@ -{} +{} @@\n",
            range(first.a.0, last.a.1),
            range(first.b.0, last.b.1)
        ));
        for step in &group {
            let old = a.get(step.a.0..step.a.1).unwrap_or_default();
            let new = b.get(step.b.0..step.b.1).unwrap_or_default();
            let (old_mark, shown_new) = match step.change {
                Change::Equal => (' ', &[][..]),
                Change::Replace | Change::Delete | Change::Insert => ('-', new),
            };
            for line in old {
                out.push(old_mark);
                out.push_str(line);
            }
            for line in shown_new {
                out.push('+');
                out.push_str(line);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{ratio, unified};
    use crate::tools::pytext::lines_kept;

    fn diff(a: &str, b: &str) -> String {
        unified(&lines_kept(a), &lines_kept(b), "a/f", "b/f")
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(diff("a\nb\n", "a\nb\n"), "");
    }

    #[test]
    fn a_changed_line_shows_with_its_surroundings() {
        assert_eq!(
            diff("one\ntwo\nthree\n", "one\nTWO\nthree\n"),
            "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
        );
    }

    #[test]
    fn far_changes_get_their_own_group() {
        let old: String = (0..20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("2\n3", "2\nx").replace("17\n", "");
        let shown = diff(&old, &new);
        assert_eq!(shown.matches("@@ -").count(), 2, "{shown}");
    }

    #[test]
    fn adding_to_an_empty_text_starts_at_zero() {
        assert_eq!(diff("", "x\n"), "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn ratio_counts_matching_letters_twice() {
        assert!((ratio("abcd", "bcde") - 0.75).abs() < 1e-12);
        assert!((ratio("", "") - 1.0).abs() < 1e-12);
        assert!(ratio("abc", "xyz").abs() < 1e-12);
    }
}
