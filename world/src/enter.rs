//! Makes the calling process the zygote: new namespaces, unprivileged, inside
//! the template tree.
//!
//! Works for host root and for an ordinary user. Host root is given up before
//! anything else happens, because some kernel files (`/proc/sysrq-trigger`,
//! `/proc/sys`) look at the *host* uid and not at the namespace's: a world
//! must never be mapped to it.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Pid, Uid};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use crate::error::{AtStage, WorldError};
use crate::fork::{Forked, Forker};
use crate::{mounts, template};

/// The user id inside worlds.
pub const WORLD_UID: u32 = 1000;
/// First of the host uids used when started by root; far from any real range.
const HOST_UID_FIRST: u32 = 1_664_000_000;
/// Host uids used when started by root, one per worker.
const HOST_UID_COUNT: u32 = 4_194_304;

/// Programs that Hermes works with where it finds them and without where it does
/// not: with them, a verdict would say which of them a machine has.
const HIDDEN: [&str; 1] = ["rg"];
/// Where a world's programs are.
const PROGRAM_DIRS: [&str; 4] = ["usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin"];

/// What a worker needs beside the template: shown read-only under `/.hx`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Host files and directories, by their path below `/.hx`.
    #[serde(default)]
    pub binds: Vec<(PathBuf, String)>,
    /// Small files to make, as path below `/.hx` and text.
    #[serde(default)]
    pub texts: Vec<(String, String)>,
    /// Symbolic links to make, as path below `/.hx` and target.
    #[serde(default)]
    pub links: Vec<(String, String)>,
    /// Small texts to show in the place of files that are bound, as path below `/.hx` and text.
    #[serde(default)]
    pub instead: Vec<(String, String)>,
}

/// Enters the template tree. Returns in a *child* process, which is pid 1 of
/// its own pid namespace, holds all capabilities of its own user namespace and
/// none of the host's; the calling process only waits for that child and exits
/// with its status.
///
/// # Errors
/// A namespace, mount or file operation failed; the stage names it.
pub fn enter(harness: &Harness, forker: &dyn Forker) -> Result<(), WorldError> {
    let root = nix::unistd::geteuid().is_root();
    let staging = staging_directory()?;
    if root {
        unshare(CloneFlags::CLONE_NEWNS).at("unshare mount namespace")?;
        mounts::private()?;
        stage(&staging, harness)?;
        give_up_root()?;
    }
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if uid.is_root() {
        return Err(WorldError::new("give up root", "still host uid 0"));
    }
    unshare(
        CloneFlags::CLONE_NEWUSER
            | CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWNET
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWUTS,
    )
    .map_err(|errno| {
        WorldError::new(
            "unshare user namespace",
            format!("{errno}; worlds need unprivileged user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"),
        )
    })?;
    fs::write("/proc/self/setgroups", "deny").at("write setgroups")?;
    fs::write("/proc/self/uid_map", format!("{WORLD_UID} {uid} 1")).at("write uid map")?;
    fs::write("/proc/self/gid_map", format!("{WORLD_UID} {gid} 1")).at("write gid map")?;
    mounts::private()?;
    if !root {
        stage(&staging, harness)?;
    }
    match forker.fork().at("fork zygote")? {
        Forked::Parent { child } => wait_and_exit(child, forker),
        Forked::Child => {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).at("set parent death signal")?;
            build(&staging, harness)
        }
    }
}

/// Keeps all capabilities over the next `execve`.
///
/// # Errors
/// The kernel refuses to raise the ambient set.
pub fn keep_capabilities_over_exec() -> Result<(), WorldError> {
    let stage = "raise ambient capabilities";
    let held = rustix::thread::capabilities(None).at(stage)?;
    let sets = CapabilitySets {
        inheritable: held.permitted,
        ..held
    };
    rustix::thread::set_capabilities(None, sets).at(stage)?;
    for capability in held.permitted.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true).at(stage)?;
    }
    Ok(())
}

/// Takes every capability from what this process and its children start with `execve`; what
/// they hold themselves stays.
pub(crate) fn bound_capabilities() -> Result<(), WorldError> {
    let stage = "bound capabilities";
    for capability in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(errno) => return Err(WorldError::new(stage, errno)),
        }
    }
    Ok(())
}

/// Drops every capability for good. Over `execve` they were taken from the zygote
/// ([`bound_capabilities`]), whose bounds every process of a world has.
pub(crate) fn drop_capabilities() -> Result<(), WorldError> {
    let stage = "drop capabilities";
    rustix::thread::clear_ambient_capability_set().at(stage)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::set_capabilities(None, sets).at(stage)
}

fn wait_and_exit(child: i32, forker: &dyn Forker) -> ! {
    use nix::sys::wait::{WaitStatus, waitpid};
    loop {
        match waitpid(Pid::from_raw(child), None) {
            Ok(WaitStatus::Exited(_, status)) => forker.exit(status),
            Ok(WaitStatus::Signaled(_, signal, _)) => forker.exit(128 + signal as i32),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => forker.exit(70),
        }
    }
}

/// A directory every machine has, covered in this process' own mount namespace.
fn staging_directory() -> Result<PathBuf, WorldError> {
    ["/mnt", "/media", "/srv", "/tmp"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.is_dir())
        .ok_or_else(|| {
            WorldError::new(
                "find staging directory",
                "none of /mnt, /media, /srv, /tmp exists",
            )
        })
}

/// Collects the harness' sources in one readable place, while they can still be reached.
fn stage(staging: &Path, harness: &Harness) -> Result<(), WorldError> {
    let mut opened = Vec::new();
    for (source, _) in &harness.binds {
        let descriptor = rustix::fs::open(source, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .at(&format!("open {}", source.display()))?;
        opened.push((descriptor, source.is_dir()));
    }
    mounts::tmpfs(staging, "mode=0755,size=1m")?;
    fs::create_dir(staging.join("root")).at("make staging")?;
    for (number, (descriptor, is_dir)) in opened.iter().enumerate() {
        use std::os::fd::AsRawFd;
        let target = staging.join(number.to_string());
        if *is_dir {
            fs::create_dir(&target).at("make staging")?;
        } else {
            fs::write(&target, "").at("make staging")?;
        }
        let source = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
        mounts::bind(&source, &target)?;
    }
    Ok(())
}

fn give_up_root() -> Result<(), WorldError> {
    let id = HOST_UID_FIRST + std::process::id() % HOST_UID_COUNT;
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    nix::unistd::setgroups(&[]).at("give up groups")?;
    nix::unistd::setresgid(gid, gid, gid).at("give up root group")?;
    nix::unistd::setresuid(uid, uid, uid).at("give up root")?;
    // Changing ids makes /proc/self belong to root; the maps are written through it.
    nix::sys::prctl::set_dumpable(true).at("become dumpable")
}

/// Builds the template root and makes it this process' root.
fn build(staging: &Path, harness: &Harness) -> Result<(), WorldError> {
    let root = staging.join("root");
    mounts::tmpfs(&root, "mode=0755,size=256m")?;
    for name in ["usr", "proc", ".hx", ".w"] {
        fs::create_dir(root.join(name)).at("make template root")?;
    }
    mounts::bind(Path::new("/usr"), &root.join("usr"))?;
    mounts::read_only(&root.join("usr"))?;
    for name in ["bin", "sbin", "lib", "lib32", "lib64"] {
        let host = Path::new("/").join(name);
        if let Ok(target) = fs::read_link(&host) {
            symlink(target, root.join(name)).at("link into /usr")?;
        } else if host.is_dir() {
            fs::create_dir(root.join(name)).at("make template root")?;
            mounts::bind(&host, &root.join(name))?;
            mounts::read_only(&root.join(name))?;
        }
    }
    hide_programs(&root)?;
    harness_tree(staging, &root.join(".hx"), harness)?;
    mounts::proc(&root.join("proc"))?;
    template::build(&root)?;
    for device in template::DEVICES {
        let target = root.join("dev").join(device);
        fs::write(&target, "").at("make device stand-in")?;
        mounts::bind(&Path::new("/dev").join(device), &target)?;
    }
    mounts::pivot(&root)?;
    nix::unistd::sethostname("world").at("set host name")?;
    template::finish(Path::new("/"))
}

/// Whether worlds on this machine have a program of that name.
#[must_use]
pub fn has_program(name: &str) -> bool {
    let is_in = |directory: &str| Path::new("/").join(directory).join(name).exists();
    !HIDDEN.contains(&name) && PROGRAM_DIRS.into_iter().any(is_in)
}

/// Lays a tree over each directory that holds a hidden program, in which it is
/// gone. A file that cannot be executed in its place would not do: a shell says
/// of it that it is there.
fn hide_programs(root: &Path) -> Result<(), WorldError> {
    for (number, directory) in PROGRAM_DIRS.into_iter().enumerate() {
        let host = Path::new("/").join(directory);
        let held: Vec<&str> = HIDDEN
            .into_iter()
            .filter(|name| host.join(name).exists())
            .collect();
        if held.is_empty() || host.is_symlink() {
            continue;
        }
        // The harness' tree is mounted over it later.
        let layer = root.join(".hx").join(number.to_string());
        fs::create_dir(&layer).at("make layer without programs")?;
        for name in held {
            use nix::sys::stat::{Mode, SFlag, mknod};
            mknod(&layer.join(name), SFlag::S_IFCHR, Mode::empty(), 0)
                .at(&format!("hide the program `{name}`"))?;
        }
        mounts::overlay(&root.join(directory), &[&layer, &host], None)?;
    }
    Ok(())
}

fn harness_tree(staging: &Path, target: &Path, harness: &Harness) -> Result<(), WorldError> {
    let stage = "make harness tree";
    mounts::tmpfs(target, "mode=0755,size=4m")?;
    for (number, (source, name)) in harness.binds.iter().enumerate() {
        let place = target.join(name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).at(stage)?;
        }
        let staged = staging.join(number.to_string());
        if staged.is_dir() {
            fs::create_dir_all(&place).at(stage)?;
        } else {
            fs::write(&place, "").at(stage)?;
        }
        mounts::bind(&staged, &place).map_err(|error| {
            WorldError::new(
                error.stage,
                format!("{} ({})", error.message, source.display()),
            )
        })?;
        mounts::read_only(&place)?;
    }
    for (name, text) in &harness.texts {
        let place = target.join(name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).at(stage)?;
        }
        fs::write(&place, text).at(stage)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o444)).at(stage)?;
    }
    for (name, link) in &harness.links {
        let place = target.join(name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).at(stage)?;
        }
        symlink(link, &place).at(stage)?;
    }
    for (number, (name, text)) in harness.instead.iter().enumerate() {
        // What is bound cannot be written to: the text is mounted over it.
        let shown = target.join(format!("instead-{number}"));
        fs::write(&shown, text).at(stage)?;
        let place = target.join(name);
        mounts::bind(&shown, &place)?;
        mounts::read_only(&place)?;
    }
    mounts::read_only(target)
}
