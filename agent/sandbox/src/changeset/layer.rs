//! Reading the private layer of a view: its marks, and what it hides.
//!
//! With an overlay the layer holds what was written, a mark for each deleted
//! name, and a mark on directories that hide everything below them. Where no
//! overlay can be mounted the layer is a copy of the whole view, in which
//! whatever was copied and is missing was deleted.
//!
//! A mark that is not known makes the layer unreadable: a guess could leave
//! out an effect.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::copied::LIST_FROM_COPY;
use super::node::{Xattrs, all_xattrs, kind_of, mode_of};
use crate::dircap::Kind;

/// The directory an overlay works in, beside its upper layer. No process of
/// the sandbox ever sees either of them by this name.
const WORK: &str = "../work";
/// The marks as a user namespace writes them, and as the machine's root does.
const MARKS: [&str; 2] = ["user.overlay.", "trusted.overlay."];

/// How a view was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// What was written, over the directory itself.
    Overlay,
    /// A copy of everything.
    Copy,
}

/// What the marks of a layer say about one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It lies over the name below, if there is one.
    Merged,
    /// It hides the name below.
    Opaque,
    /// The name is deleted.
    Whiteout,
}

impl Layer {
    /// Which kind the layer with this root is.
    pub(crate) fn of(upper: BorrowedFd<'_>) -> io::Result<Self> {
        match rustix::fs::statat(upper, WORK, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Ok(Self::Overlay),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        // Without its list a copy says nothing.
        match rustix::fs::statat(upper, LIST_FROM_COPY, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(Self::Copy),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether a directory of the layer shows nothing of what lies below it.
    pub(crate) fn hides(self, upper: BorrowedFd<'_>) -> io::Result<bool> {
        match self {
            Self::Copy => Ok(true),
            Self::Overlay => Ok(mark_of(&all_xattrs(upper)?, Kind::Dir)? == Mark::Opaque),
        }
    }

    /// Whether this name of the layer stands for a deletion.
    pub(crate) fn is_whiteout(
        self,
        upper: BorrowedFd<'_>,
        name: &[u8],
        stat: &Stat,
    ) -> io::Result<bool> {
        match (self, kind_of(stat)) {
            (Self::Copy, _) | (Self::Overlay, Kind::Dir | Kind::Symlink) => Ok(false),
            (Self::Overlay, Kind::Special) => Ok(FileType::from_raw_mode(stat.st_mode)
                == FileType::CharacterDevice
                && stat.st_rdev == 0),
            (Self::Overlay, Kind::File) => {
                let file = crate::dircap::open_plain(upper, name)?;
                Ok(mark_of(&all_xattrs(file.as_fd())?, Kind::File)? == Mark::Whiteout)
            }
        }
    }
}

/// Reads the marks of a directory or a file.
pub(super) fn mark_of(xattrs: &Xattrs, kind: Kind) -> io::Result<Mark> {
    let mut mark = Mark::Merged;
    for (name, value) in xattrs {
        let Some(what) = MARKS
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix.as_bytes()))
        else {
            continue;
        };
        match what {
            b"opaque" if kind == Kind::Dir && value == b"y" => mark = Mark::Opaque,
            // "x" says that deletions are marked by attributes here.
            b"opaque" if kind == Kind::Dir && value == b"x" => {}
            b"whiteout" if kind == Kind::File => mark = Mark::Whiteout,
            // Bookkeeping without a meaning for what is seen.
            b"origin" | b"impure" | b"nlink" | b"upper" | b"uuid" | b"protattr" => {}
            // Somebody's own attribute under a name like these.
            what if what.starts_with(b"overlay.") => {}
            // A name or content that lies elsewhere, or something newer.
            what => {
                return Err(io::Error::other(format!(
                    "a mark of the layer is not known: {}",
                    String::from_utf8_lossy(what)
                )));
            }
        }
    }
    Ok(mark)
}

/// Makes something in the private layer readable to the agent, whatever mode
/// the command gave it. The mode was noted before; nobody else sees the layer.
pub(super) fn unlock(upper: BorrowedFd<'_>, name: &[u8], stat: &Stat) -> io::Result<()> {
    let Some(wanted) = readable(stat) else {
        return Ok(());
    };
    let file = rustix::fs::openat(
        upper,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    give(file.as_fd(), wanted)
}

/// The same of the layer's own directory.
pub(super) fn unlock_itself(upper: BorrowedFd<'_>, stat: &Stat) -> io::Result<()> {
    readable(stat).map_or(Ok(()), |wanted| give(upper, wanted))
}

/// The mode with which the agent can read something, if it has another.
fn readable(stat: &Stat) -> Option<Mode> {
    let mode = Mode::from_raw_mode(mode_of(stat));
    let wanted = match kind_of(stat) {
        Kind::Dir => mode | Mode::RUSR | Mode::XUSR,
        Kind::File => mode | Mode::RUSR,
        Kind::Symlink | Kind::Special => return None,
    };
    (wanted != mode).then_some(wanted)
}

fn give(file: BorrowedFd<'_>, mode: Mode) -> io::Result<()> {
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::chmod(itself, mode)?)
}

#[cfg(test)]
mod tests {
    use super::{Mark, mark_of};
    use crate::dircap::Kind;

    #[test]
    fn both_spellings_of_a_mark_are_read_and_unknown_ones_are_refused() {
        let check = |name: &str, value: &str, kind: Kind, expected: Option<Mark>| {
            let xattrs = [(name.as_bytes().to_vec(), value.as_bytes().to_vec())].into();
            assert_eq!(mark_of(&xattrs, kind).ok(), expected, "{name}={value}");
        };
        check("user.overlay.opaque", "y", Kind::Dir, Some(Mark::Opaque));
        check("trusted.overlay.opaque", "y", Kind::Dir, Some(Mark::Opaque));
        check("user.overlay.opaque", "x", Kind::Dir, Some(Mark::Merged));
        check(
            "user.overlay.whiteout",
            "",
            Kind::File,
            Some(Mark::Whiteout),
        );
        check("user.overlay.origin", "?", Kind::File, Some(Mark::Merged));
        check("user.comment", "opaque", Kind::Dir, Some(Mark::Merged));
        check("user.overlay.redirect", "/x", Kind::Dir, None);
        check("trusted.overlay.metacopy", "", Kind::File, None);
        check("user.overlay.opaque", "z", Kind::Dir, None);
    }
}
