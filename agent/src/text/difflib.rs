//! Matching blocks, similarity and unified diffs.
//!
//! Patch results show a diff and "did you mean" sections whose exact lines
//! depend on how similar parts are found: longest block first, then left and
//! right of it, with very frequent elements ignored as anchors in long
//! sequences. This module implements that (Ratcliff and Obershelp's method);
//! it never touches files.
//!
//! What is compared may have been written to take for ever: the time grows with the
//! square of its length and more. So comparing has a measure of [`Effort`]. Beyond it
//! only what is equal at both ends is found, and the rest is told as replaced: a
//! difference is then longer than it need be, and never less than all of it.

use std::{collections::HashMap, hash::Hash};

/// How many places are looked at before a comparison makes do with both ends: some
/// seconds of a processor's time.
const PLACES_MAX: u64 = 400_000_000;
/// The same for all that one question shows, for which somebody waits.
const PLACES_OF_A_QUESTION_MAX: u64 = 50_000_000;

/// What a letter costs besides, as it is put in order to be found.
const PLACES_OF_A_LETTER: usize = 4;
/// So many letters are counted in the time of one place.
const LETTERS_COUNTED: usize = 16;

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

/// What comparing may still cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    places: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { places: PLACES_MAX }
    }
}

impl Effort {
    /// What all differences of one question may cost together.
    #[must_use]
    pub const fn of_a_question() -> Self {
        Self {
            places: PLACES_OF_A_QUESTION_MAX,
        }
    }

    /// So many places, for whatever was looked at elsewhere than here.
    pub fn spend(&mut self, places: usize) {
        let places = u64::try_from(places).unwrap_or(u64::MAX);
        self.places = self.places.saturating_sub(places);
    }

    /// Whether nothing is left of it: what was looked for since may have been overlooked.
    #[must_use]
    pub const fn is_spent(&self) -> bool {
        self.places == 0
    }
}

struct Matcher<'s, T> {
    a: &'s [T],
    b: &'s [T],
    /// Where each element of the first sequence is in the second, in order.
    places: Vec<Option<usize>>,
    lists: Vec<Vec<usize>>,
    effort: &'s mut Effort,
}

impl<'s, T: Eq + Hash> Matcher<'s, T> {
    fn new(a: &'s [T], b: &'s [T], effort: &'s mut Effort) -> Self {
        let mut known: HashMap<&T, usize> = HashMap::new();
        let mut lists: Vec<Vec<usize>> = Vec::new();
        for (at, element) in b.iter().enumerate() {
            let list = *known.entry(element).or_insert(lists.len());
            match lists.get_mut(list) {
                Some(list) => list.push(at),
                None => lists.push(vec![at]),
            }
        }
        if b.len() >= FREQUENT_FROM_LEN {
            let often = b.len() / 100 + 1;
            for list in lists.iter_mut().filter(|list| list.len() > often) {
                *list = Vec::new();
            }
        }
        Self {
            places: a
                .iter()
                .map(|element| known.get(element).copied())
                .collect(),
            lists,
            a,
            b,
            effort,
        }
    }

    fn same(&self, at_a: usize, at_b: usize) -> bool {
        match (self.a.get(at_a), self.b.get(at_b)) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        }
    }

    /// Where the element at `at_a` is in this part of the second sequence.
    fn places(&self, at_a: usize, b: (usize, usize)) -> &[usize] {
        let list = self.places.get(at_a).copied().flatten();
        let list = list.and_then(|list| self.lists.get(list));
        let list = list.map(Vec::as_slice).unwrap_or_default();
        let from = list.partition_point(|at_b| *at_b < b.0);
        let to = list.partition_point(|at_b| *at_b < b.1);
        list.get(from..to).unwrap_or_default()
    }

    fn longest(&mut self, a: (usize, usize), b: (usize, usize), runs: &mut [Run; 2]) -> Block {
        let mut best = Block {
            at_a: a.0,
            at_b: b.0,
            len: 0,
        };
        let [run, next] = runs;
        for at_a in a.0..a.1 {
            if self.effort.places == 0 {
                break;
            }
            let places = self.places(at_a, b);
            let looked_at = places.len().saturating_add(1);
            for &at_b in places {
                let before = at_b.checked_sub(1).map_or(0, |left| run.len_at(left));
                let len = before + 1;
                next.put(at_b, len);
                if len > best.len {
                    best = Block {
                        at_a: at_a + 1 - len,
                        at_b: at_b + 1 - len,
                        len,
                    };
                }
            }
            self.effort.spend(looked_at);
            std::mem::swap(run, next);
            next.clear();
        }
        run.clear();
        if self.effort.places == 0 && best.len == 0 {
            return self.at_an_end(a, b);
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

    /// What both parts begin with, or else what both end with.
    fn at_an_end(&self, a: (usize, usize), b: (usize, usize)) -> Block {
        let most = (a.1 - a.0).min(b.1 - b.0);
        let first = (0..most)
            .take_while(|by| self.same(a.0 + by, b.0 + by))
            .count();
        if first > 0 {
            return Block {
                at_a: a.0,
                at_b: b.0,
                len: first,
            };
        }
        let last = (1..=most)
            .take_while(|by| self.same(a.1 - by, b.1 - by))
            .count();
        Block {
            at_a: a.1 - last,
            at_b: b.1 - last,
            len: last,
        }
    }

    fn blocks(&mut self) -> Vec<Block> {
        let mut runs = [Run::of(self.b.len()), Run::of(self.b.len())];
        let mut todo = vec![((0, self.a.len()), (0, self.b.len()))];
        let mut found = Vec::new();
        while let Some((a, b)) = todo.pop() {
            let block = self.longest(a, b, &mut runs);
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

/// How long the equal run is that ends at each place of the second sequence.
struct Run {
    lens: Vec<usize>,
    /// Those that are not 0.
    set: Vec<usize>,
}

impl Run {
    fn of(len: usize) -> Self {
        Self {
            lens: vec![0; len],
            set: Vec::new(),
        }
    }

    fn len_at(&self, at: usize) -> usize {
        self.lens.get(at).copied().unwrap_or(0)
    }

    fn put(&mut self, at: usize, len: usize) {
        if let Some(place) = self.lens.get_mut(at) {
            *place = len;
            self.set.push(at);
        }
    }

    fn clear(&mut self) {
        for at in self.set.drain(..) {
            if let Some(place) = self.lens.get_mut(at) {
                *place = 0;
            }
        }
    }
}

/// The steps that turn `a` into `b`.
#[must_use]
pub fn steps<T: Eq + Hash>(a: &[T], b: &[T]) -> Vec<Step> {
    steps_within(a, b, &mut Effort::default())
}

fn steps_within<T: Eq + Hash>(a: &[T], b: &[T], effort: &mut Effort) -> Vec<Step> {
    let (mut at_a, mut at_b) = (0, 0);
    let mut steps = Vec::new();
    let change = match (a.is_empty(), b.is_empty()) {
        (true, true) => return steps,
        (true, false) => Some(Change::Insert),
        (false, true) => Some(Change::Delete),
        (false, false) => None,
    };
    if let Some(change) = change {
        // Nothing has to be looked for.
        steps.push(Step {
            change,
            a: (0, a.len()),
            b: (0, b.len()),
        });
        return steps;
    }
    for block in Matcher::new(a, b, effort).blocks() {
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
pub fn ratio(a: &str, b: &str) -> f64 {
    ratio_within(a, b, &mut Effort::default())
}

/// The same, if that is enough: texts are not compared of which one is so much longer than the
/// other that it cannot be.
#[must_use]
pub fn alike(a: &str, b: &str, enough: impl Fn(f64) -> bool) -> Option<f64> {
    alike_within(a, b, enough, &mut Effort::default())
}

/// The same, of many comparisons that have one measure together.
pub fn alike_within(
    a: &str,
    b: &str,
    enough: impl Fn(f64) -> bool,
    effort: &mut Effort,
) -> Option<f64> {
    let (letters_a, letters_b) = (a.chars().count(), b.chars().count());
    let most = share(letters_a.min(letters_b), letters_a + letters_b);
    let letters = letters_a.saturating_add(letters_b);
    if !enough(most) {
        effort.spend(letters / LETTERS_COUNTED + 1);
        return None;
    }
    effort.spend(letters.saturating_mul(PLACES_OF_A_LETTER));
    Some(ratio_within(a, b, effort)).filter(|ratio| enough(*ratio))
}

fn ratio_within(a: &str, b: &str, effort: &mut Effort) -> f64 {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let blocks = Matcher::new(&a, &b, effort).blocks();
    let same = blocks.iter().map(|block| block.len).sum();
    share(same, a.len() + b.len())
}

/// Which part of all letters of two texts these are, that both have.
#[expect(
    clippy::cast_precision_loss,
    reason = "texts are far shorter than 2^52 letters"
)]
fn share(same: usize, total: usize) -> f64 {
    if total == 0 {
        return 1.0;
    }
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
    unified_within(a, b, (name_a, name_b), &mut Effort::default())
}

/// The same with what is left of a measure for several of them.
#[must_use]
pub fn unified_within(a: &[&str], b: &[&str], names: (&str, &str), effort: &mut Effort) -> String {
    unified_behind(0, a, b, names, effort)
}

/// The same of lines that follow as many others, equal in both.
#[must_use]
pub fn unified_behind(
    skipped: usize,
    a: &[&str],
    b: &[&str],
    (name_a, name_b): (&str, &str),
    effort: &mut Effort,
) -> String {
    let mut out = String::new();
    for group in groups(steps_within(a, b, effort)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        if out.is_empty() {
            out.push_str(&format!("--- {name_a}\n+++ {name_b}\n"));
        }
        out.push_str(&format!(
            "@@ -{} +{} @@\n",
            range(skipped + first.a.0, skipped + last.a.1),
            range(skipped + first.b.0, skipped + last.b.1)
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
    use super::{Change, Effort, LETTERS_COUNTED, alike, alike_within};
    use super::{ratio, steps_within, unified};
    use crate::text::pytext::lines_kept;

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

    #[test]
    fn what_is_far_longer_is_not_compared_and_everything_else_is_as_it_was() {
        let long = "ab".repeat(50);
        let texts = ["", "a", "ab", "äb", "abcd", "bcde", "xyz", "abab", &long];
        for (a, b) in texts.iter().flat_map(|a| texts.map(|b| (a, b))) {
            for least in [0.0, 0.3, 0.5, 0.8, 1.0] {
                let enough = |ratio: f64| ratio >= least;
                let expected = Some(ratio(a, b)).filter(|ratio| enough(*ratio));
                assert_eq!(alike(a, b, enough), expected, "{a} {b} {least}");
            }
        }
        for (least, looks) in [(0.01, true), (0.8, false)] {
            let mut effort = Effort::default();
            alike_within("ab", &long, |ratio| ratio >= least, &mut effort);
            let mut only_counted = Effort::default();
            only_counted.spend(102 / LETTERS_COUNTED + 1);
            assert_eq!(effort != only_counted, looks, "{least}");
        }
    }

    /// Texts whose lines each stand in too many places.
    fn slow(lines: u64, seed: u64) -> String {
        let mut state = seed;
        (0..lines)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                format!("{}\n", state % 130)
            })
            .collect()
    }

    #[test]
    fn what_takes_too_long_to_compare_is_told_whole_and_what_is_equal_at_its_ends_is_not() {
        let (a, b) = (slow(2000, 1), slow(2000, 2));
        let around = |text: &str| format!("first\n{text}last\n");
        let (a, b) = (around(&a), around(&b));
        let (a, b) = (lines_kept(&a), lines_kept(&b));
        for places in [0, 1000, u64::MAX] {
            let mut effort = Effort { places };
            let steps = steps_within(&a, &b, &mut effort);
            // Each part once, in order, and equal only what is.
            let (mut at_a, mut at_b) = (0, 0);
            for step in &steps {
                assert_eq!((step.a.0, step.b.0), (at_a, at_b));
                (at_a, at_b) = (step.a.1, step.b.1);
                let is_equal = a[step.a.0..step.a.1] == b[step.b.0..step.b.1];
                assert_eq!(is_equal, step.change == Change::Equal);
            }
            assert_eq!((at_a, at_b), (a.len(), b.len()));
            if places == 0 {
                let changes: Vec<Change> = steps.iter().map(|step| step.change).collect();
                assert_eq!(changes, [Change::Equal, Change::Replace, Change::Equal]);
            }
            assert!(effort.places <= places);
        }
    }
}
