//! Which files of its world a finding does not need.
//!
//! A specimen is made small by its own parts and keeps the world of its kind, so that a name
//! is enough to make it again. A vector is read by people: what its world holds for other
//! specimens is left out of it, as long as the same is found without.

use std::collections::BTreeSet;

use crate::case::CaseFile;

/// So many worlds at most are tried; what is not known to be spare by then stays.
const TRIES_MAX: usize = 40;

/// The paths of files that can be left out together: halves first, then halves of these.
pub(super) fn spare(file: &CaseFile, mut holds: impl FnMut(&CaseFile) -> bool) -> Vec<String> {
    let files = file.world.iter().flat_map(|world| &world.files);
    let paths: Vec<String> = files.map(|file| file.path.clone()).collect();
    let mut gone = BTreeSet::new();
    let mut tries = 0_usize;
    let mut length = paths.len();
    while length > 0 {
        for part in paths.chunks(length) {
            let more: BTreeSet<String> = gone.iter().chain(part).cloned().collect();
            if more.len() == gone.len() {
                continue;
            }
            if tries == TRIES_MAX {
                return gone.into_iter().collect();
            }
            tries += 1;
            let mut less = file.clone();
            leave_out(&mut less, more.iter());
            if holds(&less) {
                gone = more;
            }
        }
        length /= 2;
    }
    gone.into_iter().collect()
}

/// The same case without these files.
pub(super) fn leave_out<'a>(file: &mut CaseFile, paths: impl IntoIterator<Item = &'a String>) {
    let paths: BTreeSet<&String> = paths.into_iter().collect();
    if let Some(world) = &mut file.world {
        world.files.retain(|file| !paths.contains(&file.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Specimen;

    fn paths(file: &CaseFile) -> Vec<String> {
        let files = file.world.iter().flat_map(|world| &world.files);
        files.map(|file| file.path.clone()).collect()
    }

    #[test]
    fn what_is_needed_stays_and_all_else_is_left_out() {
        let file = Specimen::named("crash:command-many~7")
            .and_then(|specimen| specimen.case_file())
            .unwrap();
        let all = paths(&file);
        assert!(all.len() > 4, "{all:?}");
        let ways: [&[usize]; 5] = [&[], &[0], &[4], &[1, 2], &[0, 1, 2, 3, 4]];
        for needed in ways {
            let needed: Vec<&String> = needed.iter().map(|at| &all[*at]).collect();
            let mut tries = 0;
            let found = spare(&file, |less| {
                tries += 1;
                let there = paths(less);
                needed.iter().all(|path| there.contains(path))
            });
            let mut less = file.clone();
            leave_out(&mut less, &found);
            let stays: Vec<String> = paths(&less);
            assert_eq!(stays.iter().collect::<Vec<_>>(), needed);
            assert!(tries <= TRIES_MAX);
        }
    }

    #[test]
    fn where_the_worlds_end_what_is_not_known_stays() {
        let file = Specimen::named("crash:command-many~7").and_then(|one| one.case_file());
        let mut file = file.unwrap();
        let one = file.world.as_ref().unwrap().files[0].clone();
        let many = (0..200).map(|number| bisim_world::protocol::FileSpec {
            path: format!("{}-{number}", one.path),
            ..one.clone()
        });
        file.world.as_mut().unwrap().files = many.collect();
        let mut tries = 0;
        let found = spare(&file, |_| {
            tries += 1;
            false
        });
        assert_eq!((found, tries), (Vec::new(), TRIES_MAX));
    }
}
