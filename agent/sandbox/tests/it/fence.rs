//! Landlock as the only line: each right it handles, allowed inside and refused
//! outside, with nothing else around the thread that tries.
//!
//! The thread has no namespace, no filter and all of its user's powers; what it
//! tries is harmless. What is refused inside of the fence must succeed without it,
//! or the refusal would be somebody else's. The lines that start with FENCE become
//! a table of docs/escape-matrix.md by `cargo xtask escape-report`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Bare, Stdio};

use hermitcrab_sandbox::landlock::{Fence, Tcp};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// A program that ends at once, and needs no other file.
const PROGRAM: &[u8] = &[
    0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, // 64 bits
    2, 0, 62, 0, 1, 0, 0, 0, 0x78, 0, 0x40, 0, 0, 0, 0, 0, // x86-64, starts at 0x400078
    64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // one part, listed at 64
    0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0, //
    1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // to be read and run
    0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, //
    0x84, 0, 0, 0, 0, 0, 0, 0, 0x84, 0, 0, 0, 0, 0, 0, 0, //
    0, 0x10, 0, 0, 0, 0, 0, 0, //
    0xb8, 60, 0, 0, 0, // mov eax, 60
    0x31, 0xff, // xor edi, edi
    0x0f, 0x05, // syscall
    0, 0, 0,
];

/// The numbers of /dev/null.
const NULL: u64 = 0x103;

/// What is tried, with the version of Landlock that began to refuse it.
struct Right {
    name: &'static str,
    since: u8,
    /// What is allowed, and what is refused.
    inside: fn(&Ground) -> io::Result<()>,
    outside: fn(&Ground) -> io::Result<()>,
}

/// What there is to try it on. `root` may be read and run, `writable` below it
/// changed, `devices` below it used, and `elsewhere` nothing.
struct Ground {
    temp: tempfile::TempDir,
    open_port: u16,
    other_port: u16,
    abstract_name: String,
    _listening: (TcpListener, TcpListener, UnixListener, UnixListener),
    other: Child,
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _killed = self.other.kill();
        let _reaped = self.other.wait();
    }
}

impl Ground {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        for dir in [
            "root/writable/one",
            "root/writable/two",
            "root/devices",
            "elsewhere",
        ] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        for dir in ["root", "root/writable", "elsewhere"] {
            fs::write(at(dir).join("file"), "text").unwrap();
            fs::create_dir(at(dir).join("dir")).unwrap();
            fs::write(at(dir).join("program"), PROGRAM).unwrap();
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(at(dir).join("program"), mode).unwrap();
        }
        for dir in ["root", "root/devices"] {
            // Not without being root, or not here: then `trial` says so.
            let _made = make(&at(dir).join("device"), FileType::CharacterDevice, NULL);
        }
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let number = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let (open_port, other_port) = (number(&ports[0]), number(&ports[1]));
        let abstract_name = format!("hermitcrab-fence-{open_port}-{other_port}");
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let [open, other] = ports;
        let named = UnixListener::bind(at("root/socket")).unwrap();
        Self {
            open_port,
            other_port,
            _listening: (
                open,
                other,
                UnixListener::bind_addr(&address).unwrap(),
                named,
            ),
            abstract_name,
            other: sleeper().unwrap(),
            temp,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn fence(&self, tcp: Tcp) -> Fence {
        let open = |name: &str| -> OwnedFd {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(self.at(name), flags, Mode::empty()).unwrap()
        };
        let (root, devices) = (open("root"), open("root/devices"));
        let writable = open("root/writable");
        Fence::build(root.as_fd(), devices.as_fd(), [writable.as_fd()], tcp).unwrap()
    }
}

fn sleeper() -> io::Result<Child> {
    Bare::new("/bin/sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
}

fn make(place: &Path, kind: FileType, number: u64) -> io::Result<()> {
    Ok(mknodat(CWD, place, kind, Mode::RUSR | Mode::WUSR, number)?)
}

fn run(program: &Path) -> io::Result<()> {
    Bare::new(program)
        .stdin(Stdio::inherit())
        .status()
        .map(drop)
}

fn cut(place: &Path) -> io::Result<()> {
    // It asks for no right to write.
    Ok(rustix::fs::open(place, OFlags::RDONLY | OFlags::TRUNC, Mode::empty()).map(drop)?)
}

/// Gives the null device an order it does not know.
fn order(dir: &Path) -> io::Result<()> {
    let place = dir.join("device");
    let device = File::open(place)?;
    match rustix::termios::tcgetwinsize(&device) {
        Ok(_) | Err(Errno::NOTTY) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn abstract_socket(name: &str) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?).map(drop)
}

fn signal(process: &Child) -> io::Result<()> {
    Ok(rustix::process::test_kill_process(Pid::from_child(
        process,
    ))?)
}

fn descriptor_of(process: &Child) -> io::Result<()> {
    let handle = pidfd_open(Pid::from_child(process), PidfdFlags::empty())?;
    Ok(pidfd_getfd(handle, 0, PidfdGetfdFlags::empty()).map(drop)?)
}

/// Does it to a process of its own, which is there until it is waited for.
fn with_own(act: fn(&Child) -> io::Result<()>, ground: &Ground) -> io::Result<()> {
    let mut own = Bare::new(ground.at("root/program"))
        .stdin(Stdio::inherit())
        .spawn()?;
    let done = act(&own);
    own.wait()?;
    done
}

const RIGHTS: &[Right] = &[
    Right {
        name: "read a file",
        since: 1,
        inside: |g| fs::read(g.at("root/file")).map(drop),
        outside: |g| fs::read(g.at("elsewhere/file")).map(drop),
    },
    Right {
        name: "list a directory",
        since: 1,
        inside: |g| fs::read_dir(g.at("root")).map(drop),
        outside: |g| fs::read_dir(g.at("elsewhere")).map(drop),
    },
    Right {
        name: "run a program",
        since: 1,
        inside: |g| run(&g.at("root/program")),
        outside: |g| run(&g.at("elsewhere/program")),
    },
    Right {
        name: "write a file",
        since: 1,
        inside: |g| {
            fs::OpenOptions::new()
                .append(true)
                .open(g.at("root/writable/file"))
                .map(drop)
        },
        outside: |g| {
            fs::OpenOptions::new()
                .append(true)
                .open(g.at("root/file"))
                .map(drop)
        },
    },
    Right {
        name: "make a file",
        since: 1,
        inside: |g| File::create_new(g.at("root/writable/new")).map(drop),
        outside: |g| File::create_new(g.at("root/new")).map(drop),
    },
    Right {
        name: "make a directory",
        since: 1,
        inside: |g| fs::create_dir(g.at("root/writable/newdir")),
        outside: |g| fs::create_dir(g.at("root/newdir")),
    },
    Right {
        name: "make a link",
        since: 1,
        inside: |g| symlink("file", g.at("root/writable/link")),
        outside: |g| symlink("file", g.at("root/link")),
    },
    Right {
        name: "make a named pipe",
        since: 1,
        inside: |g| make(&g.at("root/writable/pipe"), FileType::Fifo, 0),
        outside: |g| make(&g.at("root/pipe"), FileType::Fifo, 0),
    },
    Right {
        name: "make a named socket",
        since: 1,
        inside: |g| UnixListener::bind(g.at("root/writable/own")).map(drop),
        outside: |g| UnixListener::bind(g.at("root/own")).map(drop),
    },
    Right {
        name: "make a character device",
        since: 1,
        inside: |g| make(&g.at("root/writable/null"), FileType::CharacterDevice, NULL),
        outside: |g| make(&g.at("root/null"), FileType::CharacterDevice, NULL),
    },
    Right {
        name: "make a block device",
        since: 1,
        // Of no driver.
        inside: |g| {
            make(
                &g.at("root/writable/block"),
                FileType::BlockDevice,
                rustix::fs::makedev(0, 0),
            )
        },
        outside: |g| {
            make(
                &g.at("root/block"),
                FileType::BlockDevice,
                rustix::fs::makedev(0, 0),
            )
        },
    },
    Right {
        name: "remove a file",
        since: 1,
        inside: |g| fs::remove_file(g.at("root/writable/file")),
        outside: |g| fs::remove_file(g.at("root/file")),
    },
    Right {
        name: "remove a directory",
        since: 1,
        inside: |g| fs::remove_dir(g.at("root/writable/dir")),
        outside: |g| fs::remove_dir(g.at("root/dir")),
    },
    Right {
        name: "move between directories",
        since: 2,
        inside: |g| {
            fs::write(g.at("root/writable/one/moved"), "")?;
            fs::rename(
                g.at("root/writable/one/moved"),
                g.at("root/writable/two/moved"),
            )
        },
        outside: |g| fs::rename(g.at("root/program"), g.at("root/writable/two/taken")),
    },
    Right {
        name: "link between directories",
        since: 2,
        inside: |g| {
            fs::hard_link(
                g.at("root/writable/program"),
                g.at("root/writable/two/linked"),
            )
        },
        outside: |g| fs::hard_link(g.at("root/program"), g.at("root/writable/two/taken")),
    },
    Right {
        name: "cut a file off",
        since: 3,
        inside: |g| cut(&g.at("root/writable/file")),
        outside: |g| cut(&g.at("root/file")),
    },
    Right {
        name: "connect by TCP",
        since: 4,
        inside: |g| TcpStream::connect(("127.0.0.1", g.open_port)).map(drop),
        outside: |g| TcpStream::connect(("127.0.0.1", g.other_port)).map(drop),
    },
    Right {
        name: "listen by TCP",
        since: 4,
        // Where the fence leaves TCP to the namespace; see `tcp`.
        inside: |_| TcpListener::bind("127.0.0.1:0").map(drop),
        outside: |_| TcpListener::bind("127.0.0.1:0").map(drop),
    },
    Right {
        name: "give a device orders",
        since: 5,
        inside: |g| order(&g.at("root/devices")),
        outside: |g| order(&g.at("root")),
    },
    Right {
        name: "connect to an abstract socket",
        since: 6,
        inside: |g| {
            let name = format!("{}-own", g.abstract_name);
            let address = SocketAddr::from_abstract_name(&name)?;
            let _own = UnixListener::bind_addr(&address)?;
            abstract_socket(&name)
        },
        outside: |g| abstract_socket(&g.abstract_name),
    },
    Right {
        name: "signal a process",
        since: 6,
        inside: |g| with_own(signal, g),
        outside: |g| signal(&g.other),
    },
    Right {
        name: "take a process' descriptor",
        since: 1,
        inside: |_| {
            let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
            Ok(pidfd_getfd(own, 0, PidfdGetfdFlags::empty()).map(drop)?)
        },
        outside: |g| descriptor_of(&g.other),
    },
    Right {
        name: "mount a file system",
        since: 1,
        // There is no right to that: nobody inside has it.
        inside: |g| fs::read_dir(g.at("root/dir")).map(drop),
        outside: |g| {
            let place = g.at("root/dir");
            Ok(mount(
                "tmpfs",
                &place,
                "tmpfs",
                MountFlags::empty(),
                c"size=4k",
            )?)
        },
    },
    Right {
        name: "connect to a named socket",
        since: 9,
        inside: |g| {
            let place = g.at("root/writable/listening");
            let _own = UnixListener::bind(&place)?;
            UnixStream::connect(place).map(drop)
        },
        outside: |g| UnixStream::connect(g.at("root/socket")).map(drop),
    },
];

/// What only root can do, even without a fence.
const ROOTS: [&str; 4] = [
    "make a character device",
    "make a block device",
    "give a device orders",
    "mount a file system",
];

fn tcp(right: &Right, ground: &Ground, is_inside: bool) -> Tcp {
    match (right.name, is_inside) {
        ("connect by TCP", _) => Tcp::Only(ground.open_port),
        ("listen by TCP", true) => Tcp::AsTheNamespace,
        _ => Tcp::Refused,
    }
}

/// Tries it in a thread of its own, on ground of its own, closed in or not.
fn trial(
    act: fn(&Ground) -> io::Result<()>,
    close: Option<&dyn Fn(&Ground) -> Fence>,
) -> Result<(), Errno> {
    let ground = Ground::new();
    let fence = close.map(|close| close(&ground));
    std::thread::scope(|scope| {
        let tried = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                // What is mounted is this thread's, and goes with it.
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
                let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
                mount_change("/", private).unwrap();
            }
            if let Some(fence) = fence {
                fence.close().unwrap();
            }
            act(&ground)
        });
        let done = tried.join().unwrap();
        done.map_err(|error| Errno::from_io_error(&error).expect("an error of the kernel's"))
    })
}

#[test]
fn landlock_alone_allows_inside_and_refuses_outside() {
    if cfg!(not(target_arch = "x86_64")) {
        println!("SKIPPED: the program that is run is one of x86-64");
        return;
    }
    let version = Ground::new().fence(Tcp::Refused).version();
    if version == 0 {
        println!("SKIPPED: this kernel has no Landlock");
        return;
    }
    println!("FENCE right | since version | inside | outside | outside, without it");
    for right in RIGHTS {
        let name = right.name;
        if let Err(errno) = trial(right.outside, None) {
            // Its refusal would prove nothing.
            assert!(ROOTS.contains(&name), "{name}: {errno}");
            println!("SKIPPED: {name}: {errno} without a fence, too");
            continue;
        }
        let inside = trial(right.inside, Some(&|g| g.fence(tcp(right, g, true))));
        assert_eq!(inside, Ok(()), "{name}");
        let outside = trial(right.outside, Some(&|g| g.fence(tcp(right, g, false))));
        let held = match outside {
            Err(Errno::ACCESS | Errno::PERM | Errno::XDEV) => "held",
            Err(errno) => panic!("{name}: {errno}"),
            Ok(()) => "**through**",
        };
        println!("FENCE {name} | {} | works | {held} | works", right.since);
        // A kernel that is too old is known not to refuse it, and that is told.
        let is_known = version >= right.since;
        assert_eq!(held == "held", is_known, "{name}, version {version}");
        let told = hermitcrab_sandbox::landlock::lacks(version);
        assert!(is_known || !told.is_empty(), "{name}");
    }
}
