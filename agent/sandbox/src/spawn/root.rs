//! The private root of a command: what it sees instead of the machine.
//!
//! Everything is new (tmpfs) except the system directories, which are bound
//! read-only, and the views it is given. Nothing of a home directory, of /var,
//! /run or /sys is there. What all roots share is built once by the zygote
//! ([`template`]) and bound; the rest is made for each. Order matters: /proc is
//! mounted while the old one is still visible, or the kernel refuses it.

pub(crate) mod template;
mod tools;
mod views;

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, unmount};

pub(crate) use self::template::Template;
use self::tools::{READ_ONLY, bind_read_only, open_dir, tmpfs};
pub(crate) use self::views::same_directory;
use super::spec::Surroundings;
use super::step::{AtStep, Step, StepError};
use crate::profile::Mechanism;
use crate::sys;

/// Where the command finds its inputs and leaves what the caller wants back.
pub(crate) const EXCHANGE_DIR: &str = "/run/hermitcrab";

const OLD: &str = "/old";
const NEW: &str = "/new";
/// A small file system of the sandbox's own, for its root and its views' layers.
const LAYERS: &str = "/layers";
const ROOT_PART: &str = "/layers/root";
/// Room for the root.
const ROOT_OPTIONS: &str = "size=1m,nr_inodes=4k,mode=755";
/// What the command can write besides its views. /tmp, the shared memory and the
/// exchange directory are parts of it, each a mount for itself: making and taking
/// apart a file system costs several times what a mount costs.
const OWN: &str = "/layers/own";

/// Files of /proc that tell about the machine or act on it.
const PROC_MASKED: &[&str] = &[
    "acpi",
    "asound",
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
    "scsi",
    "sysrq-trigger",
    "timer_list",
    "timer_stats",
];
/// Directories of /proc that are shown but cannot be written.
const PROC_READ_ONLY: &[&str] = &["bus", "fs", "irq", "sys"];

/// What the caller keeps of the finished root.
pub(crate) struct Built {
    /// The upper layer of each copy-on-write view, in order.
    pub uppers: Vec<OwnedFd>,
    /// Why some of them are copies, if they are.
    pub copied: Option<String>,
    /// The directory shared with the caller.
    pub exchange: OwnedFd,
}

/// Builds the root beside the template and enters it.
pub(crate) fn build(
    template: &Template,
    spec: &Surroundings,
    trees: Vec<OwnedFd>,
) -> Result<Built, StepError> {
    // The small root is shared with the zygote's other sandboxes: whatever is
    // written goes to mounts of this one's own.
    shell(template)?;
    terminals();
    proc(!spec.without.contains(Mechanism::MaskedProc))?;
    fs::create_dir(OWN).at(Step::PrivateDirs, OWN)?;
    own(spec)?;
    if spec.faults.home {
        for home in ["home", "root"] {
            let source = Path::new(OLD).join(home);
            if source.is_dir() {
                let target = make_dir(&format!("/{home}"), Step::BindReadOnly)?;
                bind_read_only(&source, &target, Step::BindReadOnly)?;
            }
        }
    }
    let views::Placed { uppers, copied } =
        views::place_all(spec, trees, template.keeps_attributes)?;
    let exchange = exchange()?;
    seal_and_enter()?;
    Ok(Built {
        uppers,
        copied,
        exchange,
    })
}

/// The root with what all commands see, and empty places for what they have for
/// themselves.
fn shell(template: &Template) -> Result<(), StepError> {
    tmpfs(Path::new(LAYERS), ROOT_OPTIONS, Step::PrivateRoot)?;
    part(
        Path::new(ROOT_PART),
        Path::new(NEW),
        0o755,
        Step::PrivateRoot,
    )?;
    from_template(template)?;
    for dir in ["/tmp", "/var", EXCHANGE_DIR] {
        make_dir(dir, Step::PrivateDirs)?;
    }
    symlink("/tmp", Path::new(NEW).join("var/tmp")).at(Step::PrivateDirs, "/var/tmp")
}

fn from_template(template: &Template) -> Result<(), StepError> {
    for (name, link) in &template.links {
        symlink(link, Path::new(NEW).join(name))
            .at(Step::SystemDirs, name.to_string_lossy().into_owned())?;
    }
    for (source, name) in &template.binds {
        let target = Path::new(NEW).join(name);
        let on = || name.to_string_lossy().into_owned();
        fs::create_dir(&target).at(Step::SystemDirs, on())?;
        mount_bind_recursive(source, &target).at(Step::SystemDirs, on())?;
    }
    Ok(())
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
fn terminals() {
    let _mounted = mount(
        "devpts",
        "/new/dev/pts",
        "devpts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        c"newinstance,ptmxmode=0666,mode=620",
    );
}

fn proc(masked: bool) -> Result<(), StepError> {
    let proc = make_dir("/proc", Step::MountProc)?;
    mount(
        "proc",
        &proc,
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        c"",
    )
    .at(Step::MountProc, "/proc")?;
    // No user namespace below this one, whatever the filter says. The file is
    // this namespace's own; an old kernel without it has the filter alone.
    let _forbidden = fs::write(proc.join("sys/user/max_user_namespaces"), "0");
    if !masked {
        return Ok(());
    }
    for name in PROC_MASKED {
        let target = proc.join(name);
        // What is not there needs no mask; asking first would cost as much.
        let masked = match mount_bind("/new/dev/null", &target) {
            Err(rustix::io::Errno::NOTDIR) => mount_bind(template::EMPTY, &target),
            masked => masked,
        };
        match masked {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(StepError::new(Step::MountProc, *name, errno)),
        }
    }
    for name in PROC_READ_ONLY {
        let target = format!("{NEW}/proc/{name}");
        match mount_bind(&target, &target) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => continue,
            Err(errno) => return Err(StepError::new(Step::MountProc, *name, errno)),
        }
        let target = CString::new(target).at(Step::MountProc, *name)?;
        sys::mount_setattr(CWD, &target, false, READ_ONLY).at(Step::MountProc, *name)?;
    }
    Ok(())
}

/// Mounts what a command can write besides its views: parts of one file system,
/// and its private directories.
fn own(spec: &Surroundings) -> Result<(), StepError> {
    let own = Path::new(OWN);
    let options = format!(
        "size={},nr_inodes={},mode=",
        spec.limits.tmp_bytes, spec.limits.view_inodes
    );
    tmpfs(own, &format!("{options}755"), Step::PrivateDirs)?;
    for (name, at) in [("memory", "dev/shm"), ("tmp", "tmp")] {
        part(
            &own.join(name),
            &Path::new(NEW).join(at),
            0o1777,
            Step::PrivateDirs,
        )?;
    }
    let mut places = spec.private_dirs.clone();
    // Outer ones first.
    places.sort();
    places.dedup();
    for place in places {
        let target = views::place_for(&place, Step::PrivateDirs)?;
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

fn seal_and_enter() -> Result<(), StepError> {
    let new = open_dir(Path::new(NEW), Step::EnterRoot)?;
    sys::mount_setattr(new.as_fd(), c"", false, READ_ONLY).at(Step::EnterRoot, NEW)?;
    rustix::process::fchdir(&new).at(Step::EnterRoot, NEW)?;
    rustix::process::pivot_root(".", ".").at(Step::EnterRoot, NEW)?;
    unmount(".", UnmountFlags::DETACH).at(Step::EnterRoot, "old root")?;
    rustix::process::chdir("/").at(Step::EnterRoot, "/")
}

fn make_dir(path: &str, step: Step) -> Result<PathBuf, StepError> {
    let target = Path::new(NEW).join(path.trim_start_matches('/'));
    fs::create_dir_all(&target).at(step, path)?;
    Ok(target)
}
