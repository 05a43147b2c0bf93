//! Calls of watched processes, which wait until they are answered: seccomp_unotify(2).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::libc;
use seccompiler::sock_filter;

/// The word by which the sandbox's own calls pass unheard. It stands where the kernel does
/// not look and a filter does, in the upper half of an argument that is an `int`. A command may
/// say it too: all it gets is the kernel's answer.
pub(crate) const WORD: u32 = 0x7265_6e61;

/// A call that a watched process waits with, see [`watch_calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchedCall {
    /// Stands for it and for no other.
    pub id: u64,
    /// Who waits, as numbered in the namespace of whoever hears of it.
    pub thread: u32,
    pub number: i64,
    pub arguments: [u64; 6],
}

/// How a watched call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The kernel does what it would have done.
    GoOn,
    /// It returns with this number of an error, or with success for 0.
    Returns(i32),
}

/// Puts a filter on the calling process and its descendants, for good, and returns
/// where the calls are heard of that it says somebody is to be asked about.
///
/// Who waits for an answer is, once heard, interrupted by nothing but its end, which Linux
/// has since 5.19: otherwise a call would begin anew after a signal, in the middle of its
/// effect.
pub(crate) fn watch_calls(program: &[sock_filter]) -> io::Result<OwnedFd> {
    const UNINTERRUPTED: libc::c_ulong = 1 << 5;
    let mut sizes = libc::seccomp_notif_sizes {
        seccomp_notif: 0,
        seccomp_notif_resp: 0,
        seccomp_data: 0,
    };
    // JUSTIFICATION: no safe crate in the tree wraps seccomp(2) with a listener.
    // SAFETY: seccomp(2) writes one `struct seccomp_notif_sizes`, which outlives the call.
    let asked = unsafe {
        let sizes = std::ptr::from_mut(&mut sizes);
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, sizes)
    };
    if asked < 0 {
        return Err(io::Error::last_os_error());
    }
    if usize::from(sizes.seccomp_notif) != size_of::<libc::seccomp_notif>()
        || usize::from(sizes.seccomp_notif_resp) != size_of::<libc::seccomp_notif_resp>()
    {
        return Err(io::Error::other("the kernel's notices have another size"));
    }
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog {
        len,
        filter: program.as_ptr().cast_mut().cast(),
    };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | UNINTERRUPTED;
    // JUSTIFICATION: as above.
    // SAFETY: both crates' `sock_filter` are the kernel's, `len` of them lie there, and
    // seccomp(2) only reads them, within the call.
    let listener = unsafe {
        let program = std::ptr::from_ref(&program);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            program,
        )
    };
    let listener = i32::try_from(listener).map_err(io::Error::other)?;
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // JUSTIFICATION: seccomp(2) gives a descriptor as a number.
    // SAFETY: the kernel has just made it for this process, and nothing else knows of it.
    let listener = unsafe { OwnedFd::from_raw_fd(listener) };
    // Whoever listens runs in the place of whoever waits, at once: the less time there is
    // in which a signal comes before a call was heard. Known since Linux 6.6.
    // JUSTIFICATION: as for `next_call`.
    // SAFETY: this ioctl takes an integer and no pointer.
    let _at_once = unsafe { libc::ioctl(listener.as_raw_fd(), 0x4008_2104, 1_u64) };
    Ok(listener)
}

/// The next call that waits, or `None` if who waited has ended meanwhile. Only after
/// a poll, or it waits for one.
pub(crate) fn next_call(listener: BorrowedFd<'_>) -> io::Result<Option<WatchedCall>> {
    // JUSTIFICATION: no safe crate in the tree has this ioctl; see seccomp_unotify(2).
    // SAFETY: every field is an integer, for which zero is a value, and the kernel wants
    // zeros; it writes one structure of the size that was checked, which outlives the call.
    let (result, notice) = unsafe {
        let mut notice: libc::seccomp_notif = std::mem::zeroed();
        let at = std::ptr::from_mut(&mut notice);
        (libc::ioctl(listener.as_raw_fd(), 0xc050_2100, at), notice)
    };
    if result == 0 {
        return Ok(Some(WatchedCall {
            id: notice.id,
            thread: notice.pid,
            number: i64::from(notice.data.nr),
            arguments: notice.data.args,
        }));
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        error => Err(error),
    }
}

/// Whether the call still waits, so that its thread is who it was.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, call: &WatchedCall) -> bool {
    let id = std::ptr::from_ref(&call.id);
    // JUSTIFICATION: as for `next_call`.
    // SAFETY: the kernel reads one `u64`, which outlives the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), 0x4008_2102, id) == 0 }
}

/// Ends the call that has this id. Nobody may be left to hear it.
pub(crate) fn answer_call(listener: BorrowedFd<'_>, id: u64, answer: Answer) -> io::Result<()> {
    let (error, flags) = match answer {
        Answer::GoOn => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE),
        Answer::Returns(errno) => (errno.saturating_neg(), 0),
    };
    let mut response = libc::seccomp_notif_resp {
        id,
        val: 0,
        error,
        flags: u32::try_from(flags).unwrap_or(0),
    };
    let at = std::ptr::from_mut(&mut response);
    // JUSTIFICATION: as for `next_call`.
    // SAFETY: the kernel reads one structure of the size that was checked, which outlives
    // the call.
    match unsafe { libc::ioctl(listener.as_raw_fd(), 0xc018_2101, at) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// renameat2(2), unheard.
pub(crate) fn rename_unheard(
    dirs: [BorrowedFd<'_>; 2],
    names: [&CStr; 2],
    flags: u32,
) -> io::Result<()> {
    named_unheard(libc::SYS_renameat2, dirs, names, flags)
}

/// linkat(2), unheard. No link is followed.
pub(crate) fn link_unheard(dirs: [BorrowedFd<'_>; 2], names: [&CStr; 2]) -> io::Result<()> {
    named_unheard(libc::SYS_linkat, dirs, names, 0)
}

/// One of the calls that take two names and then their flags.
fn named_unheard(
    call: libc::c_long,
    [from_dir, to_dir]: [BorrowedFd<'_>; 2],
    [from, to]: [&CStr; 2],
    flags: u32,
) -> io::Result<()> {
    let flags = with_word(flags);
    // JUSTIFICATION: the safe forms pass the flags alone.
    // SAFETY: the names are NUL-terminated, the kernel only reads them, and they outlive
    // the call, for which the descriptors are borrowed.
    let result = unsafe {
        let (from_dir, to_dir) = (from_dir.as_raw_fd(), to_dir.as_raw_fd());
        let (from, to) = (from.as_ptr(), to.as_ptr());
        libc::syscall(call, from_dir, from, to_dir, to, flags)
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// landlock_restrict_self(2) with these rules, unheard.
pub(crate) fn restrict_self_unheard(rules: BorrowedFd<'_>) -> io::Result<()> {
    // JUSTIFICATION: the crate that builds rules passes no word.
    // SAFETY: the call takes a descriptor, which is borrowed for it, and an integer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_restrict_self,
            rules.as_raw_fd(),
            with_word(0),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn with_word(flags: u32) -> u64 {
    u64::from(WORD) << 32 | u64::from(flags)
}
