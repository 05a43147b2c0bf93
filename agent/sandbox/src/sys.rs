//! The calls into the kernel that no safe crate offers.
//!
//! This file and its part `sys/watched.rs` are the only ones of the workspace that may
//! contain `unsafe`. Each block says why a safe call would not do (JUSTIFICATION) and
//! why it is sound (SAFETY). Nothing here decides anything: every function is one
//! system call with its arguments checked by type.

#![expect(
    unsafe_code,
    reason = "the one file where system calls without a safe wrapper live"
)]

pub(crate) mod watched;

use std::convert::Infallible;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::libc;
use nix::sched::CloneFlags;
use nix::unistd::{ForkResult, Pid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Which side of a fork the caller finds itself on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The caller; holds the id of the new process.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks, after proving that the calling process has exactly one thread.
///
/// With one thread no lock can be held by somebody who does not exist in the
/// child, so the child may allocate, format and run ordinary Rust.
pub fn fork_single_threaded() -> io::Result<Forked> {
    require_single_thread()?;
    // JUSTIFICATION: std can only start another program, not split this one.
    // SAFETY: fork(2) is unsafe because of locks held by other threads; the
    // check above found none, and no thread can appear in between because only
    // this thread could start it.
    match unsafe { nix::unistd::fork() } {
        Ok(ForkResult::Parent { child }) => Ok(Forked::Parent(child)),
        Ok(ForkResult::Child) => Ok(Forked::Child),
        Err(errno) => Err(errno.into()),
    }
}

/// Which side of a fork into namespaces the caller finds itself on.
#[derive(Debug)]
pub enum Cloned {
    /// The caller; holds the new process.
    Parent(Cloneling),
    /// The new process.
    Child,
}

/// A process that was just made.
#[derive(Debug)]
pub struct Cloneling {
    /// Its number, which can be another's once it has ended.
    pub number: Pid,
    /// What stands for it and for no other, ever.
    pub handle: OwnedFd,
}

impl Cloneling {
    /// Whether it has ended, reaped or not.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        let mut ended = [PollFd::new(&self.handle, PollFlags::IN)];
        Ok(poll(&mut ended, Some(&Timespec::default()))? > 0)
    }
}

/// Forks into new namespaces, after proving that there is exactly one thread.
pub fn fork_into(namespaces: CloneFlags) -> io::Result<Cloned> {
    require_single_thread()?;
    let flags = namespaces.bits() | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut handle: libc::c_int = -1;
    let none: libc::c_long = 0;
    // JUSTIFICATION: fork(2) followed by unshare(2) would need one more
    // process, because a new pid namespace holds only the children of the
    // caller; nix's clone needs a second stack and makes no descriptor.
    // SAFETY: clone(2) without CLONE_VM and with a null stack behaves as
    // fork(2): the child gets a copy of the memory and returns here. The third
    // argument is where CLONE_PIDFD stores a descriptor, an `int` that outlives
    // the call; the others are null and their flags are not set. One thread
    // only, as checked, so no lock is left held in the child.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(flags),
            none,
            std::ptr::from_mut(&mut handle),
            none,
            none,
        )
    };
    cloned(result, handle)
}

/// The kernel's `struct clone_args`, see clone(2).
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// CLONE_INTO_CGROUP: `cgroup` is the descriptor of the group to be born in.
const INTO_GROUP: u64 = 0x2_0000_0000;

/// As [`fork_into`], with the child born in the group of version 2 whose
/// directory this is.
pub(crate) fn fork_into_group(namespaces: CloneFlags, group: BorrowedFd<'_>) -> io::Result<Cloned> {
    require_single_thread()?;
    let mut handle: libc::c_int = -1;
    let args = CloneArgs {
        flags: u64::from((namespaces.bits() | libc::CLONE_PIDFD).cast_unsigned()) | INTO_GROUP,
        pidfd: u64::try_from(std::ptr::from_mut(&mut handle).addr())
            .map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))?,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        cgroup: u64::from(group.as_raw_fd().unsigned_abs()),
        ..CloneArgs::default()
    };
    // JUSTIFICATION: no safe crate in the tree wraps clone3(2), and moving a
    // process afterwards makes the kernel wait for the whole machine.
    // SAFETY: as for `fork_into`: without CLONE_VM and with a null stack the
    // child gets a copy of the memory and returns here. `args` has the layout
    // and the size the kernel expects, which only reads it, and it outlives
    // the call. `pidfd` is the address of an `int` that outlives the call, too;
    // its other pointers are null and their flags are not set. One thread only,
    // as checked.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            std::ptr::from_ref(&args),
            size_of::<CloneArgs>(),
        )
    };
    cloned(result, handle)
}

/// Stack of a child that shares its parent's memory; touched pages only count.
pub(crate) const SHARING_STACK_BYTES: usize = 512 * 1024;

/// Starts a child in the memory of the calling process, which does not go on
/// until the child has become another program or has ended. Nothing is copied.
///
/// What `child` takes out of its captures is gone for the caller as well;
/// descriptors are the child's own copies. It must not return or unwind. Its
/// stack has [`SHARING_STACK_BYTES`].
pub(crate) fn fork_sharing_memory(
    stack: &mut [u8],
    child: &mut dyn FnMut() -> Infallible,
) -> io::Result<Pid> {
    require_single_thread()?;
    if stack.len() < SHARING_STACK_BYTES {
        return Err(io::Error::other("the child's stack is too small"));
    }
    let run = Box::new(|| match child() {});
    let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK;
    // JUSTIFICATION: fork(2) copies page tables, which costs more than all
    // else that is done here; no safe call avoids that.
    // SAFETY: the child runs on a stack of its own that outlives it, because
    // CLONE_VFORK suspends the only thread of the caller until the child has
    // left this memory by exec or exit. So never do two threads run in it, and
    // the child may allocate. `child` cannot return, so nothing of the
    // caller's stack is unwound twice.
    unsafe { nix::sched::clone(run, stack, flags, Some(libc::SIGCHLD)) }.map_err(Into::into)
}

fn cloned(result: libc::c_long, handle: libc::c_int) -> io::Result<Cloned> {
    match result {
        0 => Ok(Cloned::Child),
        pid if pid > 0 => {
            // JUSTIFICATION: clone(2) gives a descriptor as a number.
            // SAFETY: the kernel made it in the call that has just succeeded,
            // for this process alone, and nothing else knows of it.
            let handle = unsafe { OwnedFd::from_raw_fd(handle) };
            i32::try_from(pid)
                .map(|raw| {
                    Cloned::Parent(Cloneling {
                        number: Pid::from_raw(raw),
                        handle,
                    })
                })
                .map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// The version of Landlock the kernel offers, 0 for none.
pub(crate) fn landlock_version() -> u8 {
    const VERSION_ONLY: libc::c_uint = 1;
    // JUSTIFICATION: the crate that builds rulesets tells the version only
    // after closing one around the caller.
    // SAFETY: landlock_create_ruleset(2) with the version flag takes a null
    // pointer of length zero, makes nothing and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION_ONLY,
        )
    };
    u8::try_from(version).unwrap_or(0)
}

/// Ends the process at once, running no destructor and no exit handler.
///
/// The child of a fork must not run the parent's.
pub fn exit_immediately(code: i32) -> ! {
    // JUSTIFICATION: std::process::exit runs exit handlers registered by the
    // parent before the fork, and flushes its buffers a second time.
    // SAFETY: _exit(2) takes no pointer and does not return.
    unsafe { libc::_exit(code) }
}

/// The kernel's `struct mount_attr`, see mount_setattr(2).
#[repr(C)]
#[derive(Default)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Attributes [`mount_setattr`] can add to a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MountAttributes {
    /// Nothing can be written through the mount.
    pub read_only: bool,
    /// Set-id bits and file capabilities are ignored.
    pub no_suid: bool,
    /// Device nodes cannot be opened.
    pub no_dev: bool,
}

/// Adds attributes to the mount at `path` (or, with an empty path, to `dir`
/// itself), and below it when `recursive`.
pub(crate) fn mount_setattr(
    dir: BorrowedFd<'_>,
    path: &CStr,
    recursive: bool,
    attributes: MountAttributes,
) -> io::Result<()> {
    let mut attr_set = 0;
    if attributes.read_only {
        attr_set |= libc::MOUNT_ATTR_RDONLY;
    }
    if attributes.no_suid {
        attr_set |= libc::MOUNT_ATTR_NOSUID;
    }
    if attributes.no_dev {
        attr_set |= libc::MOUNT_ATTR_NODEV;
    }
    let attr = MountAttr {
        attr_set,
        ..MountAttr::default()
    };
    call_mount_setattr(dir, path, recursive, &attr)
}

/// Translates owners on the detached mount `mount` by the map of `user_namespace`.
pub(crate) fn mount_idmap(mount: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let attr = MountAttr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        userns_fd: u64::try_from(user_namespace.as_raw_fd())
            .map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?,
        ..MountAttr::default()
    };
    call_mount_setattr(mount, c"", false, &attr)
}

fn call_mount_setattr(
    dir: BorrowedFd<'_>,
    path: &CStr,
    recursive: bool,
    attr: &MountAttr,
) -> io::Result<()> {
    let mut flags = libc::AT_EMPTY_PATH;
    if recursive {
        flags |= libc::AT_RECURSIVE;
    }
    // JUSTIFICATION: neither rustix nor nix wraps mount_setattr(2).
    // SAFETY: `path` is a NUL-terminated string and `attr` a `struct
    // mount_attr` of the size passed; the kernel only reads both, and both
    // outlive the call. The descriptor is borrowed for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            dir.as_raw_fd(),
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attr),
            size_of::<MountAttr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Marks every descriptor from `first` upwards to be closed by the next exec.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    // JUSTIFICATION: no safe crate in the tree wraps close_range(2), and
    // walking /proc/self/fd can miss one opened meanwhile.
    // SAFETY: close_range(2) takes three integers. CLOSE_RANGE_CLOEXEC only
    // sets a flag, so no descriptor owned by Rust is closed behind its back.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Gives a descriptor this number, under which the next exec keeps it.
///
/// For a process that is about to become another program: whatever had the
/// number is closed.
pub(crate) fn give_number(fd: OwnedFd, number: i32) -> io::Result<()> {
    // JUSTIFICATION: the safe forms want an owner for the number, and here it
    // belongs to the program that comes next.
    // SAFETY: dup2(2) takes two integers. What it closes is owned, if at all,
    // by a value of the calling process' stack that is not used again: callers
    // exec or exit next.
    if unsafe { libc::dup2(fd.as_raw_fd(), number) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Closes every descriptor above the standard streams that is not in `keep`.
///
/// For a process that has just begun and never comes back to what it was
/// forked from: it must not hold what its parent happened to have open.
pub(crate) fn close_all_but(keep: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut kept: Vec<u32> = keep
        .iter()
        .map(|fd| fd.as_raw_fd().unsigned_abs())
        .collect();
    kept.sort_unstable();
    let mut first = 3_u32;
    for last in kept.into_iter().map(Some).chain([None]) {
        let end = last.map_or(u32::MAX, |kept| kept.saturating_sub(1));
        if first <= end {
            // JUSTIFICATION: as for `close_on_exec_from`.
            // SAFETY: close_range(2) takes three integers. The descriptors
            // closed are owned by values of the parent's stack and heap, which
            // callers never return to, so none is used or closed again.
            let result = unsafe { libc::syscall(libc::SYS_close_range, first, end, 0_u32) };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        first = first.max(last.map_or(u32::MAX, |kept| kept.saturating_add(1)));
    }
    Ok(())
}

/// What a process that serves sandboxes ignores: the end of a child, which the
/// kernel then reaps by itself, and that of a reader and of the size a file may have,
/// which a write tells of.
const IGNORED: [libc::c_int; 3] = [libc::SIGCHLD, libc::SIGPIPE, libc::SIGXFSZ];

/// Ignores the end of a child, of a reader and of a file's size, and gives every other
/// signal its default action. Blocks none.
///
/// Children begin with the same, see [`heed_again`].
pub(crate) fn ignore_ends() {
    reset_signals();
    for number in IGNORED {
        // JUSTIFICATION: nix's signal and sigaction are unsafe for the sake of
        // handlers, and no safe crate in the tree offers the rest.
        // SAFETY: SIG_IGN installs no handler, so no Rust code can be called in
        // a signal context; signal(2) and wait(2): children of a process that
        // ignores SIGCHLD leave no zombie.
        unsafe {
            libc::signal(number, libc::SIG_IGN);
        }
    }
}

/// Takes [`ignore_ends`] back in a child.
///
/// A command started with SIGPIPE ignored would not end when its reader goes away.
pub(crate) fn heed_again() {
    for number in IGNORED {
        // JUSTIFICATION: as for `ignore_ends`.
        // SAFETY: SIG_DFL installs no handler, so no Rust code can be called in
        // a signal context.
        unsafe {
            libc::signal(number, libc::SIG_DFL);
        }
    }
}

/// Gives every signal its default action and blocks none.
fn reset_signals() {
    for number in 1..=64 {
        // JUSTIFICATION: nix's `signal` is unsafe too, and refuses the
        // real-time numbers.
        // SAFETY: SIG_DFL installs no handler, so no Rust code can be called
        // in a signal context. Numbers that cannot be changed are refused by
        // the kernel, which is harmless.
        unsafe {
            libc::signal(number, libc::SIG_DFL);
        }
    }
    // A mask that cannot be cleared leaves the command with signals blocked,
    // which weakens nothing: SIGKILL cannot be blocked.
    let _unblocked = nix::sys::signal::SigSet::empty().thread_set_mask();
}

/// Takes over the descriptor with this number, which the caller says nobody
/// else in this process owns.
///
/// Returns `None` when there is no such descriptor.
pub(crate) fn adopt_descriptor(number: i32) -> Option<OwnedFd> {
    // JUSTIFICATION: descriptors that arrive by inheritance have no Rust owner.
    // SAFETY: fcntl(2) with F_GETFD takes no pointer.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return None;
    }
    // JUSTIFICATION: as above.
    // SAFETY: the descriptor is open, as just checked; callers use this once,
    // at the start of a process, for a number above the standard streams that
    // nothing else wraps.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// How often a process with more than one thread is looked at again.
const THREADS_TRIES: u32 = 200;
/// How long apart.
const THREADS_PAUSE: std::time::Duration = std::time::Duration::from_millis(1);

/// A thread that was joined is still there for a moment, so one that is seen
/// is looked for again before it counts.
fn require_single_thread() -> io::Result<()> {
    // The kernel agrees to this, and does nothing, only for a process of one
    // thread whose memory is its own; see unshare(2). Anything else, a filter
    // that knows no such call included, is looked into.
    if nix::sched::unshare(CloneFlags::CLONE_THREAD).is_ok() {
        return Ok(());
    }
    let mut tries = 0_u32;
    loop {
        let mut threads = 0_usize;
        for entry in std::fs::read_dir("/proc/self/task")? {
            entry?;
            threads = threads.saturating_add(1);
        }
        if threads == 1 {
            return Ok(());
        }
        if tries >= THREADS_TRIES {
            return Err(io::Error::other(format!(
                "cannot fork: the process has {threads} threads and must have one"
            )));
        }
        tries = tries.saturating_add(1);
        std::thread::sleep(THREADS_PAUSE);
    }
}
