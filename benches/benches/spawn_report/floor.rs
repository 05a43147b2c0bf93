//! The kernel's share: what the same isolation costs without us.
//!
//! A small process, this program told so by its first argument, stands in a root
//! like a sandbox's and makes one isolated process after another by plain system
//! calls: the same namespaces, mounts, groups, limits, rules and filter, and a
//! program in them that is waited for. No message is sent, nothing is prepared
//! in advance, nobody may choose a command, nothing is read back. What is faster
//! than this isolates less; what is slower by as much is ours.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Bare, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hermitcrab_sandbox::landlock::{Fence, Tcp};
use hermitcrab_sandbox::sys::{Cloned, exit_immediately, fork_into};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, open};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::mount::{
    mount, mount_bind, mount_bind_recursive, mount_change, mount_remount, unmount,
};
use rustix::process::{Resource, Rlimit, chdir, pivot_root, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::ambient;

/// Puts the filter on.
type Filter = dyn Fn() -> std::io::Result<()>;

const ALONE: &str = "--isolate-without-us";
/// What is masked in /proc, and what is shown read-only, as far as it is there.
const MASKED_DIRS: &[&str] = &["acpi", "asound", "scsi"];
const MASKED: &[&str] = &[
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
const READ_ONLY: &[&str] = &["bus", "fs", "irq", "sys"];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];
const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);
const SEALED: MountFlags = PLAIN.union(MountFlags::RDONLY).union(MountFlags::BIND);

/// Serves as the small process and is done, if that is what this one is for.
pub fn maybe_isolate() -> bool {
    if !ambient::first_is(ALONE) {
        return false;
    }
    let mut given = ambient::further().into_iter();
    let view = PathBuf::from(given.next().unwrap());
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let groups: Vec<_> = given
        .map(|dir| open(Path::new(&dir).join("tasks"), flags, Mode::empty()).unwrap())
        .collect();
    let filter = hermitcrab_sandbox::spawn::filter_for_later();
    stand(&view);
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        for _ in 0..line.unwrap().parse::<u32>().unwrap() {
            one(&groups, &filter);
        }
        println!("done");
    }
    true
}

/// A running small process.
pub struct Floor {
    process: Child,
    heard: BufReader<std::process::ChildStdout>,
    groups: Groups,
}

impl Floor {
    /// One that shows this directory; nothing, if it cannot be had here.
    pub fn start(view: &Path) -> Option<Self> {
        let groups = Groups::make();
        let mut process = Bare::new(ambient::program())
            .arg(ALONE)
            .arg(view)
            .args(&groups.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut heard = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        heard.read_line(&mut line).unwrap();
        let mut floor = Self {
            process,
            heard,
            groups,
        };
        (line == "ready\n" && floor.run(1)).then_some(floor)
    }

    /// How many control groups hold what it makes.
    pub fn groups(&self) -> usize {
        self.groups.0.len()
    }

    /// Has it isolate so many programs, one after another; whether it could.
    pub fn run(&mut self, count: u32) -> bool {
        let asked = writeln!(self.process.stdin.as_mut().unwrap(), "{count}");
        let mut line = String::new();
        asked.is_ok() && self.heard.read_line(&mut line).is_ok() && line == "done\n"
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ended = self.process.wait();
    }
}

/// So many of them; none, if they cannot be had here.
pub fn start(count: usize, view: &Path) -> Vec<Floor> {
    let all: Option<Vec<_>> = (0..count).map(|_| Floor::start(view)).collect();
    all.unwrap_or_default()
}

/// How many programs they isolate in a second, at the same time.
pub fn a_second(floors: &mut [Floor], time: Duration) -> f64 {
    const AT_ONCE: u32 = 5;
    let started = Instant::now();
    let all: u32 = std::thread::scope(|scope| {
        let workers: Vec<_> = floors
            .iter_mut()
            .map(|floor| {
                scope.spawn(move || {
                    let mut done = 0_u32;
                    while started.elapsed() < time {
                        assert!(floor.run(AT_ONCE));
                        done += AT_ONCE;
                    }
                    done
                })
            })
            .collect();
        let done = workers.into_iter().map(|worker| worker.join().unwrap());
        done.sum()
    });
    f64::from(all) / started.elapsed().as_secs_f64()
}

/// Groups of version 1 with limits, where the machine has them. One set serves all
/// that is isolated: the limit on the processor is too high to bite.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn make() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Another name than the agent's, which sweeps what dead programs left.
        let name = format!("spawn-report-{}-{number}", std::process::id());
        let mut groups = Self(Vec::new());
        for (kind, file, limit) in [
            ("memory", "memory.limit_in_bytes", "536870912"),
            ("cpu", "cpu.cfs_quota_us", "1000000"),
            ("pids", "pids.max", "100"),
        ] {
            let dir = Path::new("/sys/fs/cgroup").join(kind).join(&name);
            if fs::create_dir(&dir).is_ok() {
                // What counts is that the kernel counts.
                let _limited = fs::write(dir.join(file), limit);
                groups.0.push(dir);
            }
        }
        groups
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for dir in &self.0 {
            // The last process leaves its group a little after it was reaped.
            for _ in 0..20 {
                if fs::remove_dir(dir).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Moves this process to a root of its own, with that of the programs at /new.
fn stand(view: &Path) {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)
        .unwrap();
    fs::write("/proc/self/setgroups", "deny").unwrap();
    fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw())).unwrap();
    fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw())).unwrap();
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).unwrap();
    let source = open(view, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    tmpfs("/tmp");
    chdir("/tmp").unwrap();
    for dir in ["old", "new", "own", "layer", "empty", "proc", "source"] {
        fs::create_dir(dir).unwrap();
    }
    let source = format!("/proc/self/fd/{}", source.as_raw_fd());
    mount_bind(source, "source").unwrap();
    pivot_root(".", "old").unwrap();
    chdir("/").unwrap();
    tmpfs("/new");
    for dir in ["usr", "etc", "dev", "proc", "tmp", "run", "work"] {
        fs::create_dir(Path::new("/new").join(dir)).unwrap();
    }
    mount_bind_recursive("/old/usr", "/new/usr").unwrap();
    for link in ["bin", "lib", "lib64"] {
        if let Ok(target) = fs::read_link(Path::new("/old").join(link)) {
            symlink(target, Path::new("/new").join(link)).unwrap();
        }
    }
    tmpfs("/new/dev");
    for dir in ["/new/dev/pts", "/new/dev/shm"] {
        fs::create_dir(dir).unwrap();
    }
    for name in DEVICES {
        let place = Path::new("/new/dev").join(name);
        fs::write(&place, "").unwrap();
        mount_bind(Path::new("/old/dev").join(name), place).unwrap();
    }
    for place in ["/new/dev", "/new"] {
        mount_remount(place, SEALED, c"").unwrap();
    }
    mount_bind_recursive("/old/proc", "/proc").unwrap();
    unmount("/old", UnmountFlags::DETACH).unwrap();
}

/// Makes one isolated process, and waits for its end.
fn one(groups: &[OwnedFd], filter: &Filter) {
    let (mapped_read, mapped_write) = rustix::pipe::pipe().unwrap();
    let namespaces = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    match fork_into(namespaces).unwrap() {
        Cloned::Child => {
            drop(mapped_write);
            rustix::io::read(&mapped_read, &mut [0_u8; 1]).unwrap();
            isolate(groups, filter);
            let ended = Bare::new("/bin/true").stdin(Stdio::null()).output();
            exit_immediately(i32::from(!ended.unwrap().status.success()))
        }
        Cloned::Parent(child) => {
            let write = |file: &str| fs::write(format!("/proc/{}/{file}", child.number), "0 0 1");
            write("uid_map").unwrap();
            write("gid_map").unwrap();
            rustix::io::write(&mapped_write, b"m").unwrap();
            let ended = nix::sys::wait::waitpid(child.number, None).unwrap();
            assert_eq!(ended, nix::sys::wait::WaitStatus::Exited(child.number, 0));
        }
    }
}

/// What [`hermitcrab_sandbox`] does to the first process of a sandbox.
fn isolate(groups: &[OwnedFd], filter: &Filter) {
    mount_bind_recursive("/new", "/new").unwrap();
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount(
        "devpts",
        "/new/dev/pts",
        "devpts",
        quiet,
        c"newinstance,ptmxmode=0666,mode=620",
    )
    .unwrap();
    mount("proc", "/new/proc", "proc", quiet | MountFlags::NODEV, c"").unwrap();
    chdir("/new/proc").unwrap();
    fs::write("sys/user/max_user_namespaces", "0").unwrap();
    // Each by what fits: one that does not makes the kernel wait for every processor.
    for (names, by) in [(MASKED_DIRS, "/empty"), (MASKED, "../dev/null")] {
        for name in names {
            match mount_bind(by, *name) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(errno) => panic!("{name}: {errno}"),
            }
        }
    }
    for name in READ_ONLY {
        if mount_bind(*name, *name).is_ok() {
            mount_remount(*name, SEALED | MountFlags::NOEXEC, c"").unwrap();
        }
    }
    chdir("/").unwrap();
    tmpfs("/own");
    for (dir, at) in [
        ("/own/shm", "/new/dev/shm"),
        ("/own/tmp", "/new/tmp"),
        ("/own/run", "/new/run"),
    ] {
        fs::create_dir(dir).unwrap();
        rustix::fs::chmodat(CWD, dir, Mode::RWXU, rustix::fs::AtFlags::empty()).unwrap();
        mount_bind(dir, at).unwrap();
    }
    tmpfs("/layer");
    for dir in ["/layer/upper", "/layer/work"] {
        fs::create_dir(dir).unwrap();
    }
    let layers = c"lowerdir=/source,upperdir=/layer/upper,workdir=/layer/work,userxattr";
    mount("overlay", "/new/work", "overlay", PLAIN, layers).unwrap();
    chdir("/new").unwrap();
    pivot_root(".", ".").unwrap();
    unmount(".", UnmountFlags::DETACH).unwrap();
    chdir("/").unwrap();
    for entrance in groups {
        rustix::io::write(entrance, b"0").unwrap();
    }
    unshare(CloneFlags::CLONE_NEWCGROUP).unwrap();
    let dir = |path: &str| open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let writable = ["/tmp", "/dev/shm", "/run", "/work"].map(dir);
    let writable = writable.iter().map(std::os::fd::AsFd::as_fd);
    let fence = Fence::build(
        dir("/").as_fd(),
        dir("/dev").as_fd(),
        writable,
        Tcp::Refused,
    )
    .unwrap();
    for capability in CapabilitySet::all().iter() {
        // The kernel may be older than the capability.
        let _dropped = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).unwrap();
    rustix::thread::set_no_new_privs(true).unwrap();
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Nproc, 100),
        (Resource::Nofile, 1024),
        (Resource::Fsize, 1 << 30),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit).unwrap();
    }
    filter().unwrap();
    rustix::process::setsid().unwrap();
    fence.close().unwrap();
}

fn tmpfs(place: &str) {
    mount("tmpfs", place, "tmpfs", PLAIN, c"size=64m,mode=755").unwrap();
}
