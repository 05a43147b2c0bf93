//! What anybody changes in the directories a running command sees.
//!
//! What for: what others change through this program is known, and what somebody saves in
//! an editor of their own is not. The kernel's watches tell of that, one for each
//! directory, those nearest to the top first.
//!
//! It tells names and nothing else, and it may miss some: what it does not tell of, the
//! command sees as the kernel remembers it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use hermitcrab_core::path::RelPath;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::Underway;
use crate::dircap::open::{Links, open_beneath};
use crate::dircap::{DirCap, Kind, TEMPORARY_PREFIX, list_dir};

/// Directories of one command's views that are watched.
const DIRS_MAX: usize = 2048;
/// Names told at one time.
const NAMES_MAX: usize = 1024;
/// Bytes read of the watches at one time.
const BUFFER_BYTES: usize = 16 * 1024;

/// Watches over the directories of one command.
#[derive(Debug)]
pub struct Outside {
    underway: Underway,
    watches: OwnedFd,
    /// Which directory of which view each watch is of.
    dirs: BTreeMap<i32, (usize, RelPath)>,
}

impl Underway {
    /// Watches over what it sees, whoever changes that.
    ///
    /// # Errors
    /// The kernel gives no more of them.
    pub fn outside(&self) -> io::Result<Outside> {
        let mut outside = Outside {
            underway: self.clone(),
            watches: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            dirs: BTreeMap::new(),
        };
        for view in 0..self.0.views.len() {
            outside.watch(view, RelPath::root());
        }
        Ok(outside)
    }
}

impl Outside {
    /// Waits at most so long for a change; the names that were changed, by view. Nothing,
    /// too, once the command has ended.
    ///
    /// # Errors
    /// The watches cannot be read.
    pub fn changed(&mut self, patience: Duration) -> io::Result<Vec<(usize, RelPath)>> {
        let timeout = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut wanted = [PollFd::new(&self.watches, PollFlags::IN)];
        match poll(&mut wanted, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let (mut names, mut made) = (Vec::new(), Vec::new());
        let watches = self.watches.try_clone()?;
        let mut reader = Reader::new(watches.as_fd(), &mut buffer);
        while names.len() < NAMES_MAX {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(errno) => return Err(errno.into()),
            };
            if event.events().contains(ReadFlags::IGNORED) {
                self.dirs.remove(&event.wd());
                continue;
            }
            let (Some((view, dir)), Some(name)) = (self.dirs.get(&event.wd()), event.file_name())
            else {
                continue;
            };
            let name = name.to_bytes();
            // What a commit stages there is nobody's.
            if name.starts_with(TEMPORARY_PREFIX.as_bytes()) {
                continue;
            }
            let Ok(path) = dir.child(name) else {
                continue;
            };
            let is_new = ReadFlags::CREATE | ReadFlags::MOVED_TO;
            if event.events().contains(ReadFlags::ISDIR) && event.events().intersects(is_new) {
                made.push((*view, path.clone()));
            }
            names.push((*view, path));
        }
        for (view, path) in made {
            // What is in it came before it was watched.
            names.extend(self.watch(view, path).into_iter().map(|path| (view, path)));
        }
        Ok(names)
    }

    /// Watches a directory and those below it; the other names in them.
    fn watch(&mut self, view: usize, top: RelPath) -> Vec<RelPath> {
        let (mut names, mut dirs) = (Vec::new(), VecDeque::from([top]));
        let underway = self.underway.clone();
        let Some(cap) = underway.0.views.get(view) else {
            return names;
        };
        while let Some(dir) = dirs.pop_front() {
            if self.dirs.len() >= DIRS_MAX || self.underway.is_over() {
                break;
            }
            let Some(opened) = opened(cap, &dir) else {
                continue;
            };
            let flags = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::ONLYDIR;
            // By what was opened: nobody can put another in its place.
            let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
            let Ok(watch) = inotify::add_watch(&self.watches, Path::new(&link), flags) else {
                break;
            };
            self.dirs.insert(watch, (view, dir.clone()));
            for entry in list_dir(&opened).unwrap_or_default() {
                let name = Path::new(std::ffi::OsStr::from_bytes(&entry.name));
                // The store of a repository is nobody's to watch, and large.
                if name == Path::new(".git") {
                    continue;
                }
                let Ok(child) = dir.child(&entry.name) else {
                    continue;
                };
                if entry.kind == Kind::Dir {
                    dirs.push_back(child.clone());
                }
                if names.len() < NAMES_MAX {
                    names.push(child);
                }
            }
        }
        names
    }
}

fn opened(cap: &DirCap, dir: &RelPath) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    if dir.is_root() {
        return cap.as_fd().try_clone_to_owned().ok();
    }
    open_beneath(cap.as_fd(), dir, flags, Links::Refuse).ok()
}
