//! Laws that hold for every input, as functions over bytes.
//!
//! A law takes bytes because that is what a fuzzer offers; it builds a value
//! from them and says what is wrong, if anything is. The fuzz targets in `fuzz/`
//! call nothing else, and the tests below run the same laws over the seed
//! inputs and over noise, so that a law is never only as good as the last fuzz
//! run. A law must never execute anything, or open or change a file but in a
//! directory that it made.

mod acp;
mod authority;
mod batch;
mod cap;
mod changeset;
mod config;
mod difference;
mod generated;
mod journal;
mod ledger;
mod opened;
mod plan;
mod protocol;
mod relpath;
mod scope;
mod session;
mod steps;
mod v4a;
mod vectors;

use arbitrary::Unstructured;

pub use steps::{STEPS_TOLD, steps};

/// What a law says: fine, or what does not hold, and after a colon of what: what comes
/// before it is the same for every input that breaks the law in the same way.
pub type Verdict = Result<(), String>;

/// A law, by the name of its fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    /// The name of the fuzz target and of the seed directory.
    pub name: &'static str,
    /// What holds, in one sentence.
    pub sentence: &'static str,
    /// What it counts ([`steps()`]), where one input is a sequence of many.
    pub step: Option<&'static str>,
    /// Checks it for one input.
    pub check: fn(&[u8]) -> Verdict,
}

impl Law {
    /// For fuzz targets: checks the law and reports a broken one the way a fuzzer
    /// notices, by panicking.
    ///
    /// # Panics
    /// The law does not hold for `bytes`.
    #[expect(
        clippy::panic,
        reason = "a fuzzer notices nothing else; no program calls this"
    )]
    #[inline]
    pub fn uphold(self, bytes: &[u8]) {
        if let Err(broken) = (self.check)(bytes) {
            panic!("{}: {broken}", self.sentence);
        }
    }
}

/// All laws, by name.
pub const ALL: &[Law] = &[
    ACP,
    AUTHORITY,
    BATCH,
    CAP,
    CATALOGUE,
    CHANGESET,
    CONFIG,
    DIFFERENCE,
    GENERATED,
    JOURNAL,
    LEDGER,
    PLAN,
    PROTOCOL_FRAME,
    RELPATH,
    SCOPE,
    SESSION,
    SUITE,
    V4A,
];

/// The law of this name.
pub fn named(name: &str) -> Option<&'static Law> {
    ALL.iter().find(|law| law.name == name)
}

// Each is a constant of its own, so that a fuzz target which names one holds that one's code
// and no other's: an engine goes through the counters of all code a target holds after every
// input.

/// See its sentence.
pub const ACP: Law = Law {
    name: "acp",
    sentence: "no bytes upset the server for editors: every line it writes is valid, and no file changes without a yes to that change",
    step: None,
    check: acp::check,
};

/// See its sentence.
pub const AUTHORITY: Law = Law {
    name: "authority",
    sentence: "covers is an order, meet the most that two share, and attenuating never amplifies",
    step: None,
    check: authority::check,
};

/// See its sentence.
pub const BATCH: Law = Law {
    name: "batch",
    sentence: "segments add up to the batch, and no two calls of a parallel one overlap",
    step: Some("calls planned"),
    check: batch::check,
};

/// See its sentence.
pub const CAP: Law = Law {
    name: "cap",
    sentence: "what one cap covers and two share is an order, whatever verb and object they have",
    step: None,
    check: cap::check,
};

/// See its sentence.
pub const CATALOGUE: Law = Law {
    name: "catalogue",
    sentence: "no text upsets the reader of known divergences, and its findings do not vary",
    step: None,
    check: vectors::check_catalogue,
};

/// See its sentence.
pub const CHANGESET: Law = Law {
    name: "changeset",
    sentence: "what is read from a layer is exactly the difference of the two trees, however it is marked",
    step: None,
    check: changeset::check,
};

/// See its sentence.
pub const CONFIG: Law = Law {
    name: "config",
    sentence: "no text upsets the reader of configurations, and two files together are never laxer than one",
    step: None,
    check: config::check,
};

/// See its sentence.
pub const DIFFERENCE: Law = Law {
    name: "difference",
    sentence: "equal runs never differ, and what the agent does beyond its grants is always found",
    step: Some("steps judged"),
    check: difference::check,
};

/// See its sentence.
pub const GENERATED: Law = Law {
    name: "generated",
    sentence: "what is generated is made again from its name alone, and shrinks to what is made the same way",
    step: Some("specimens read by their names"),
    check: generated::check,
};

/// See its sentence.
pub const JOURNAL: Law = Law {
    name: "journal",
    sentence: "a commit that is cut off happened whole or not at all, an undo brings back all there was, and what others put there stays",
    step: None,
    check: journal::check,
};

/// See its sentence.
pub const LEDGER: Law = Law {
    name: "ledger",
    sentence: "a damaged ledger is refused as it stands or cut to what was written, never read as something else",
    step: Some("openings of a file"),
    check: ledger::check,
};

/// See its sentence.
pub const PLAN: Law = Law {
    name: "plan",
    sentence: "no text upsets the reader of plans, and no answer adds a call, a step or a program to one",
    step: None,
    check: plan::check,
};

/// See its sentence.
pub const PROTOCOL_FRAME: Law = Law {
    name: "protocol_frame",
    sentence: "no bytes upset the frame reader, and what it reads it writes back the same",
    step: None,
    check: protocol::check,
};

/// See its sentence.
pub const RELPATH: Law = Law {
    name: "relpath",
    sentence: "what reads as a relative path cannot leave its directory, and reads back the same",
    step: None,
    check: relpath::check,
};

/// See its sentence.
pub const SCOPE: Law = Law {
    name: "scope",
    sentence: "every spelling of a path has one canonical name, and that name is its own",
    step: None,
    check: scope::check,
};

/// See its sentence.
pub const SESSION: Law = Law {
    name: "session",
    sentence: "every permit comes from a live grant that covers it, whatever happened before",
    step: Some("turns of a session"),
    check: session::check,
};

/// See its sentence.
pub const SUITE: Law = Law {
    name: "suite",
    sentence: "no text upsets the reader of vectors, and every problem names its file in one line",
    step: None,
    check: vectors::check_suite,
};

/// See its sentence.
pub const V4A: Law = Law {
    name: "v4a",
    sentence: "no text upsets the patch reader, and what is printed reads back the same",
    step: None,
    check: v4a::check,
};

/// Fails with `message` unless `condition` holds.
fn ensure(condition: bool, message: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { Err(message()) }
}

/// Text over a small alphabet, so that equal and nested names turn up often.
fn text(bytes: &mut Unstructured<'_>, alphabet: &[&str], pieces_max: usize) -> String {
    let pieces = bytes.int_in_range(0..=pieces_max).unwrap_or(0);
    let mut text = String::with_capacity(pieces.saturating_mul(4));
    for _ in 0..pieces {
        text.push_str(bytes.choose(alphabet).copied().unwrap_or(""));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn fuzz_dir() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
    }

    fn names_in(dir: &str) -> BTreeSet<String> {
        fs::read_dir(fuzz_dir().join(dir))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn every_law_has_a_fuzz_target_seeds_and_a_row() {
        let laws: BTreeSet<String> = ALL.iter().map(|law| law.name.to_owned()).collect();
        assert_eq!(laws.len(), ALL.len(), "a name twice");
        assert_eq!(laws, names_in("fuzz_targets"));
        assert_eq!(laws, names_in("seeds"));
        let readme = fs::read_to_string(fuzz_dir().join("README.md")).unwrap();
        let manifest = fs::read_to_string(fuzz_dir().join("Cargo.toml")).unwrap();
        for law in ALL {
            let row = format!("| `{}` | {} |", law.name, law.sentence);
            assert!(readme.contains(&row), "fuzz/README.md lacks the row {row}");
            let bin = format!("name = \"{}\"", law.name);
            assert!(manifest.contains(&bin), "fuzz/Cargo.toml lacks {bin}");
            let target = fuzz_dir().join(format!("fuzz_targets/{}.rs", law.name));
            let call = format!("law::{}.uphold(bytes)", law.name.to_uppercase());
            let target = fs::read_to_string(target).unwrap();
            assert!(target.contains(&call), "{target} lacks {call}");
        }
    }

    #[test]
    fn every_law_holds_for_its_seeds() {
        for law in ALL {
            let mut seeds = 0;
            for entry in fs::read_dir(fuzz_dir().join("seeds").join(law.name)).unwrap() {
                let path = entry.unwrap().path();
                let bytes = fs::read(&path).unwrap();
                assert_eq!((law.check)(&bytes), Ok(()), "{}", path.display());
                seeds += 1;
            }
            assert!(seeds > 0, "{} has no seed", law.name);
        }
    }

    proptest! {
        // Some laws make directories; all of them are fuzzed beside this.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_law_holds_for_noise(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            for law in ALL {
                prop_assert_eq!((law.check)(&bytes), Ok(()), "{}", law.name);
            }
        }
    }
}
