//! What a rename or a link that waits is about.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use nix::libc;
use rustix::fs::{Mode, OFlags, open};

use crate::sys::watched::WatchedCall;

/// renameat2's order to replace nothing.
pub(super) const NO_REPLACE: u32 = libc::RENAME_NOREPLACE;
/// And the one to have two things exchange their names.
pub(super) const EXCHANGE: u32 = libc::RENAME_EXCHANGE;
/// As much as the kernel takes for a path, its end included.
const PATH_BYTES: usize = 4096;
/// Memory is there or not by pages, and none is smaller.
const PAGE_BYTES: u64 = 4096;

/// What is to be done with the two names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// The one instead of the other.
    Rename,
    /// The one beside the other.
    Link,
}

/// A rename or a link in the words of whoever waits.
#[derive(Debug)]
pub(super) struct Asked {
    pub wish: Wish,
    pub from: Place,
    pub to: Place,
    pub flags: u32,
}

/// A directory by the number of a descriptor, and a path from there.
#[derive(Debug)]
pub(super) struct Place {
    dir: i32,
    path: CString,
}

/// The two ends of it, whoever asks.
#[derive(Debug)]
pub(super) struct Ends {
    pub wish: Wish,
    pub from: End,
    pub to: End,
    pub flags: u32,
}

/// A path, and what it starts at if it is relative.
#[derive(Debug)]
pub(super) struct End {
    pub base: OwnedFd,
    pub path: CString,
}

impl Asked {
    /// None where the kernel is to answer: something is wrong with it, or a link is to be
    /// followed.
    pub(super) fn read(call: &WatchedCall) -> Option<Self> {
        let (wish, [from, to], flags) = forms(call)?;
        let known = match wish {
            Wish::Rename => NO_REPLACE | EXCHANGE,
            Wish::Link => 0,
        };
        if flags & !known != 0 {
            return None;
        }
        let memory = File::open(format!("/proc/{}/mem", call.thread)).ok()?;
        let place = |(dir, address)| {
            Some(Place {
                dir,
                path: text(&memory, address)?,
            })
        };
        Some(Self {
            wish,
            from: place(from)?,
            to: place(to)?,
            flags,
        })
    }
}

/// Whether this call gives a second name.
pub(super) fn links(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_link {
        return true;
    }
    number == libc::SYS_linkat
}

/// A descriptor, and the address of a path.
type Told = (i32, u64);

/// What is wished, both paths, and the flags.
fn forms(call: &WatchedCall) -> Option<(Wish, [Told; 2], u32)> {
    let [first, second, third, fourth, flags, _] = call.arguments;
    #[cfg(target_arch = "x86_64")]
    if let Some(wish) = match call.number {
        libc::SYS_rename => Some(Wish::Rename),
        libc::SYS_link => Some(Wish::Link),
        _ => None,
    } {
        let paths = [(libc::AT_FDCWD, first), (libc::AT_FDCWD, second)];
        return Some((wish, paths, 0));
    }
    let (wish, flags) = match call.number {
        libc::SYS_renameat => (Wish::Rename, 0),
        libc::SYS_renameat2 => (Wish::Rename, low(flags)),
        libc::SYS_linkat => (Wish::Link, low(flags)),
        _ => return None,
    };
    let from = (low(first).cast_signed(), second);
    let to = (low(third).cast_signed(), fourth);
    Some((wish, [from, to], flags))
}

/// What of an argument is an `int` to the kernel.
fn low(argument: u64) -> u32 {
    u32::try_from(argument & u64::from(u32::MAX)).unwrap_or_default()
}

/// The text at an address of a process.
fn text(memory: &File, address: u64) -> Option<CString> {
    let mut found = Vec::new();
    let mut at = address;
    while found.len() < PATH_BYTES {
        // Not over the end of a page: the next one may not be there, and need not.
        let here = PAGE_BYTES.saturating_sub(at % PAGE_BYTES);
        let mut part = vec![0_u8; usize::try_from(here).ok()?];
        let read = memory.read_at(&mut part, at).ok()?;
        part.truncate(read);
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            part.truncate(end);
            found.extend(part);
            return CString::new(found).ok();
        }
        if part.is_empty() {
            return None;
        }
        found.extend(part);
        at = at.checked_add(u64::try_from(read).ok()?)?;
    }
    None
}

impl Place {
    /// Whether it names something in the directory that the other names something in, as
    /// far as their letters say.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        fn above(path: &CStr) -> &[u8] {
            let path = path.to_bytes();
            let end = path.iter().rposition(|byte| *byte == b'/');
            path.get(..end.unwrap_or_default()).unwrap_or_default()
        }
        self.dir == other.dir && above(&self.path) == above(&other.path)
    }

    /// Takes hold of what its path starts at, as this thread sees it. All that a command
    /// starts has the same root.
    pub(super) fn open(self, thread: u32) -> io::Result<End> {
        let own = own(self.path.as_bytes(), thread);
        let (base, path) = if let Some((base, path)) = own {
            (base, CString::new(path)?)
        } else {
            (self.base(thread), self.path)
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(End {
            base: open(base, flags, Mode::empty())?,
            path,
        })
    }

    fn base(&self, thread: u32) -> String {
        if self.path.as_bytes().starts_with(b"/") {
            String::from("/")
        } else if self.dir == libc::AT_FDCWD {
            format!("/proc/{thread}/cwd")
        } else {
            format!("/proc/{thread}/fd/{}", self.dir)
        }
    }
}

/// Where a path begins that goes through a link of /proc to something of whoever asks, and
/// how it goes on from there: to this process, that link leads to something of its own.
fn own(path: &[u8], thread: u32) -> Option<(String, &[u8])> {
    let (process, link) = if let Some(link) = path.strip_prefix(b"/proc/thread-self/") {
        (thread, link)
    } else {
        let link = path.strip_prefix(b"/proc/self/").or_else(|| {
            path.strip_prefix(b"/dev/")
                .filter(|link| link.starts_with(b"fd/"))
        })?;
        (process_of(thread)?, link)
    };
    let (link, rest) = match link.strip_prefix(b"fd/") {
        Some(link) => {
            let end = link.iter().position(|byte| *byte == b'/')?;
            let (number, rest) = link.split_at(end);
            let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
            (format!("fd/{number}"), rest)
        }
        None => (String::from("cwd"), link.strip_prefix(b"cwd")?),
    };
    let begins = rest.iter().position(|byte| *byte != b'/')?;
    let is_below = begins > 0;
    let rest = rest.get(begins..).filter(|_| is_below)?;
    Some((format!("/proc/{process}/{link}"), rest))
}

/// The process a thread is of.
fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let mut lines = status.lines();
    let number = lines.find_map(|line| line.strip_prefix("Tgid:"))?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::own;

    #[test]
    fn what_goes_through_a_link_of_proc_to_whoever_asks_begins_there() {
        let thread = std::process::id();
        let own = |path: &str| {
            let found = own(path.as_bytes(), thread);
            found.map(|(base, rest)| {
                let base = base.replacen(&format!("/proc/{thread}/"), "", 1);
                format!("{base} {}", std::str::from_utf8(rest).expect("text"))
            })
        };
        for (path, found) in [
            ("/proc/self/cwd/d", "cwd d"),
            ("/proc/self/cwd//d/e/", "cwd d/e/"),
            ("/proc/thread-self/cwd/d", "cwd d"),
            ("/proc/self/fd/17/../d", "fd/17 ../d"),
            ("/dev/fd/3/d", "fd/3 d"),
        ] {
            assert_eq!(own(path).as_deref(), Some(found), "{path}");
        }
        for path in [
            "/proc/self/cwd",
            "/proc/self/cwd/",
            "/proc/self/cwdd/d",
            "/proc/self/fd/3",
            "/proc/self/fd//d",
            "/proc/self/fd/x/d",
            "/proc/self/fd/-1/d",
            "/proc/self/root/d",
            "/proc/1/cwd/d",
            "/dev/d",
            "proc/self/cwd/d",
            "",
        ] {
            assert_eq!(own(path), None, "{path}");
        }
    }
}
