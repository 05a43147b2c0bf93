//! Which directory a workspace is, whatever its path is called and whatever lies there later.
//!
//! A path is what a person says; what they mean is the repository that lies there. So what is
//! kept for a workspace names, beside the path, what the file system tells the directory by:
//! its number and when it was made, as numbers are given out again. Where nobody knows when it
//! was made, the file system it lies on stands for that.

use std::os::fd::BorrowedFd;

use hermitcrab_core::standing::Site;
use rustix::fs::{AtFlags, StatxFlags, statx};

use crate::digest::sha256;

/// Which directory this is; `None` if the file system does not say.
#[must_use]
pub fn site(dir: BorrowedFd<'_>) -> Option<Site> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(dir, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    let knows = |flag: StatxFlags| found.stx_mask & flag.bits() != 0;
    let told = match (knows(StatxFlags::INO), knows(StatxFlags::BTIME)) {
        (false, _) => return None,
        // Numbers of devices are given anew whenever something is mounted, so they are left out
        // where they are not needed.
        (true, true) => format!(
            "{} made at {}.{:09}",
            found.stx_ino, found.stx_btime.tv_sec, found.stx_btime.tv_nsec
        ),
        (true, false) => format!(
            "{} on {}:{}",
            found.stx_ino, found.stx_dev_major, found.stx_dev_minor
        ),
    };
    Some(Site::from_digest(sha256(told.as_bytes())))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd as _, path::Path};

    use super::site;

    #[test]
    fn a_directory_is_itself_under_any_name_and_another_one_is_not() {
        let temp = tempfile::tempdir().unwrap();
        let at = |path: &Path| site(File::open(path).unwrap().as_fd());
        let (one, aside) = (temp.path().join("one"), temp.path().join("aside"));
        std::fs::create_dir(&one).unwrap();
        let first = at(&one);
        assert!(first.is_some());
        std::fs::write(one.join("file"), "x").unwrap();
        assert_eq!(at(&one), first, "what comes to lie in it changes nothing");
        std::fs::rename(&one, &aside).unwrap();
        std::fs::create_dir(&one).unwrap();
        assert_ne!(at(&one), first);
        assert_eq!(at(&aside), first);
        // Its number may be given out again at once.
        std::fs::remove_dir(&one).unwrap();
        let second = at(&aside);
        std::fs::remove_dir_all(&aside).unwrap();
        std::fs::create_dir(&one).unwrap();
        assert_ne!(at(&one), second);
    }
}
