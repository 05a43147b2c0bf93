//! The private root of a command: what it sees instead of the machine.
//!
//! Everything is new (tmpfs) except the system directories, which are bound
//! read-only, and the views it is given. Nothing of a home directory, of /var,
//! /run or /sys is there. What the roots of the same surroundings share, all of
//! it read-only, is built once by the zygote ([`template`]) and bound; what can
//! be written is made for each. Order matters: /proc is mounted while the old one
//! is still visible, or the kernel refuses it.

mod etc;
mod machine;
mod places;
mod sources;
mod store;
pub(crate) mod template;
mod tools;
mod views;
mod watches;

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, unmount};

pub(crate) use self::places::EXCHANGE_DIR;
use self::places::{EMPTY, NEW, OWN, place_for};
pub(crate) use self::sources::{Staged, same_directory};
pub(crate) use self::store::is_still;
pub(crate) use self::template::Template;
use self::tools::{READ_ONLY, open_dir, tmpfs};
use self::views::Placed;
use super::channel::Channel;
use super::spec::Surroundings;
use crate::mechanism::{Mechanism, MechanismSet};
use crate::step::{AtStep, Step, StepError};
use crate::sys;

/// Directories of /proc that tell about the machine, and files that do so or act on it.
const PROC_MASKED_DIRS: &[&str] = &["acpi", "asound", "scsi"];
const PROC_MASKED: &[&str] = &[
    "cmdline",
    "config.gz",
    "interrupts",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "latency_stats",
    "sched_debug",
    "sysrq-trigger",
    "timer_list",
    "timer_stats",
];
/// Shown in place of files that are hidden, as seen from /proc.
const NULL: &str = "../dev/null";
/// Directories of /proc that are shown but cannot be written.
const PROC_READ_ONLY: &[&str] = &["bus", "fs", "irq", "sys"];

/// What the caller keeps of the finished root.
pub(crate) struct Built {
    /// The views in it.
    pub views: Placed,
    /// Why there are no terminals, if there are none.
    pub no_terminals: Option<String>,
    /// Whether no user namespace can be made below this one, or why that is not so.
    pub no_nesting: Result<(), String>,
    /// The directory shared with the caller.
    pub exchange: OwnedFd,
}

/// Builds the root from the template and enters it.
pub(crate) fn build(
    template: &Template,
    copier: Option<Channel>,
    spec: &Surroundings,
) -> Result<Built, StepError> {
    // The template is shared with the zygote's other sandboxes, and read-only:
    // whatever is written goes to mounts of this one's own. The mounts this
    // process was born with are locked in their places, a bind of them is not.
    mount_bind_recursive(NEW, NEW).at(Step::PrivateRoot, NEW)?;
    let no_terminals = terminals().err().map(|errno| errno.to_string());
    let no_nesting = proc(spec.without)?;
    own(spec)?;
    let views = views::place_all(spec, template, copier)?;
    let exchange = exchange()?;
    enter()?;
    Ok(Built {
        views,
        no_terminals,
        no_nesting,
        exchange,
    })
}

/// Makes a directory of the small file system and shows it at `target`.
fn part(dir: &Path, target: &Path, mode: u32, step: Step) -> Result<(), StepError> {
    let on = || target.display().to_string();
    fs::create_dir(dir).at(step, on())?;
    // Not at once: the mask of the process would take bits away.
    fs::set_permissions(dir, fs::Permissions::from_mode(mode)).at(step, on())?;
    mount_bind(dir, target).at(step, on())
}

/// Terminals are for programs that insist on one; without them only those lose.
fn terminals() -> rustix::io::Result<()> {
    mount(
        "devpts",
        "/new/dev/pts",
        "devpts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        // Of all there may be on the machine, these are one command's.
        c"newinstance,ptmxmode=0666,mode=620,max=64",
    )
}

/// Mounts /proc, masks it, and has no user namespace be made below this one,
/// whatever the filter says; or tells why that is not so.
fn proc(without: MechanismSet) -> Result<Result<(), String>, StepError> {
    let proc = Path::new(NEW).join("proc");
    if without.contains(Mechanism::PidNamespace) {
        // The kernel shows nobody the processes of a namespace that is not theirs, but by
        // the mount that is there.
        mount_bind_recursive("/proc", &proc)
    } else {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", &proc, "proc", flags, c"")
    }
    .at(Step::MountProc, "/proc")?;
    // Short names from here on: every step of a path counts thirty times.
    rustix::process::chdir(&proc).at(Step::MountProc, "/proc")?;
    let no_nesting = if without.contains(Mechanism::NoNesting) {
        Err(String::from("left out"))
    } else {
        // The file is this namespace's own; an old kernel has none.
        fs::write("sys/user/max_user_namespaces", "0").map_err(|error| error.to_string())
    };
    if !without.contains(Mechanism::MaskedProc) {
        for name in PROC_MASKED_DIRS {
            mask(name, [EMPTY, NULL]).at(Step::MountProc, *name)?;
        }
        for name in PROC_MASKED {
            mask(name, [NULL, EMPTY]).at(Step::MountProc, *name)?;
        }
        for name in PROC_READ_ONLY {
            let target = CString::new(*name).at(Step::MountProc, *name)?;
            match mount_bind(&*target, &*target) {
                Ok(()) => {}
                Err(rustix::io::Errno::NOENT) => continue,
                Err(errno) => return Err(StepError::new(Step::MountProc, *name, errno)),
            }
            sys::mount_setattr(CWD, &target, false, READ_ONLY).at(Step::MountProc, *name)?;
        }
    }
    rustix::process::chdir("/").at(Step::MountProc, "/")?;
    Ok(no_nesting)
}

/// Hides a file or directory of the working directory by the first of these that
/// fits, if it is there: asking first would cost as much. One that does not fit costs
/// more than all others together: the kernel takes back a mount it has made already,
/// and waits for every processor.
fn mask(name: &str, [likely, other]: [&str; 2]) -> rustix::io::Result<()> {
    let masked = match mount_bind(likely, name) {
        Err(rustix::io::Errno::NOTDIR) => mount_bind(other, name),
        masked => masked,
    };
    match masked {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        masked => masked,
    }
}

/// Mounts what a command can write besides its views: parts of one file system,
/// and its private directories.
fn own(spec: &Surroundings) -> Result<(), StepError> {
    let own = Path::new(OWN);
    let options = format!(
        "size={},nr_inodes={},mode=",
        // Nothing at all would be without bounds to the kernel.
        spec.limits.tmp_bytes.max(1),
        spec.limits.view_inodes.max(1)
    );
    tmpfs(own, &format!("{options}755"), Step::PrivateDirs)?;
    for (name, at) in [("memory", "dev/shm"), ("tmp", "tmp"), ("kept", "var/tmp")] {
        let elsewhere = match name {
            "tmp" => spec.places.faults.shared_tmp,
            "kept" => !spec.places.use_var_tmp(),
            _ => false,
        };
        if elsewhere {
            continue;
        }
        part(
            &own.join(name),
            &Path::new(NEW).join(at),
            0o1777,
            Step::PrivateDirs,
        )?;
    }
    // In a home below /tmp, as many a container has one, what the template shows lies under
    // what was mounted just now.
    let is_hidden = |path: &Path| {
        let own = ["/tmp", "/var/tmp", "/dev/shm"];
        own.iter().any(|dir| path.starts_with(dir))
    };
    if !spec.places.faults.machine_root {
        let shown = spec.places.shown().filter(|(path, _)| is_hidden(path));
        shown.for_each(|(path, text)| template::show(path, text));
    }
    let mut places = spec.places.private_dirs.clone();
    // Outer ones first.
    places.sort();
    places.dedup();
    for place in places {
        let target = place_for(&place, Step::PrivateDirs)?;
        tmpfs(&target, &format!("{options}755"), Step::PrivateDirs)?;
    }
    Ok(())
}

fn exchange() -> Result<OwnedFd, StepError> {
    let target = Path::new(NEW).join(EXCHANGE_DIR.trim_start_matches('/'));
    part(
        &Path::new(OWN).join("exchange"),
        &target,
        0o700,
        Step::PrivateDirs,
    )?;
    open_dir(&target, Step::PrivateDirs)
}

/// Puts the command's inputs where it finds them. Runs inside.
pub(crate) fn write_inputs(inputs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StepError> {
    for (name, bytes) in inputs {
        let on = String::from_utf8_lossy(name).into_owned();
        if name.contains(&b'/') || name.starts_with(b".") || name.is_empty() {
            return Err(StepError::new(
                Step::PrivateDirs,
                on,
                io::Error::other("an input needs a plain name"),
            ));
        }
        let path = Path::new(EXCHANGE_DIR).join(OsStr::from_bytes(name));
        fs::write(path, bytes).at(Step::PrivateDirs, on)?;
    }
    Ok(())
}

fn enter() -> Result<(), StepError> {
    let new = open_dir(Path::new(NEW), Step::EnterRoot)?;
    rustix::process::fchdir(&new).at(Step::EnterRoot, NEW)?;
    rustix::process::pivot_root(".", ".").at(Step::EnterRoot, NEW)?;
    unmount(".", UnmountFlags::DETACH).at(Step::EnterRoot, "old root")?;
    rustix::process::chdir("/").at(Step::EnterRoot, "/")
}
