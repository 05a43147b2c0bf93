//! What a command makes and changes faster than it is looked at.
//!
//! What for: while a look is carried over the command goes on, and nothing of a look stands
//! of which something is another thing by then. It is tried again without that. Were it read
//! anew each time, what such a command has made meanwhile would be in it each time, and
//! what lies still beside it would never be seen by anybody.

use hermitcrab_core::path::RelPath;

use super::SoFar;

impl SoFar<'_> {
    /// The same look without these changes, as [`SoFar::without`], and with no name that was
    /// not in it: so each is smaller than the one before. The others are for the next look.
    #[must_use]
    pub fn without_newcomers(mut self, changes: Vec<(usize, RelPath)>) -> Option<Self> {
        for (meanwhile, set) in self.meanwhile.iter_mut().zip(&self.sets) {
            meanwhile.only = Some(set.names_told());
        }
        self.without(changes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::made::{rel, underway};
    use super::*;

    fn told(look: &SoFar<'_>) -> Vec<RelPath> {
        let changes = look.sets().iter().flat_map(|set| set.changes());
        let mut told: Vec<RelPath> = changes.map(|change| change.path.clone()).collect();
        told.sort();
        told
    }

    #[test]
    fn what_lies_still_is_told_beside_what_is_always_new() {
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path();
        for dir in ["upper", "lower", "upper/made", "upper/made/0", "lower/made"] {
            fs::create_dir(at.join(dir)).unwrap();
        }
        for name in ["still", "made/0/still", "made/0/goes"] {
            fs::write(at.join("upper").join(name), name).unwrap();
        }
        let underway = underway(at);
        let mut look = underway.so_far().unwrap();
        let first = ["made/0", "made/0/goes", "made/0/still", "still"].map(rel);
        assert_eq!(told(&look), first);
        fs::remove_file(at.join("upper/made/0/goes")).unwrap();
        for turn in 1..4 {
            let (file, dir) = (format!("made/0/new {turn}"), format!("made/{turn}"));
            fs::write(at.join("upper").join(&file), "new").unwrap();
            fs::create_dir(at.join("upper").join(&dir)).unwrap();
            look = look
                .without_newcomers(vec![(0, rel("made/0/goes"))])
                .unwrap();
            assert_eq!(told(&look), ["made/0", "made/0/still", "still"].map(rel));
        }
        // Without anything to be left they are told: the next look has them.
        look.stands();
        let next = told(&underway.so_far().unwrap());
        for turn in 1..4 {
            assert!(
                next.contains(&rel(&format!("made/0/new {turn}"))),
                "{next:?}"
            );
            assert!(next.contains(&rel(&format!("made/{turn}"))), "{next:?}");
        }
    }

    #[test]
    fn what_is_gone_waits_where_what_has_come_is_not_looked_at() {
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path();
        for dir in ["upper", "lower"] {
            fs::create_dir(at.join(dir)).unwrap();
            fs::write(at.join(dir).join("old"), "held").unwrap();
        }
        fs::write(at.join("upper/goes"), "goes").unwrap();
        fs::write(at.join("upper/old"), "changed").unwrap();
        let underway = underway(at);
        let look = underway.so_far().unwrap();
        assert_eq!(told(&look), ["goes", "old"].map(rel));
        // What the file held has another name by now, which came after the look.
        fs::write(at.join("upper/new"), "held").unwrap();
        fs::write(at.join("upper/old"), "other").unwrap();
        fs::remove_file(at.join("upper/goes")).unwrap();
        let look = look.without_newcomers(vec![(0, rel("goes"))]).unwrap();
        assert_eq!(told(&look), Vec::<RelPath>::new());
        drop(look);
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(told(&underway.so_far().unwrap()), ["new", "old"].map(rel));
    }
}
