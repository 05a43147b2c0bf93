//! What the private roots of the same surroundings have in common: built once.
//!
//! The template is a finished root but for what a command has for itself: the
//! system directories, a small /etc, the devices, and empty places for all that
//! is mounted later. It is read-only before the first command exists, so what a
//! sandbox repeats of it is a single bind, and nothing can be left in it. The
//! directories of the views lie beside it, and go away with the old root when a
//! sandbox enters its own. Nothing else of the machine stays in reach.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind_recursive, mount_change, unmount,
};

use super::places::{
    EMPTY, EXCHANGE_DIR, LAYERS, NESTED, NEW, OLD, OWN, SOURCES, STORE, WITHHELD_DIR,
    WITHHELD_FILE, place_for,
};
use super::sources::{self, Staged};
use super::tools::{bind_read_only, make_dir, seal, tmpfs};
use super::{etc, machine, store, watches};
use crate::spawn::place::{self, SYSTEM};
use crate::spawn::spec::{Places, ViewSpec};
use crate::step::{AtStep, Step, StepError};

/// Room for the root.
const ROOT_OPTIONS: &str = "size=1m,nr_inodes=4k,mode=755";

/// Devices with their numbers, which are checked after binding.
const DEVICES: &[(&str, u32, u32)] = &[
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
];

/// Whoever opens this gets the terminal that controls it, and nothing if none does.
const TERMINAL: (&str, u32, u32) = ("tty", 5, 0);

/// What there is to know about it.
#[derive(Debug)]
pub(crate) struct Template {
    /// Whether a tmpfs keeps the attributes an overlay marks its layer with.
    pub keeps_attributes: bool,
    /// Whether its sandboxes have a part of the watches on files, or why not.
    pub watches: Result<(), String>,
    /// Why the owners of some views are not translated, by their numbers.
    pub strange: BTreeMap<usize, String>,
    /// The views whose directories lie beside it, in order.
    pub views: Vec<ViewSpec>,
    /// Whether layers can lie on disk, or why not, if that was asked for and is needed.
    pub store: Option<Result<(), String>>,
}

/// Moves the calling process to a small root of its own and builds the template
/// there, with the views' directories beside it: `staged` if root made mounts of
/// them, with translated owners, and else as they lie in the machine's root,
/// which is let go of in the end.
/// `user` and `group` are the command's own ids.
pub(crate) fn build(
    user: u32,
    group: u32,
    places: &Places,
    staged: Option<Staged>,
) -> Result<Template, StepError> {
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .at(Step::PrivateRoot, "/")?;
    leave_old_root(&base_dir()?)?;
    let Staged {
        trees,
        strange,
        store: store_tree,
    } = staged.unwrap_or(Staged {
        trees: Vec::new(),
        strange: BTreeMap::new(),
        store: None,
    });
    let mut template = Template {
        keeps_attributes: keeps_attributes(),
        watches: if places.faults.all_watches {
            Err(String::from("left out"))
        } else {
            watches::share(&Path::new(OLD).join("proc/sys"))
        },
        strange,
        views: places.views.clone(),
        store: None,
    };
    tmpfs(Path::new(NEW), ROOT_OPTIONS, Step::PrivateRoot)?;
    let is_private = !places.faults.machine_root;
    if is_private {
        system_dirs()?;
        etc::show(user, group, places)?;
        devices()?;
    } else {
        machine::show()?;
    }
    for dir in ["/proc", "/tmp", "/var", EXCHANGE_DIR] {
        make_dir(dir, Step::PrivateDirs)?;
    }
    if places.use_var_tmp() {
        make_dir("/var/tmp", Step::PrivateDirs)?;
    } else {
        symlink("/tmp", Path::new(NEW).join("var/tmp")).at(Step::PrivateDirs, "/var/tmp")?;
    }
    places_for_all(places)?;
    // Nothing is made in what is the machine's.
    for (path, text) in places.shown().filter(|_| is_private) {
        show(path, text);
    }
    sources::bring(&places.views, trees)?;
    if let Some(wanted) = &places.store
        && (wanted.always || !template.keeps_attributes)
    {
        template.store = Some(store::bring(wanted, store_tree));
    }
    if places.faults.home {
        show_homes()?;
    }
    if is_private && !places.faults.open_root {
        seal(Path::new(NEW), Step::PrivateRoot)?;
    }
    if places.faults.shared_tmp {
        let tmp = Path::new(NEW).join("tmp");
        tmpfs(&tmp, "size=16m,mode=1777", Step::PrivateDirs)?;
    }
    let_go_of_old_root()?;
    Ok(template)
}

/// Makes the places of what is mounted in each root.
fn places_for_all(places: &Places) -> Result<(), StepError> {
    for place in &places.private_dirs {
        place_for(place, Step::PrivateDirs)?;
    }
    for (number, view) in places.views.iter().enumerate() {
        hides_nothing(view)?;
        let number = number.to_string();
        let mut own = vec![Path::new(LAYERS).join(&number)];
        if sources::around(&places.views, view)?.is_some() {
            // Its place is in the view it lies in.
            own.push(Path::new(NESTED).join(&number));
        } else {
            place_for(&view.at, Step::ViewPlace)?;
        }
        for dir in own {
            fs::create_dir(&dir).at(Step::PrivateRoot, dir.display().to_string())?;
        }
    }
    fs::create_dir(OWN).at(Step::PrivateDirs, OWN)
}

/// Where commands are shown something of the machine in any case, a view shows what is
/// there: a directory that says of itself that it lies there, and no other.
fn hides_nothing(view: &ViewSpec) -> Result<(), StepError> {
    let at = Path::new(OsStr::from_bytes(&view.at));
    let names = place::names(at).unwrap_or_default();
    if place::is_of_the_system(&names) && view.source != view.at {
        return Err(StepError::new(
            Step::ViewPlace,
            at.display().to_string(),
            io::Error::other("it would hide what the machine has there"),
        ));
    }
    Ok(())
}

/// Makes a file that is there for service: without it a command does with less.
pub(super) fn show(path: &Path, text: &[u8]) {
    let dir = path.parent().unwrap_or(path).as_os_str().as_bytes();
    if let (Ok(dir), Some(name)) = (place_for(dir, Step::PrivateDirs), path.file_name()) {
        // A new one: nothing that is there is written over or followed.
        let mut new = fs::OpenOptions::new();
        let made = new
            .write(true)
            .create_new(true)
            .mode(0o444)
            .open(dir.join(name));
        let _less = made.and_then(|mut file| file.write_all(text));
    }
}

/// Isolation left out on purpose.
fn show_homes() -> Result<(), StepError> {
    for home in ["home", "root"] {
        let source = Path::new(OLD).join(home);
        if source.is_dir() {
            let target = make_dir(&format!("/{home}"), Step::BindReadOnly)?;
            bind_read_only(&source, &target, Step::BindReadOnly)?;
        }
    }
    Ok(())
}

/// Keeps of the machine's root only its /proc, without which the kernel lets
/// nobody mount another one.
fn let_go_of_old_root() -> Result<(), StepError> {
    mount_bind_recursive(Path::new(OLD).join("proc"), "/proc").at(Step::PrivateRoot, "/proc")?;
    unmount(OLD, UnmountFlags::DETACH).at(Step::PrivateRoot, "old root")?;
    // Shared with every sandbox that is made from here.
    seal(Path::new("/"), Step::PrivateRoot)
}

/// Tried out on the small root itself, which is a tmpfs.
fn keeps_attributes() -> bool {
    let none = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr("/", "user.overlay.hermitcrab", b"y", none).is_ok()
        && rustix::fs::removexattr("/", "user.overlay.hermitcrab").is_ok()
}

/// A directory that exists, to mount the first tmpfs on; nothing is hidden by
/// it in the end, because it moves away with the old root.
fn base_dir() -> Result<PathBuf, StepError> {
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

fn leave_old_root(base: &Path) -> Result<(), StepError> {
    let on = || base.display().to_string();
    tmpfs(base, "size=1m,mode=755", Step::PrivateRoot)?;
    rustix::process::chdir(base).at(Step::PrivateRoot, on())?;
    for dir in [OLD, NEW, LAYERS, SOURCES, NESTED, STORE, EMPTY, "/proc"] {
        fs::create_dir(dir.trim_start_matches('/')).at(Step::PrivateRoot, dir)?;
    }
    withheld()?;
    rustix::process::pivot_root(".", OLD.trim_start_matches('/')).at(Step::PrivateRoot, on())?;
    rustix::process::chdir("/").at(Step::PrivateRoot, "/")
}

fn withheld() -> Result<(), StepError> {
    let [file, dir] = [WITHHELD_FILE, WITHHELD_DIR].map(|path| path.trim_start_matches('/'));
    fs::create_dir_all(dir).at(Step::PrivateRoot, WITHHELD_DIR)?;
    fs::write(file, b"").at(Step::PrivateRoot, WITHHELD_FILE)?;
    for path in [file, dir] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).at(Step::PrivateRoot, path)?;
    }
    Ok(())
}

fn system_dirs() -> Result<(), StepError> {
    for name in SYSTEM {
        let source = Path::new(OLD).join(name);
        let Ok(meta) = fs::symlink_metadata(&source) else {
            // What is not there, or cannot be seen, is not shown.
            continue;
        };
        if meta.is_symlink() {
            let link = fs::read_link(&source).at(Step::SystemDirs, name)?;
            symlink(link, Path::new(NEW).join(name)).at(Step::SystemDirs, name)?;
        } else if meta.is_dir() {
            let target = Path::new(NEW).join(name);
            fs::create_dir(&target).at(Step::SystemDirs, name)?;
            bind_read_only(&source, &target, Step::SystemDirs)?;
        }
    }
    Ok(())
}

fn devices() -> Result<(), StepError> {
    let dev = Path::new(NEW).join("dev");
    fs::create_dir(&dev).at(Step::Devices, "dev")?;
    tmpfs(&dev, "size=1m,nr_inodes=64,mode=755", Step::Devices)?;
    for (name, major, minor) in DEVICES {
        device(&dev, name, rustix::fs::makedev(*major, *minor))?;
    }
    // Without it only programs lose that insist on it.
    let (name, major, minor) = TERMINAL;
    if fs::symlink_metadata(Path::new(OLD).join("dev").join(name)).is_ok() {
        device(&dev, name, rustix::fs::makedev(major, minor))?;
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
    for dir in ["shm", "pts"] {
        fs::create_dir(dev.join(dir)).at(Step::Devices, dir)?;
    }
    seal(&dev, Step::Devices)
}

/// Shows one of the machine's devices, if it is what its name says.
fn device(dev: &Path, name: &str, number: u64) -> Result<(), StepError> {
    let target = dev.join(name);
    fs::write(&target, b"").at(Step::Devices, name)?;
    let source = Path::new(OLD).join("dev").join(name);
    mount_bind_recursive(&source, &target).at(Step::Devices, name)?;
    let meta = fs::symlink_metadata(&target).at(Step::Devices, name)?;
    let is_one =
        rustix::fs::FileType::from_raw_mode(meta.mode()) == rustix::fs::FileType::CharacterDevice;
    if is_one && meta.rdev() == number {
        return Ok(());
    }
    let why = io::Error::other("not the real device");
    Err(StepError::new(Step::Devices, name, why))
}
