//! What may have another name.
//!
//! What for: names are read one after the other while the command goes on, so what gets
//! another name meanwhile may be missed at both. Whoever loses the one is to have the other.
//! So what is gone waits until it is known where it went, and so does what a file held that
//! holds something else by now.

use std::collections::BTreeSet;

use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;

use super::{ROUNDS_MAX, SoFar};
use crate::changeset::{ChangeSet, Moment, Overwritten};

/// How often it is looked again after a step of the kernel's clock, where something is gone
/// and that step is not over in which a directory was changed.
const STEPS_MAX: usize = 2;

impl SoFar<'_> {
    /// Looks again, without what may have another name that this look does not tell of.
    /// `None` where there is always more of it.
    pub(super) fn keep_what_may_be_elsewhere(&mut self) -> Option<()> {
        for _ in 0..STEPS_MAX {
            let loses_some = self.is_any_gone() || !self.overwritten_elsewhere().is_empty();
            if !self.is_blurred() || self.may_miss_some() || !loses_some {
                break;
            }
            std::thread::sleep(Moment::step());
            self.read_what_is_kept()?;
        }
        for _ in 0..ROUNDS_MAX {
            let tells_gone = self.meanwhile.iter().any(|view| view.tells_gone);
            let may_miss_some = self.is_blurred() || self.may_miss_some();
            let is_gone_elsewhere = tells_gone && may_miss_some && self.is_any_gone();
            let overwritten = self.overwritten_elsewhere();
            if !is_gone_elsewhere && overwritten.is_empty() {
                return Some(());
            }
            if is_gone_elsewhere {
                for meanwhile in &mut self.meanwhile {
                    meanwhile.tells_gone = false;
                }
            }
            // What is left may be another change by itself.
            self.leave(overwritten);
            self.read_what_is_kept()?;
        }
        None
    }

    /// The files whose content of before is nowhere in this look, and may be in the layer.
    fn overwritten_elsewhere(&self) -> Vec<(usize, RelPath)> {
        if self.sets.iter().all(|set| set.overwritten().is_empty()) {
            return Vec::new();
        }
        let held: BTreeSet<Digest> = self.sets.iter().flat_map(ChangeSet::contents).collect();
        let names_stand = !self.is_blurred() && self.sets.iter().all(ChangeSet::names_stand);
        let may_wait = |bytes| self.sets.iter().any(|set| set.may_wait(bytes));
        let mut elsewhere = Vec::new();
        for (view, set) in self.sets.iter().enumerate() {
            for file in set
                .overwritten()
                .iter()
                .filter(|file| !held.contains(&file.held))
            {
                let is_elsewhere = match file.has_no_other_name {
                    false => !names_stand || may_wait(file.bytes),
                    true => self.was_copied_meanwhile(set, file),
                };
                if is_elsewhere {
                    elsewhere.push((view, file.path.clone()));
                }
            }
        }
        elsewhere
    }

    /// Whether what a file held is in another one by now, which was read before. Whoever
    /// copies it writes to that file first, so it is only looked for where both were
    /// written to since the look began.
    fn was_copied_meanwhile(&self, set: &ChangeSet, file: &Overwritten) -> bool {
        set.was_written_meanwhile(&file.path)
            && self.sets.iter().any(|set| set.may_hold_by_now(file))
    }

    fn is_any_gone(&self) -> bool {
        self.sets.iter().any(ChangeSet::is_any_gone)
    }

    fn is_blurred(&self) -> bool {
        self.sets.iter().any(ChangeSet::is_blurred)
    }

    fn may_miss_some(&self) -> bool {
        self.waits || self.sets.iter().any(ChangeSet::may_miss_some)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use rustix::fs::RenameFlags;

    use super::*;
    use crate::changeset::What;
    use crate::digest::sha256;
    use crate::spawn::underway::made::{rel, underway};

    /// What the files of the directory hold once a look is carried over, by its digest.
    fn carried(lower: &Path, look: &SoFar<'_>, names: [&str; 2]) -> [Digest; 2] {
        let [set] = look.sets() else {
            panic!("one view");
        };
        names.map(|name| {
            let changes = set.changes().iter();
            let mut told = changes.filter_map(|change| match change.what {
                What::ModifiedFile { digest, .. } if change.path == rel(name) => Some(digest),
                _ => None,
            });
            let told = told.next();
            told.unwrap_or_else(|| sha256(&std::fs::read(lower.join(name)).unwrap()))
        })
    }

    /// Says that it is over, whatever becomes of the test.
    struct Over<'o>(&'o AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn of_two_that_are_exchanged_while_they_are_read_both_are_told_or_neither() {
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path();
        let names = ["a", "z"];
        for dir in ["upper", "lower"] {
            std::fs::create_dir(at.join(dir)).unwrap();
            for name in names {
                std::fs::write(at.join(dir).join(name), format!("{name} held")).unwrap();
            }
        }
        // It lies between them and takes its time.
        std::fs::write(at.join("upper/m"), vec![7; 2 << 20]).unwrap();
        let underway = underway(at);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let upper = File::open(at.join("upper")).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let exchange = RenameFlags::EXCHANGE;
                    rustix::fs::renameat_with(&upper, "a", &upper, "z", exchange).unwrap();
                    std::thread::sleep(Duration::from_micros(700));
                }
            });
            let _over = Over(&is_over);
            for _ in 0..30 {
                let Some(look) = underway.so_far() else {
                    continue;
                };
                let [one, other] = carried(&at.join("lower"), &look, names);
                assert_ne!(one, other, "{:?}", look.sets()[0].changes());
            }
        });
        // At rest it is told.
        let upper = File::open(at.join("upper")).unwrap();
        if std::fs::read(at.join("upper/a")).unwrap() == b"a held" {
            let exchange = RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(&upper, "a", &upper, "z", exchange).unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
        let look = underway.so_far().unwrap();
        let exchanged = ["z held", "a held"].map(|held| sha256(held.as_bytes()));
        assert_eq!(carried(&at.join("lower"), &look, names), exchanged);
    }

    #[test]
    fn what_is_copied_into_a_file_that_was_read_and_then_overwritten_is_in_one_of_both() {
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path();
        let (upper, lower) = (at.join("upper"), at.join("lower"));
        for dir in [&upper, &lower] {
            std::fs::create_dir(dir).unwrap();
        }
        let write = |dir: &Path, name: &str, content: &str| {
            std::fs::write(dir.join(name), content).unwrap();
        };
        for dir in [&upper, &lower] {
            write(dir, "a", "at first");
            write(dir, "z", "at first");
        }
        let underway = underway(at);
        // Carries over what a look tells.
        let carry = |look: SoFar<'_>, a: &str, z: &str| {
            for (name, told) in [("a", a), ("z", z)] {
                if std::fs::read(lower.join(name)).unwrap() != told.as_bytes() {
                    write(&lower, name, told);
                }
            }
            look.stands();
        };
        let rest = || std::thread::sleep(Duration::from_millis(20));
        let (mut copied, mut before) = (0, "at first".to_owned());
        for trial in 0..60_u64 {
            let [words, others] = ["words", "others"].map(|what| format!("{what} {trial:04}"));
            write(&upper, "z", &words);
            rest();
            // From here on it is known as the very file.
            carry(underway.so_far().unwrap(), &before, &words);
            // It lies between them and takes its time.
            std::fs::write(upper.join("m"), vec![7; 2 << 20]).unwrap();
            rest();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_micros(300 * trial));
                    // In place, both of them.
                    write(&upper, "a", &words);
                    write(&upper, "z", &others);
                });
                let look = underway.so_far().unwrap();
                let held = carried(&lower, &look, ["a", "z"]);
                let words = sha256(words.as_bytes());
                let changes = look.sets()[0].changes();
                assert!(held.contains(&words), "{trial}: {changes:?}");
                copied += usize::from(held[1] == words);
            });
            // At rest both are told.
            rest();
            let look = underway.so_far().unwrap();
            let told = [&words, &others].map(|held| sha256(held.as_bytes()));
            assert_eq!(carried(&lower, &look, ["a", "z"]), told, "{trial}");
            carry(look, &words, &others);
            before = words;
        }
        assert!(copied > 0, "no look came before the copy");
    }
}
