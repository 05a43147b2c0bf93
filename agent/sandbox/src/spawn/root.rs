//! The private root of a command: what it sees instead of the machine.
//!
//! Everything is new (tmpfs) except the system directories, which are bound
//! read-only, and the views it is given. Nothing of a home directory, of /var,
//! /run or /sys is there. Order matters: /proc is mounted while the old one is
//! still visible, or the kernel refuses it.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    unmount,
};

use super::spec::{LimitSpec, Spec, ViewSpec};
use super::step::{AtStep, Step, StepError};
use crate::sys::{self, MountAttributes};

/// Where the command finds its inputs and leaves what the caller wants back.
pub(crate) const EXCHANGE_DIR: &str = "/run/hermitcrab";

const OLD: &str = "/old";
const NEW: &str = "/new";
const LAYERS: &str = "/layers";

/// Top-level directories of the system, bound read-only (or copied as links).
const SYSTEM_DIRS: &[&str] = &["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// What of /etc is shown, each read-only, if it is there.
const ETC_ENTRIES: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "gitconfig",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "login.defs",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "perl",
    "pki",
    "profile",
    "protocols",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "services",
    "shells",
    "ssl",
    "terminfo",
    "timezone",
];

/// Devices with their numbers, which are checked after binding.
const DEVICES: &[(&str, u32, u32)] = &[
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
];

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

/// A view cannot be placed at or below these.
const RESERVED: &[&str] = &[
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "dev", "proc", "run",
];

const READ_ONLY: MountAttributes = MountAttributes {
    read_only: true,
    no_suid: true,
    no_dev: true,
};

/// What the caller keeps of the finished root.
pub(crate) struct Built {
    /// The upper layer of each copy-on-write view, in order.
    pub uppers: Vec<OwnedFd>,
    /// The directory shared with the caller.
    pub exchange: OwnedFd,
}

/// Builds the root and enters it. `staged` is where root prepared the views.
pub(crate) fn build(spec: &Spec, staged: Option<&Path>) -> Result<Built, StepError> {
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .at(Step::PrivateRoot, "/")?;
    let base = base_dir()?;
    leave_old_root(&base)?;
    system_dirs()?;
    etc()?;
    devices()?;
    proc()?;
    private_dirs(spec)?;
    if spec.faults.home {
        for home in ["home", "root"] {
            let source = Path::new(OLD).join(home);
            if source.is_dir() {
                let target = make_dir(&format!("/{home}"), Step::BindReadOnly)?;
                bind_read_only(&source, &target, Step::BindReadOnly)?;
            }
        }
    }
    let uppers = views(spec, staged)?;
    let exchange = exchange(spec)?;
    seal_and_enter()?;
    Ok(Built { uppers, exchange })
}

/// A directory that exists, to mount the first tmpfs on; nothing is hidden by
/// it in the end, because it moves away with the old root.
pub(crate) fn base_dir() -> Result<PathBuf, StepError> {
    ["/tmp", "/run", "/mnt", "/var/tmp", "/dev/shm"]
        .into_iter()
        .map(PathBuf::from)
        .find(|dir| fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir()))
        .ok_or_else(|| {
            StepError::new(
                Step::PrivateRoot,
                "/tmp",
                io::Error::from(io::ErrorKind::NotFound),
            )
        })
}

/// Refuses a directory that is not the one the capability holds.
pub(crate) fn same_directory(found: BorrowedFd<'_>, view: &ViewSpec) -> Result<(), StepError> {
    let on = || String::from_utf8_lossy(&view.source).into_owned();
    let stat = rustix::fs::fstat(found).at(Step::ViewSource, on())?;
    if stat.st_dev == view.device && stat.st_ino == view.inode {
        Ok(())
    } else {
        Err(StepError::new(
            Step::ViewSource,
            on(),
            io::Error::other("it is another directory by now"),
        ))
    }
}

fn leave_old_root(base: &Path) -> Result<(), StepError> {
    let on = || base.display().to_string();
    tmpfs(base, "size=1m,mode=755", Step::PrivateRoot)?;
    rustix::process::chdir(base).at(Step::PrivateRoot, on())?;
    for dir in [OLD, NEW, LAYERS] {
        fs::create_dir(dir.trim_start_matches('/')).at(Step::PrivateRoot, dir)?;
    }
    rustix::process::pivot_root(".", OLD.trim_start_matches('/')).at(Step::PrivateRoot, on())?;
    rustix::process::chdir("/").at(Step::PrivateRoot, "/")?;
    tmpfs(
        Path::new(NEW),
        "size=4m,nr_inodes=4k,mode=755",
        Step::PrivateRoot,
    )
}

fn system_dirs() -> Result<(), StepError> {
    for name in SYSTEM_DIRS {
        let source = Path::new(OLD).join(name);
        let target = Path::new(NEW).join(name);
        let Ok(meta) = fs::symlink_metadata(&source) else {
            continue;
        };
        if meta.is_symlink() {
            let link = fs::read_link(&source).at(Step::SystemDirs, *name)?;
            symlink(link, &target).at(Step::SystemDirs, *name)?;
        } else if meta.is_dir() {
            fs::create_dir(&target).at(Step::SystemDirs, *name)?;
            bind_read_only(&source, &target, Step::SystemDirs)?;
        }
    }
    Ok(())
}

fn etc() -> Result<(), StepError> {
    let etc = make_dir("/etc", Step::SystemDirs)?;
    for name in ETC_ENTRIES {
        let source = Path::new(OLD).join("etc").join(name);
        let target = etc.join(name);
        let Ok(meta) = fs::symlink_metadata(&source) else {
            continue;
        };
        if meta.is_symlink() {
            let link = fs::read_link(&source).at(Step::SystemDirs, *name)?;
            symlink(link, &target).at(Step::SystemDirs, *name)?;
        } else if meta.is_dir() {
            fs::create_dir(&target).at(Step::SystemDirs, *name)?;
            bind_read_only(&source, &target, Step::SystemDirs)?;
        } else if meta.is_file() {
            fs::write(&target, b"").at(Step::SystemDirs, *name)?;
            bind_read_only(&source, &target, Step::SystemDirs)?;
        }
    }
    accounts("passwd", 2, rustix::process::getuid().as_raw())?;
    accounts("group", 2, rustix::process::getgid().as_raw())?;
    fs::write(etc.join("hosts"), "127.0.0.1\tlocalhost\n::1\tlocalhost\n")
        .at(Step::SystemDirs, "hosts")
}

/// Copies only the lines of root, nobody and the command's own id: the other
/// accounts of the machine are nobody's business.
fn accounts(name: &str, field: usize, own: u32) -> Result<(), StepError> {
    let source = Path::new(OLD).join("etc").join(name);
    let text = fs::read(&source).unwrap_or_default();
    let wanted = [0, 65_534, own];
    let mut kept = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let id = line
            .split(|byte| *byte == b':')
            .nth(field)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .and_then(|text| text.parse::<u32>().ok());
        if id.is_some_and(|id| wanted.contains(&id)) {
            kept.extend_from_slice(line);
            kept.push(b'\n');
        }
    }
    fs::write(Path::new(NEW).join("etc").join(name), kept).at(Step::SystemDirs, name)
}

fn devices() -> Result<(), StepError> {
    let dev = make_dir("/dev", Step::Devices)?;
    for (name, major, minor) in DEVICES {
        let target = dev.join(name);
        fs::write(&target, b"").at(Step::Devices, *name)?;
        let source = Path::new(OLD).join("dev").join(name);
        mount_bind_recursive(&source, &target).at(Step::Devices, *name)?;
        let meta = fs::symlink_metadata(&target).at(Step::Devices, *name)?;
        if meta.rdev() != rustix::fs::makedev(*major, *minor)
            || rustix::fs::FileType::from_raw_mode(meta.mode())
                != rustix::fs::FileType::CharacterDevice
        {
            return Err(StepError::new(
                Step::Devices,
                *name,
                io::Error::other("not the real device"),
            ));
        }
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, dev.join(name)).at(Step::Devices, name)?;
    }
    fs::create_dir(dev.join("shm")).at(Step::Devices, "shm")?;
    tmpfs(&dev.join("shm"), "size=64m,mode=1777", Step::Devices)?;
    fs::create_dir(dev.join("pts")).at(Step::Devices, "pts")?;
    // Terminals are for programs that insist on one; without them only those lose.
    let _mounted = mount(
        "devpts",
        dev.join("pts"),
        "devpts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        c"newinstance,ptmxmode=0666,mode=620",
    );
    Ok(())
}

fn proc() -> Result<(), StepError> {
    let proc = make_dir("/proc", Step::MountProc)?;
    mount(
        "proc",
        &proc,
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        c"",
    )
    .at(Step::MountProc, "/proc")?;
    let null = Path::new(NEW).join("dev/null");
    for name in PROC_MASKED {
        let target = proc.join(name);
        match fs::symlink_metadata(&target) {
            Ok(meta) if meta.is_dir() => {
                tmpfs(&target, "nr_inodes=1,mode=555,ro", Step::MountProc)?;
            }
            Ok(_) => mount_bind_recursive(&null, &target).at(Step::MountProc, *name)?,
            Err(_) => {}
        }
    }
    for name in PROC_READ_ONLY {
        let target = proc.join(name);
        if target.is_dir() {
            bind_read_only(&target, &target, Step::MountProc)?;
        }
    }
    Ok(())
}

fn private_dirs(spec: &Spec) -> Result<(), StepError> {
    let size = format!(
        "size={},nr_inodes={},mode=",
        spec.limits.tmp_bytes, spec.limits.view_inodes
    );
    let tmp = make_dir("/tmp", Step::PrivateDirs)?;
    tmpfs(&tmp, &format!("{size}1777"), Step::PrivateDirs)?;
    make_dir("/var", Step::PrivateDirs)?;
    symlink("/tmp", Path::new(NEW).join("var/tmp")).at(Step::PrivateDirs, "/var/tmp")?;
    let mut places = spec.private_dirs.clone();
    places.sort();
    places.dedup();
    for place in places {
        let target = place_for(&place, Step::PrivateDirs)?;
        tmpfs(&target, &format!("{size}755"), Step::PrivateDirs)?;
    }
    Ok(())
}

fn exchange(spec: &Spec) -> Result<OwnedFd, StepError> {
    let dir = make_dir(EXCHANGE_DIR, Step::PrivateDirs)?;
    tmpfs(&dir, "size=64m,nr_inodes=1k,mode=700", Step::PrivateDirs)?;
    for (name, bytes) in &spec.inputs {
        let on = String::from_utf8_lossy(name).into_owned();
        if name.contains(&b'/') || name.starts_with(b".") || name.is_empty() {
            return Err(StepError::new(
                Step::PrivateDirs,
                on,
                io::Error::other("an input needs a plain name"),
            ));
        }
        fs::write(dir.join(OsStr::from_bytes(name)), bytes).at(Step::PrivateDirs, on)?;
    }
    open_dir(&dir, Step::PrivateDirs)
}

fn views(spec: &Spec, staged: Option<&Path>) -> Result<Vec<OwnedFd>, StepError> {
    let mut uppers = Vec::new();
    let mut placed: Vec<&[u8]> = Vec::new();
    for (number, view) in spec.views.iter().enumerate() {
        if let Some(outer) = placed.iter().find(|outer| overlaps(outer, &view.at)) {
            return Err(StepError::new(
                Step::ViewPlace,
                String::from_utf8_lossy(&view.at),
                io::Error::other(format!(
                    "it overlaps the view at `{}`",
                    String::from_utf8_lossy(outer)
                )),
            ));
        }
        placed.push(&view.at);
        let source = match staged {
            Some(base) => in_old(base).join(number.to_string()),
            None => in_old(Path::new(OsStr::from_bytes(&view.source))),
        };
        let target = place_for(&view.at, Step::ViewPlace)?;
        let lower = open_view(&source, view)?;
        if view.copy_on_write {
            uppers.push(overlay(number, &lower, &target, &spec.limits)?);
        } else {
            bind_read_only(&source, &target, Step::BindReadOnly)?;
            same_directory(open_dir(&target, Step::BindReadOnly)?.as_fd(), view)?;
        }
    }
    Ok(uppers)
}

fn overlaps(first: &[u8], second: &[u8]) -> bool {
    let (first, second) = (OsStr::from_bytes(first), OsStr::from_bytes(second));
    Path::new(first).starts_with(second) || Path::new(second).starts_with(first)
}

fn in_old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn open_view(source: &Path, view: &ViewSpec) -> Result<OwnedFd, StepError> {
    let on = String::from_utf8_lossy(&view.source).into_owned();
    // The path came from the descriptor itself, so it holds no link; one that
    // appeared since then means that somebody moved things.
    let opened = rustix::fs::openat2(
        CWD,
        source,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
    .at(Step::ViewSource, on)?;
    same_directory(opened.as_fd(), view)?;
    Ok(opened)
}

fn overlay(
    number: usize,
    lower: &OwnedFd,
    target: &Path,
    limits: &LimitSpec,
) -> Result<OwnedFd, StepError> {
    let layer = Path::new(LAYERS).join(number.to_string());
    let on = || target.display().to_string();
    fs::create_dir(&layer).at(Step::MountOverlay, on())?;
    let options = format!(
        "size={},nr_inodes={},mode=700",
        limits.view_bytes, limits.view_inodes
    );
    tmpfs(&layer, &options, Step::MountOverlay)?;
    let (upper, work) = (layer.join("upper"), layer.join("work"));
    for dir in [&upper, &work] {
        fs::create_dir(dir).at(Step::MountOverlay, on())?;
    }
    // The root of the view has the mode of the upper layer's.
    let mode = rustix::fs::fstat(lower)
        .at(Step::MountOverlay, on())?
        .st_mode
        & 0o7777;
    fs::set_permissions(&upper, fs::Permissions::from_mode(mode)).at(Step::MountOverlay, on())?;
    // "." keeps the path, which may hold any byte, out of the option string.
    rustix::process::fchdir(lower).at(Step::MountOverlay, on())?;
    let data = format!(
        "lowerdir=.,upperdir={},workdir={},userxattr",
        upper.display(),
        work.display()
    );
    let data = CString::new(data).map_err(|_| {
        StepError::new(
            Step::MountOverlay,
            on(),
            io::Error::other("a NUL in a path"),
        )
    })?;
    let mounted = mount(
        "overlay",
        target,
        "overlay",
        MountFlags::NOSUID | MountFlags::NODEV,
        &*data,
    );
    rustix::process::chdir("/").at(Step::MountOverlay, "/")?;
    mounted.at(Step::MountOverlay, on())?;
    open_dir(&upper, Step::MountOverlay)
}

/// Makes the place of a view or private directory, refusing reserved ones.
fn place_for(at: &[u8], step: Step) -> Result<PathBuf, StepError> {
    let path = Path::new(OsStr::from_bytes(at));
    let refuse = |why: &str| {
        Err(StepError::new(
            step,
            path.display().to_string(),
            io::Error::other(why.to_owned()),
        ))
    };
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => names.push(name),
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return refuse("the path is not plain");
            }
        }
    }
    if !path.is_absolute() {
        return refuse("the path is not absolute");
    }
    let Some(first) = names.first() else {
        return refuse("the whole root cannot be a view");
    };
    if RESERVED.iter().any(|name| OsStr::new(name) == *first)
        || names == ["tmp"]
        || names == ["var"]
    {
        return refuse("the place belongs to the system");
    }
    let target = Path::new(NEW).join(names.iter().collect::<PathBuf>());
    fs::create_dir_all(&target).at(step, path.display().to_string())?;
    Ok(target)
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

fn tmpfs(target: &Path, options: &str, step: Step) -> Result<(), StepError> {
    let on = || target.display().to_string();
    let options = CString::new(options)
        .map_err(|_| StepError::new(step, on(), io::Error::other("a NUL in mount options")))?;
    mount(
        "tmpfs",
        target,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        &*options,
    )
    .at(step, on())
}

fn bind_read_only(source: &Path, target: &Path, step: Step) -> Result<(), StepError> {
    let on = || target.display().to_string();
    mount_bind_recursive(source, target).at(step, on())?;
    let bound =
        rustix::fs::open(target, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at(step, on())?;
    sys::mount_setattr(bound.as_fd(), c"", true, READ_ONLY).at(step, on())
}

fn open_dir(path: &Path, step: Step) -> Result<OwnedFd, StepError> {
    rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .at(step, path.display().to_string())
}
