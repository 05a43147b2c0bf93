//! Cutting a batch into consecutive pieces.

use alloc::vec::Vec;

use super::footprint::Footprint;
use super::scope::ScopePath;
use crate::fault::{self, Fault};

/// How the calls of a segment run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// At the same time.
    Parallel,
    /// One after the other.
    Sequential,
}

impl Lane {
    /// The word for reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parallel => "parallel",
            Self::Sequential => "sequential",
        }
    }
}

/// A number of consecutive calls that run in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// How they run.
    pub lane: Lane,
    /// How many calls; never 0.
    pub calls: usize,
}

/// Cuts a batch into segments, in order; their lengths add up to the batch's.
///
/// A parallel segment has two calls or more, no barrier, and no two calls with
/// overlapping paths. Two sequential segments never follow each other.
#[must_use]
pub fn plan(batch: &[Footprint]) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut run = Run::default();
    for footprint in batch {
        match footprint {
            Footprint::Barrier if !fault::is(Fault::BarrierRunsBeside) => {
                run.close(&mut segments);
                push(&mut segments, Lane::Sequential, 1);
            }
            Footprint::Barrier | Footprint::Independent => run.calls += 1,
            Footprint::Path(path) => {
                // The earlier call must be finished first: a new run begins.
                if run.paths.iter().any(|held| held.overlaps(path))
                    && !fault::is(Fault::OverlapRunsTogether)
                {
                    run.close(&mut segments);
                }
                run.paths.push(path);
                run.calls += 1;
            }
        }
    }
    run.close(&mut segments);
    segments
}

/// The run of calls that could start together, so far.
#[derive(Default)]
struct Run<'a> {
    calls: usize,
    paths: Vec<&'a ScopePath>,
}

impl Run<'_> {
    fn close(&mut self, segments: &mut Vec<Segment>) {
        let lane = if self.calls < 2 {
            Lane::Sequential
        } else {
            Lane::Parallel
        };
        push(segments, lane, self.calls);
        *self = Run::default();
    }
}

fn push(segments: &mut Vec<Segment>, lane: Lane, calls: usize) {
    if calls == 0 {
        return;
    }
    match segments.last_mut() {
        Some(last) if last.lane == Lane::Sequential && lane == Lane::Sequential => {
            last.calls += calls.saturating_sub(usize::from(fault::is(Fault::BatchLosesCalls)));
        }
        _ => segments.push(Segment { lane, calls }),
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned as _;
    use alloc::string::{String, ToString};

    use proptest::prelude::*;

    use super::*;

    /// `!` a barrier, `-` independent, anything else a path.
    fn batch(words: &[&str]) -> Vec<Footprint> {
        words
            .iter()
            .map(|word| match *word {
                "!" => Footprint::Barrier,
                "-" => Footprint::Independent,
                path => Footprint::Path(ScopePath::lexical(path).unwrap()),
            })
            .collect()
    }

    fn check(words: &[&str], expected: &[(&str, usize)]) {
        let got: Vec<_> = plan(&batch(words))
            .iter()
            .map(|segment| (segment.lane.as_str(), segment.calls))
            .collect();
        assert_eq!(got, expected, "{words:?}");
    }

    #[test]
    fn unrelated_calls_run_together() {
        check(&[], &[]);
        check(&["-", "-"], &[("parallel", 2)]);
        check(&["/ov/d", "/ov/g", "-"], &[("parallel", 3)]);
        check(&["/ov/f", "/ov/f2"], &[("parallel", 2)]);
    }

    #[test]
    fn a_barrier_divides_the_batch() {
        check(
            &["-", "-", "!", "-", "-"],
            &[("parallel", 2), ("sequential", 1), ("parallel", 2)],
        );
        check(&["!", "!", "-", "-"], &[("sequential", 2), ("parallel", 2)]);
        check(&["/ov/d", "!", "/ov/f"], &[("sequential", 3)]);
    }

    #[test]
    fn a_second_call_on_the_same_tree_starts_a_new_run() {
        check(&["/a", "-", "/a", "-"], &[("parallel", 2), ("parallel", 2)]);
        check(&["/a", "/a", "/a"], &[("sequential", 3)]);
        check(
            &["/ov/d", "/ov/f", "/ov/d"],
            &[("parallel", 2), ("sequential", 1)],
        );
        check(&["/ov", "/ov/d/e"], &[("sequential", 2)]);
    }

    /// Other ways to write a path.
    fn spelled(path: &str, way: u8) -> String {
        match way {
            _ if !path.starts_with('/') => path.to_owned(),
            0 => path.to_owned(),
            1 => path.replace('/', "//"),
            2 => alloc::format!("/x/..{path}"),
            3 => alloc::format!("{path}/."),
            4 => path.replace('/', "/./"),
            _ => alloc::format!("{path}/y/../"),
        }
    }

    /// The runs a plan has calls in, each by where it begins: those of one call in a
    /// sequential segment, and whole parallel ones.
    fn runs(segments: &[Segment]) -> Vec<core::ops::Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        for segment in segments {
            let end = start + segment.calls;
            match segment.lane {
                Lane::Parallel => found.push(start..end),
                Lane::Sequential => found.extend((start..end).map(|call| call..call + 1)),
            }
            start = end;
        }
        found
    }

    fn are_rivals(left: &Footprint, right: &Footprint) -> bool {
        match (left, right) {
            (Footprint::Path(left), Footprint::Path(right)) => {
                left.is_within(right) || right.is_within(left)
            }
            _ => false,
        }
    }

    const WORDS: [&str; 12] = [
        "!", "-", "/", "/a", "/a/b", "/a/b/c", "/d", "/d/b", "/e", "/f/g", "/h", "/a/k",
    ];

    proptest! {
        #[test]
        fn runs_are_as_long_as_barriers_and_rivals_let_them_be_however_paths_are_written(
            words in prop::collection::vec((prop::sample::select(&WORDS[..]), 0_u8..6), 0..12)
        ) {
            let plain: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let other: Vec<String> = words.iter().map(|(word, way)| spelled(word, *way)).collect();
            let other: Vec<&str> = other.iter().map(String::as_str).collect();
            let calls = batch(&other);
            let segments = plan(&calls);
            prop_assert_eq!(&segments, &plan(&batch(&plain)));
            let runs = runs(&segments);
            for pair in runs.windows(2) {
                let (run, next) = (&calls[pair[0].clone()], &calls[pair[1].start]);
                let is_barred = run.contains(&Footprint::Barrier) || *next == Footprint::Barrier;
                let has_rival = run.iter().any(|call| are_rivals(call, next));
                prop_assert!(is_barred || has_rival, "{:?} {:?}", other, pair);
            }
        }

        #[test]
        fn a_plan_keeps_every_call_in_order_and_apart_from_its_rivals(
            words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..12)
        ) {
            let batch = batch(&words);
            let segments = plan(&batch);
            let total: usize = segments.iter().map(|segment| segment.calls).sum();
            prop_assert_eq!(total, batch.len());
            for pair in segments.windows(2) {
                prop_assert!(pair.iter().any(|segment| segment.lane == Lane::Parallel));
            }
            let mut start = 0;
            for segment in &segments {
                let calls = &batch[start..start + segment.calls];
                start += segment.calls;
                prop_assert!(segment.calls > 0);
                if segment.lane == Lane::Sequential {
                    continue;
                }
                prop_assert!(segment.calls > 1 && !calls.contains(&Footprint::Barrier));
                for (index, left) in calls.iter().enumerate() {
                    for right in &calls[index + 1..] {
                        if let (Footprint::Path(left), Footprint::Path(right)) = (left, right) {
                            let apart = !left.is_within(right) && !right.is_within(left);
                            prop_assert!(apart, "{} and {}", left.to_string(), right.to_string());
                        }
                    }
                }
            }
        }
    }
}
