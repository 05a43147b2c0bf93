//! The first process of a sandbox: makes it, has the command wait in it, reaps.
//!
//! It runs as process 1 of the new pid namespace, so its end is the end of
//! every process inside. It never looks at what the command does.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::channel::Channel;
use super::fence;
use super::filter::Filter;
use super::ready;
use super::reaper;
use super::renames::Renames;
use super::root::{self, Template};
use super::spec::{LimitSpec, Report, Surroundings, UsageSpec};
use crate::cgroup::Entrances;
use crate::confined::Confined;
use crate::mechanism::Mechanism;
use crate::net;
use crate::step::{AtStep, CLOSE_RANGE, Step, StepError};
use crate::sys;

/// What the process needs from its parent.
pub(crate) struct Start<'a> {
    pub spec: Surroundings,
    /// The ways into its groups.
    pub entrances: Entrances,
    pub template: &'a Template,
    /// Who copies views whose owners are not translated.
    pub copier: Option<&'a Channel>,
    pub filter: &'a Filter,
    /// For the process that becomes the command.
    pub stack: &'a mut [u8],
    /// What is taken from the modes of what the command makes.
    pub umask: Mode,
    /// Where the agent listens and the command comes from.
    pub reply: BorrowedFd<'a>,
    /// Readable once the id maps are written, and again when it may go on.
    pub mapped: OwnedFd,
    /// What the namespaces it was made in are worth.
    pub confined: Confined,
}

/// What of these a command has counts for whoever started the agent as well, who
/// has a hundred times as much, and of queues four times.
const SIGNALS_MAX: u64 = 512;
const QUEUES_BYTES_MAX: u64 = 192 << 10;
const LOCKED_BYTES_MAX: u64 = 1 << 20;

/// The exit code that means nothing: what there is to say has been said.
const EXIT: i32 = 0;

/// Runs in the child of the fork and never comes back.
pub(crate) fn run(start: Start<'_>) -> ! {
    sys::heed_again();
    let report = match start.reply.try_clone_to_owned() {
        Ok(reply) => {
            let reply = Channel::new(reply);
            let report = match enter(start, &reply) {
                Ok(report) => report,
                Err(error) => Report::Failed(error),
            };
            reply.send(&report.encode(), &[])
        }
        Err(error) => Err(error),
    };
    // An agent that is gone needs no report.
    let _told = report;
    sys::exit_immediately(EXIT)
}

fn enter(start: Start<'_>, reply: &Channel) -> Result<Report, StepError> {
    // Before the zygote is heard from: if it dies later, so does this.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .at(Step::TakeIds, "death signal")?;
    // Closed before there is a command, which could ask as well.
    let copier = start
        .copier
        .map(|copier| copier.as_fd().try_clone_to_owned());
    let copier = copier.transpose().at(Step::Fork, "copier")?;
    let mut keep = vec![start.reply, reply.as_fd(), start.mapped.as_fd()];
    keep.extend(copier.iter().map(AsFd::as_fd));
    keep.extend(start.entrances.descriptors());
    let without = start.spec.without;
    if !without.contains(Mechanism::ClosedDescriptors) {
        sys::close_all_but(&keep).at(Step::Fork, CLOSE_RANGE)?;
    }
    let mut byte = [0_u8; 1];
    if rustix::io::read(&start.mapped, &mut byte).at(Step::MapIds, "")? == 0 {
        sys::exit_immediately(EXIT);
    }
    let built = root::build(start.template, copier.map(Channel::new), &start.spec)?;
    let mut confined = start.confined;
    confined.copied = built.views.copied.clone();
    confined.strange = built.views.strange.clone();
    confined.on_disk = built.views.on_disk.is_some();
    if let Some(why) = &built.views.not_on_disk {
        confined.missing.push(format!("layers on disk: {why}"));
    }
    if let Some(why) = &built.views.bare {
        confined.missing.push(format!(
            "read-only views: sockets and locks in them are the machine's: {why}"
        ));
    }
    if let Some(why) = &built.no_terminals {
        confined.missing.push(format!("terminals: none: {why}"));
    }
    confined.note(Mechanism::NoNesting, &built.no_nesting);
    confined.note(Mechanism::SharedWatches, &start.template.watches);
    confined.note(Mechanism::IdMaps, &built.views.owners);
    // What was built is not the command's to pay for; all it starts is.
    if let Err(error) = start.entrances.enter() {
        let why = format!("the command cannot move inside: {error}");
        reply
            .send(&Report::Grouped(Err(why)).encode(), &[])
            .at(Step::Talk, "groups")?;
    }
    drop(start.entrances);
    // By now it is in its groups, moved by itself or by the zygote.
    if rustix::io::read(&start.mapped, &mut byte).at(Step::ControlGroups, "")? == 0 {
        sys::exit_immediately(EXIT);
    }
    drop(start.mapped);
    if !without.contains(Mechanism::CgroupNamespace) {
        // From inside, its own groups are the topmost.
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWCGROUP)
            .at(Step::Namespaces, "cgroup")?;
        confined.by.insert(Mechanism::CgroupNamespace);
    }
    for mechanism in [
        Mechanism::PrivateRoot,
        Mechanism::CopyOnWrite,
        Mechanism::MaskedProc,
        Mechanism::NoCapabilities,
        Mechanism::ResourceLimits,
        Mechanism::ClosedDescriptors,
        Mechanism::SystemCallFilter,
        // The waiting process begins with it, or says why not.
        Mechanism::OwnSession,
    ] {
        if !without.contains(mechanism) {
            confined.by.insert(mechanism);
        }
    }
    let (listener, proxy) = network(&start.spec)?.unzip();
    let fence = if without.contains(Mechanism::Landlock) {
        None
    } else {
        Some(fence::build(&start.spec).at(Step::Landlock, "rules")?)
    };
    match &fence {
        Some(fence) if fence.version() > 0 => {
            confined.landlock_version = fence.version();
            confined.by.insert(Mechanism::Landlock);
        }
        _ => confined
            .missing
            .push(String::from("landlock: not offered by this kernel")),
    }
    if !without.contains(Mechanism::NoCapabilities) {
        drop_capabilities()?;
    }
    if !without.contains(Mechanism::ResourceLimits) {
        limit(&start.spec.limits)?;
    }
    rustix::process::umask(start.umask);
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at(Step::DropCapabilities, "dumpable")?;
    if !without.contains(Mechanism::SystemCallFilter) {
        start
            .filter
            .install()
            .at(Step::SystemCallFilter, "install")?;
    }
    let views = &start.spec.places.views;
    let renames = match views
        .iter()
        .any(|view| view.copy_on_write)
        .then(|| Renames::watch(fence.as_ref()))
        .transpose()
    {
        Ok(renames) => renames,
        Err(error) => {
            let why = format!("renames: directories of before keep their names: {error}");
            confined.missing.push(why);
            None
        }
    };

    let descriptors: Vec<_> = built
        .views
        .uppers
        .iter()
        .chain(std::iter::once(&built.exchange))
        .chain(&built.views.merged)
        .chain(built.views.on_disk.as_ref().map(|disk| &disk.held))
        .chain(&listener)
        .map(AsFd::as_fd)
        .collect();
    let on_disk = built.views.on_disk.as_ref().map(|disk| &disk.name);
    let ready = Report::Ready(confined, on_disk.map(|name| name.clone().into_bytes())).encode();
    let mut fence = fence;
    // It comes back when the command runs.
    let command = sys::fork_sharing_memory(start.stack, &mut || {
        ready::run(reply, fence.take(), proxy, &ready, &descriptors, without)
    })
    .at(Step::Fork, "")?;
    drop((built, listener));
    let ending =
        reaper::until_nothing_is_left(command.as_raw(), reply, renames).at(Step::Wait, "")?;
    Ok(Report::Ended(ending, usage()))
}

/// Prepares what of the network the command has; the socket is the proxy's, which listens
/// at that address.
fn network(spec: &Surroundings) -> Result<Option<(OwnedFd, Ipv4Addr)>, StepError> {
    // Without a namespace of its own it would be the machine's.
    let own = !spec.faults.network && !spec.without.contains(Mechanism::NetworkNamespace);
    if !spec.network.is_some() || !own {
        return Ok(None);
    }
    // One that is shared is up.
    let is_shared = spec.network.common.is_some();
    if !is_shared {
        net::raise_loopback().at(Step::Network, "loopback")?;
    }
    if !spec.network.proxy {
        return Ok(None);
    }
    let listening = if is_shared {
        net::listen_beside()
    } else {
        net::listen()
    };
    listening.map(Some).at(Step::Network, "proxy")
}

/// Gives up every capability, and every way to get one back.
pub(crate) fn drop_capabilities() -> Result<(), StepError> {
    for capability in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // EINVAL: the kernel is older than the capability.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(errno) => {
                return Err(StepError::new(
                    Step::DropCapabilities,
                    "bounding set",
                    errno,
                ));
            }
        }
    }
    rustix::thread::set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )
    .at(Step::DropCapabilities, "securebits")?;
    rustix::thread::clear_ambient_capability_set().at(Step::DropCapabilities, "ambient")?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )
    .at(Step::DropCapabilities, "sets")?;
    rustix::thread::set_no_new_privs(true).at(Step::DropCapabilities, "no_new_privs")
}

/// By so much the second bound on processes is wider: the first, a group's, counts what it
/// refuses, and of this one nobody is told.
const PROCESSES_SPARE: u64 = 4;

fn limit(limits: &LimitSpec) -> Result<(), StepError> {
    let set = |resource: Resource, name: &str, value: u64| {
        let (_, hard) = getrlimit(resource).at(Step::ResourceLimits, name)?;
        // A hard limit can only be lowered.
        let value = value.min(hard);
        setrlimit(resource, value, value).at(Step::ResourceLimits, name)
    };
    // Not 0: that keeps the kernel from writing a file, but not from starting the
    // machine's own collector with what lies in the memory of the command.
    set(Resource::RLIMIT_CORE, "core", 1)?;
    set(Resource::RLIMIT_SIGPENDING, "signals", SIGNALS_MAX)?;
    set(Resource::RLIMIT_MSGQUEUE, "queues", QUEUES_BYTES_MAX)?;
    set(Resource::RLIMIT_MEMLOCK, "locked memory", LOCKED_BYTES_MAX)?;
    let processes = limits.processes.saturating_add(PROCESSES_SPARE);
    set(Resource::RLIMIT_NPROC, "processes", processes)?;
    set(Resource::RLIMIT_NOFILE, "open files", limits.open_files)?;
    set(Resource::RLIMIT_FSIZE, "file size", limits.file_bytes)?;
    if limits.data_bytes > 0 {
        set(Resource::RLIMIT_DATA, "data", limits.data_bytes)?;
    }
    Ok(())
}

fn usage() -> UsageSpec {
    let Ok(usage) = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN)
    else {
        return UsageSpec::default();
    };
    let microseconds = |time: nix::sys::time::TimeVal| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        let rest = u64::try_from(time.tv_usec()).unwrap_or(0);
        seconds.saturating_mul(1_000_000).saturating_add(rest)
    };
    UsageSpec {
        user_us: microseconds(usage.user_time()),
        system_us: microseconds(usage.system_time()),
        peak_resident_bytes: u64::try_from(usage.max_rss())
            .unwrap_or(0)
            .saturating_mul(1024),
    }
}
