//! Pid 1 of a world: builds the last mounts, gives everything up, and hands
//! over to the subject's driver.
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use rustix::fs::{Mode, OFlags};

use crate::driver::{Driver, Interior, StepSink};
use crate::error::{AtStage, WorldError};
use crate::observer::{MERGED, PLACES};
use crate::protocol::Job;
use crate::{case_tree, enter, mounts, template};

/// Processes and threads in a world, over all of it.
const PROCESSES_MAX: u64 = 512;
/// Open files of one process; so many the program that makes worlds must be allowed itself.
pub const FILES_MAX: u64 = 1024;
/// Memory one process may have for itself: far more than either subject needs,
/// and less than would make the machine look for somebody to kill.
const MEMORY_BYTES_MAX: u64 = 2 << 30;
/// proc files that show or change the machine behind the world.
const COVERED: [&str; 8] = [
    "sysrq-trigger",
    "kcore",
    "kallsyms",
    "kmsg",
    "keys",
    "key-users",
    "timer_list",
    "config.gz",
];

/// Enters the observer's mounts and network, becomes the inside of the world
/// there, and runs the job.
pub(crate) fn live(
    [mounts, network]: &[OwnedFd; PLACES],
    job: &Job,
    driver: &dyn Driver,
    steps: &mut StepSink,
) -> Result<(), WorldError> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).at("set parent death signal")?;
    setns(mounts, CloneFlags::CLONE_NEWNS).at("enter the observer's mounts")?;
    setns(network, CloneFlags::CLONE_NEWNET).at("enter the observer's network")?;
    let merged = Path::new(MERGED);
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS)
        .at("unshare world")?;
    for place in ["usr", ".hx"] {
        mounts::bind(&Path::new("/").join(place), &merged.join(place))?;
    }
    for place in ["bin", "sbin", "lib", "lib32", "lib64"] {
        let own = Path::new("/").join(place);
        if own.is_dir() && !own.is_symlink() {
            mounts::bind(&own, &merged.join(place))?;
        }
    }
    for device in template::DEVICES {
        mounts::bind(
            &Path::new("/dev").join(device),
            &merged.join("dev").join(device),
        )?;
    }
    devpts(&merged.join("dev/pts"));
    if let Some(world) = &job.world {
        case_tree::mount(merged, &world.files)?;
    }
    let proc = merged.join("proc");
    mounts::proc(&proc)?;
    if driver.interior() == Interior::Plain {
        cover(&proc)?;
    }
    mounts::pivot(merged)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .at("open null")?;
    rustix::stdio::dup2_stdin(&null).at("close terminal")?;
    rustix::stdio::dup2_stdout(&null).at("close terminal")?;
    rustix::stdio::dup2_stderr(&null).at("close terminal")?;
    nix::unistd::setsid()
        .map(drop)
        .or_else(|errno| match errno {
            // Already a leader.
            nix::errno::Errno::EPERM => Ok(()),
            other => Err(WorldError::new("leave session", other)),
        })?;
    // The oracle blocks the signals it takes itself, and programs inherit that: a
    // command that ends another one by SIGTERM would wait for it in vain.
    nix::sys::signal::SigSet::empty()
        .thread_set_mask()
        .at("unblock signals")?;
    for (resource, limit) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NPROC, PROCESSES_MAX),
        (Resource::RLIMIT_NOFILE, FILES_MAX),
        (Resource::RLIMIT_DATA, MEMORY_BYTES_MAX),
    ] {
        setrlimit(resource, limit, limit).at("limit resources")?;
    }
    enter::drop_capabilities()?;
    nix::sys::prctl::set_no_new_privs().at("forbid new privileges")?;
    // Dropping capabilities hides /proc/self from its owner; subjects read it. Where commands
    // have this process' user and it tells what calls answered and asked, nobody but itself
    // may open its descriptors, read or write its memory or trace it.
    nix::sys::prctl::set_dumpable(!driver.is_out_of_reach()).at("become dumpable, or not")?;
    if let Some(world) = &job.world {
        nix::unistd::chdir(world.cwd.as_str()).at(&format!("enter {}", world.cwd))?;
    }
    driver.run(job, steps)
}

/// Terminals for programs that insist on one. A kernel without them only loses
/// that: `script` and the like fail in both subjects alike.
fn devpts(target: &Path) {
    let flags = nix::mount::MsFlags::MS_NOSUID | nix::mount::MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=0620");
    let _ = nix::mount::mount(Some("devpts"), target, Some("devpts"), flags, options);
}

/// Covers what a plain world has no business with. The world's uid could not
/// change these anyway; this keeps a mistake in that from mattering.
fn cover(proc: &Path) -> Result<(), WorldError> {
    for name in COVERED {
        mounts::bind_if_there(Path::new("/dev/null"), &proc.join(name))?;
    }
    for name in ["sys", "irq", "bus", "fs"] {
        let target = proc.join(name);
        if mounts::bind_if_there(&target, &target)? {
            mounts::read_only(&target)?;
        }
    }
    Ok(())
}
