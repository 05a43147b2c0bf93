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
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind_recursive, mount_change, unmount,
};

use super::places::{
    EMPTY, EXCHANGE_DIR, LAYERS, NESTED, NEW, OLD, OWN, SOURCES, STORE, WITHHELD_DIR,
    WITHHELD_FILE, place_for, places_below_etc,
};
use super::sources::{self, Staged};
use super::tools::{READ_ONLY, bind_read_only, make_dir, open_dir, tmpfs};
use super::{store, watches};
use crate::spawn::place::{self, SYSTEM};
use crate::spawn::spec::{Places, ViewSpec};
use crate::step::{AtStep, Step, StepError};
use crate::sys;

/// Room for the root.
const ROOT_OPTIONS: &str = "size=1m,nr_inodes=4k,mode=755";

/// What of /etc is shown, each read-only, if it is there: what the C library and the
/// machine's programs are set up with, and are not started without (OpenJDK, Maven, TeX).
/// Nothing of it tells of this machine's people, services or keys. With `*` at the end all
/// that begin so.
const ETC_ENTRIES: &[&str] = &[
    "ImageMagick-*",
    "OpenCL",
    "R",
    "SuSE-release",
    "alpine-release",
    "alternatives",
    "ant",
    "arch-release",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "centos-release",
    "chromium",
    "chromium.d",
    "crypto-policies",
    "debian_version",
    "dictionaries-common",
    "dotnet",
    "dpkg",
    "emacs",
    "erlang",
    "ethertypes",
    "fedora-release",
    "firefox*",
    "fonts",
    "ghostscript",
    "gitattributes",
    "gitconfig",
    "glvnd",
    "gradle",
    "groff",
    "host.conf",
    "inputrc",
    "java",
    "java-*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libreoffice",
    "locale.alias",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "mailcap",
    "man_db.conf",
    "manpath.config",
    "maven",
    "mime.types",
    "mono",
    "networks",
    "nsswitch.conf",
    "octave.conf",
    "openmpi",
    "os-release",
    "papersize",
    "paperspecs",
    "perl",
    "php",
    "pki",
    "profile",
    "protocols",
    "python3*",
    "redhat-release",
    "rpc",
    "services",
    "sgml",
    "shells",
    "ssl",
    "system-release",
    "terminfo",
    "texmf",
    "timezone",
    "vim",
    "vulkan",
    "xml",
];

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

/// Longer files of /etc are bound instead of copied.
const COPY_BYTES_MAX: u64 = 1 << 20;
/// And so are directories with more in them.
const COPY_NAMES_MAX: u32 = 64;

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
    system_dirs()?;
    etc(user, group, places)?;
    devices()?;
    for dir in ["/proc", "/tmp", "/var", EXCHANGE_DIR] {
        make_dir(dir, Step::PrivateDirs)?;
    }
    if places.use_var_tmp() {
        make_dir("/var/tmp", Step::PrivateDirs)?;
    } else {
        symlink("/tmp", Path::new(NEW).join("var/tmp")).at(Step::PrivateDirs, "/var/tmp")?;
    }
    places_for_all(places)?;
    for (path, text) in places.shown() {
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
    if !places.faults.open_root {
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
fn show(path: &Path, text: &[u8]) {
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

fn etc(user: u32, group: u32, places: &Places) -> Result<(), StepError> {
    let etc = Path::new(NEW).join("etc");
    fs::create_dir(&etc).at(Step::SystemDirs, "etc")?;
    tmpfs(&etc, "size=16m,nr_inodes=4k,mode=755", Step::SystemDirs)?;
    for name in &entries_of_etc() {
        let source = Path::new(OLD).join("etc").join(name);
        let target = etc.join(name);
        let Ok(meta) = fs::symlink_metadata(&source) else {
            continue;
        };
        if meta.is_symlink() {
            let link = fs::read_link(&source).at(Step::SystemDirs, name)?;
            symlink(link, &target).at(Step::SystemDirs, name)?;
        } else if meta.is_dir() {
            fs::create_dir(&target).at(Step::SystemDirs, name)?;
            if !copied_below(&source, &target, &mut { COPY_NAMES_MAX }) {
                bind_read_only(&source, &target, Step::SystemDirs)?;
            }
        } else if meta.is_file() && !copied(&source, &meta, &target) {
            fs::write(&target, b"").at(Step::SystemDirs, name)?;
            bind_read_only(&source, &target, Step::SystemDirs)?;
        }
    }
    accounts(&etc, "passwd", 2, user)?;
    accounts(&etc, "group", 2, group)?;
    fs::write(etc.join("hosts"), "127.0.0.1\tlocalhost\n::1\tlocalhost\n")
        .at(Step::SystemDirs, "hosts")?;
    places_below_etc(places);
    seal(&etc, Step::SystemDirs)
}

/// Those there are on this machine, in order.
fn entries_of_etc() -> Vec<String> {
    let Ok(there) = fs::read_dir(Path::new(OLD).join("etc")) else {
        return Vec::new();
    };
    let names = there.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_entry_of_etc(name)).collect();
    names.sort_unstable();
    names
}

fn is_entry_of_etc(name: &str) -> bool {
    ETC_ENTRIES
        .iter()
        .any(|entry| match entry.strip_suffix('*') {
            Some(begins) => name.starts_with(begins),
            None => name == *entry,
        })
}

/// Copies a small file: each mount less makes every sandbox cheaper.
fn copied(source: &Path, meta: &fs::Metadata, target: &Path) -> bool {
    meta.len() <= COPY_BYTES_MAX
        && fs::read(source).is_ok_and(|bytes| fs::write(target, bytes).is_ok())
        && fs::set_permissions(target, fs::Permissions::from_mode(meta.mode() & 0o555)).is_ok()
}

/// Copies what is in a small directory; what was copied of one that turns out
/// not to be is hidden by the mount that is made instead.
fn copied_below(source: &Path, target: &Path, room: &mut u32) -> bool {
    let Ok(entries) = fs::read_dir(source) else {
        return false;
    };
    for entry in entries {
        let Some((entry, rest)) = entry.ok().zip(room.checked_sub(1)) else {
            return false;
        };
        *room = rest;
        let (source, target) = (entry.path(), target.join(entry.file_name()));
        let Ok(meta) = fs::symlink_metadata(&source) else {
            return false;
        };
        let done = if meta.is_symlink() {
            fs::read_link(&source).is_ok_and(|link| symlink(link, &target).is_ok())
        } else if meta.is_dir() {
            fs::create_dir(&target).is_ok() && copied_below(&source, &target, room)
        } else {
            meta.is_file() && copied(&source, &meta, &target)
        };
        if !done {
            return false;
        }
    }
    true
}

/// Copies only the lines of root, nobody and the command's own id: the other
/// accounts of the machine are nobody's business.
fn accounts(etc: &Path, name: &str, field: usize, own: u32) -> Result<(), StepError> {
    let source = Path::new(OLD).join("etc").join(name);
    // Without names a command has only its number: less service, nothing more to see.
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
    fs::write(etc.join(name), kept).at(Step::SystemDirs, name)
}

/// Makes what is below a finished directory of the template read-only.
fn seal(dir: &Path, step: Step) -> Result<(), StepError> {
    let open = open_dir(dir, step)?;
    sys::mount_setattr(open.as_fd(), c"", false, READ_ONLY).at(step, dir.display().to_string())
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
