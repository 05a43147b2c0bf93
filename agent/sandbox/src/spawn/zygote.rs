//! The zygote: the process sandboxes are cloned from.
//!
//! It lives in a mount namespace of its own, and in a user namespace with the spawner's
//! other zygotes ([`super::ground`]), in a small root with the template of its sandboxes' roots ready and the directories of their views
//! beside it; the rest of the machine's root it has let go of. There is one for
//! each set of places ([`super::spec::Places`]), because an empty place for a
//! view would tell others of it.
//! It does nothing but clone: every sandbox builds itself, so that one that
//! hangs on a file system holds up nobody. It never reads a view and never
//! hears from a command.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::fs::{Mode, OFlags};
use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{DumpableBehavior, Signal, WaitOptions};

use super::channel::{Channel, Received};
use super::filter::{Filter, FilterSpec, Ids, Sockets};
use super::init;
use super::networks::Networks;
use super::root::{self, Template};
use super::spec::{Places, Report, Surroundings};
use super::stage;
use crate::cgroup::{Admission, Entrances};
use crate::confined::Confined;
use crate::identity::Identity;
use crate::mechanism::Mechanism;
use crate::step::{AtStep, CLOSE_RANGE, Step, StepError};
use crate::sys::{self, Cloned};

/// For an error that has no number.
const EIO: i32 = nix::libc::EIO;

/// What the process needs from its parent.
pub(crate) struct Start {
    pub identity: Identity,
    pub places: Places,
    /// Mounts of the views with translated owners come this way, if root makes any, and
    /// copies of those whose owners are not.
    pub mounts: Option<Channel>,
    /// Requests come this way, the first of them before anything is built.
    pub control: Channel,
    /// The user namespace it is to live in.
    pub user: OwnedFd,
}

/// What every sandbox is made from.
struct Stock {
    identity: Identity,
    template: Template,
    /// Who copies views whose owners are not translated, if there are such.
    copier: Option<Channel>,
    filter: Filter,
    /// For a command that has a network capability.
    network_filter: Filter,
    /// A stack for each sandbox's copy of this memory, never used here.
    stack: Vec<u8>,
    /// Whoever started the agent keeps this from others in what is made.
    umask: Mode,
    victims: Victims,
}

/// Runs in the child of the fork and never comes back.
pub(crate) fn run(start: Start) -> ! {
    let Start {
        identity,
        places,
        mounts,
        control,
        user,
    } = start;
    let mut keep = vec![control.as_fd(), user.as_fd()];
    keep.extend(mounts.iter().map(AsFd::as_fd));
    let alone = if places.faults.open_descriptors {
        Ok(())
    } else {
        sys::close_all_but(&keep)
    };
    let mut stock = match alone
        .at(Step::Fork, CLOSE_RANGE)
        .and_then(|()| prepare(identity, &places, mounts, &control, &user))
    {
        Ok(stock) => stock,
        Err(error) => {
            refuse(&control, error);
            sys::exit_immediately(1)
        }
    };
    drop(user);
    // The kernel reaps the sandboxes' first processes by itself. And one that fails
    // while its root is built closes the pipe it is told to go on through: what is
    // written there then must not end the zygote, and with it every other sandbox.
    sys::ignore_ends();
    serve(&mut stock, &mut Networks::default(), control);
    // No sandbox is made any more.
    stock.copier = None;
    // What runs already runs to its end, and ends with the zygote.
    while !matches!(
        rustix::process::wait(WaitOptions::empty()),
        Err(rustix::io::Errno::CHILD)
    ) {}
    sys::exit_immediately(0)
}

/// Tells everybody who asked that no sandbox can be made here. Whoever asks later
/// finds the way closed, and another zygote.
pub(super) fn refuse(control: &Channel, error: StepError) {
    let report = Report::Failed(error).encode();
    // There is at least the one it was started for; or the spawner is gone.
    let mut received = control.receive();
    if rustix::net::shutdown(control, Shutdown::Read).is_err() {
        return;
    }
    while let Ok(Received::Frame(_, descriptors)) = received {
        if let Some(reply) = descriptors.into_iter().next() {
            let _told = Channel::new(reply).send(&report, &[]);
        }
        received = control.receive_now();
    }
}

fn prepare(
    identity: Identity,
    places: &Places,
    mounts: Option<Channel>,
    control: &Channel,
    user: &OwnedFd,
) -> Result<Stock, StepError> {
    setns(user, CloneFlags::CLONE_NEWUSER).at(Step::Namespaces, "zygote")?;
    unshare(CloneFlags::CLONE_NEWNS).at(Step::Namespaces, "zygote")?;
    if identity.must_switch() {
        take_ids(&identity.outer())?;
    }
    // A spawner that is gone before this closes the socket, which ends the
    // zygote as well.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .at(Step::TakeIds, "death signal")?;
    // An ordinary user's command has its user's own id.
    let (staged, copier) = match mounts {
        Some(mounts) => {
            let staged = stage::receive_all(places, &mounts, control)?;
            let is_written = |number: &usize| {
                let view = places.views.get(*number);
                view.is_some_and(|view| view.copy_on_write)
            };
            let is_needed = staged.strange.keys().any(is_written);
            (Some(staged), is_needed.then_some(mounts))
        }
        None => (None, None),
    };
    // What is made in the template has the modes it is given, whoever started the agent.
    let umask = rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let template = root::template::build(identity.user, identity.group, places, staged)?;
    let ids = Ids {
        user: identity.user,
        group: identity.group,
    };
    Ok(Stock {
        identity,
        template,
        copier,
        filter: filter(false, ids),
        network_filter: filter(true, ids),
        stack: vec![0; sys::SHARING_STACK_BYTES],
        umask,
        victims: Victims::find(),
    })
}

fn filter(network: bool, ids: Ids) -> Filter {
    Filter::build(&FilterSpec {
        sockets: if network {
            Sockets::Internet
        } else {
            Sockets::Local
        },
        ids,
    })
}

fn take_ids(identity: &Identity) -> Result<(), StepError> {
    let user = rustix::process::Uid::from_raw(identity.user);
    let group = rustix::process::Gid::from_raw(identity.group);
    rustix::thread::set_thread_groups(&[group]).at(Step::TakeIds, "groups")?;
    rustix::thread::set_thread_res_gid(group, group, group).at(Step::TakeIds, "group")?;
    rustix::thread::set_thread_res_uid(user, user, user).at(Step::TakeIds, "user")
}

/// Serves until the spawner lets go.
fn serve(stock: &mut Stock, networks: &mut Networks, control: Channel) {
    loop {
        networks.look_over_until(control.as_fd());
        let (frame, descriptors) = match control.receive() {
            Ok(Received::Frame(frame, descriptors)) => (frame, descriptors),
            Ok(Received::Nothing) => continue,
            Ok(Received::Closed) | Err(_) => return,
        };
        let mut descriptors = descriptors.into_iter();
        let Some(reply) = descriptors.next().map(Channel::new) else {
            continue;
        };
        let made = request(&frame, &mut descriptors)
            .ok_or_else(|| {
                StepError::new(Step::ReadRequest, "", io::Error::other("garbled request"))
            })
            .and_then(|asked| clone(stock, networks, asked, &reply));
        if let Err(error) = made {
            let _told = reply.send(&Report::Failed(error).encode(), &[]);
        }
    }
}

/// What is asked for.
struct Asked {
    spec: Surroundings,
    /// The ways into its groups.
    entrances: Entrances,
    /// The network it shares with others, if it does and that could be made.
    shared: Option<OwnedFd>,
}

fn request(frame: &[u8], descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<Asked> {
    let (counts, frame) = frame.split_first_chunk()?;
    let entrances = Entrances::from_parts(*counts, descriptors)?;
    Some(Asked {
        spec: Surroundings::decode(frame).ok()?,
        entrances,
        shared: descriptors.next(),
    })
}

fn clone(
    stock: &mut Stock,
    networks: &mut Networks,
    asked: Asked,
    reply: &Channel,
) -> Result<(), StepError> {
    let Asked {
        mut spec,
        entrances,
        shared,
    } = asked;
    let (mapped_read, mapped_write) = pipe_with(PipeFlags::CLOEXEC).at(Step::Fork, "pipe")?;
    let (mut namespaces, mut confined) = namespaces(&spec);
    let is_mapped = namespaces.contains(CloneFlags::CLONE_NEWUSER);
    let mut network = None;
    // A recycled one is the zygote's: a loopback cannot be raised in it.
    if spec.recycled
        && !spec.network.is_some()
        && !spec.shares_network()
        && let Ok(place) = networks.enter()
    {
        namespaces.remove(CloneFlags::CLONE_NEWNET);
        network = Some(place);
    }
    if spec.network.common.is_some() {
        match shared.map(|shared| setns(shared, CloneFlags::CLONE_NEWNET)) {
            Some(Ok(())) => namespaces.remove(CloneFlags::CLONE_NEWNET),
            // One of its own is less, and no more than what is held.
            None | Some(Err(_)) => spec.network.common = None,
        }
    }
    // The map files of a process that is not dumpable belong to root.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)
        .at(Step::Identity, "dumpable")?;
    let victims = if spec.without.contains(Mechanism::FirstVictim) {
        Err(String::from("left out"))
    } else {
        stock.victims.are_born()
    };
    confined.note(Mechanism::FirstVictim, &victims);
    let born = entrances.bear(|birth| match birth {
        Some(group) => sys::fork_into_group(namespaces, group),
        None => sys::fork_into(namespaces),
    });
    if !matches!(born, Ok((Cloned::Child, _))) {
        stock.victims.are_not_born();
    }
    let (forked, admission) = born.at(Step::Namespaces, "")?;
    let child = match forked {
        Cloned::Child => {
            let reply = reply.as_fd();
            let filter = if spec.faults.network || spec.network.is_some() {
                &stock.network_filter
            } else {
                &stock.filter
            };
            init::run(init::Start {
                spec,
                entrances,
                template: &stock.template,
                copier: stock.copier.as_ref(),
                filter,
                stack: &mut stock.stack,
                umask: stock.umask,
                reply,
                mapped: mapped_read,
                confined,
            })
        }
        Cloned::Parent(child) => child,
    };
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at(Step::Identity, "dumpable")?;
    drop(mapped_read);
    if let Some(place) = network {
        match child.handle.try_clone() {
            Ok(handle) => networks.give(place, handle),
            Err(_) => networks.forget(place),
        }
    }
    if is_mapped {
        stock.identity.write_maps(&child)?;
    }
    rustix::io::write(&mapped_write, b"m").at(Step::MapIds, "")?;
    // While it builds its root. It starts no command before it is told to.
    let attached = match admission {
        Admission::Born => Ok(()),
        Admission::Pending => entrances.admit(child.number.as_raw()),
    };
    let made = Report::Made {
        zygote: std::process::id(),
        init: child.number.as_raw().unsigned_abs(),
        attach_errno: attached.map_or_else(|error| error.raw_os_error().unwrap_or(EIO), |()| 0),
    };
    reply
        .send(&made.encode(), &[child.handle.as_fd()])
        .at(Step::Talk, "made")?;
    match rustix::io::write(&mapped_write, b"a") {
        // One that failed while it built its root has said why.
        Ok(_) | Err(rustix::io::Errno::PIPE) => Ok(()),
        Err(errno) => Err(StepError::new(Step::ControlGroups, "", errno)),
    }
}

/// Has the kernel take sandboxes before anything else when the machine's memory
/// runs out. They inherit it: what it takes is open here already, and a sandbox
/// would have to find its own.
struct Victims(Result<Preference, String>);

struct Preference {
    file: OwnedFd,
    own: Vec<u8>,
}

impl Victims {
    fn find() -> Self {
        Self(Preference::open().map_err(|error| error.to_string()))
    }

    /// Or why the kernel chooses as for anybody.
    fn are_born(&self) -> Result<(), String> {
        let preference = self.0.as_ref().map_err(Clone::clone)?;
        match rustix::io::pwrite(&preference.file, b"1000", 0) {
            Ok(_) => Ok(()),
            Err(errno) => Err(errno.to_string()),
        }
    }

    fn are_not_born(&self) {
        if let Ok(preference) = &self.0 {
            // If it fails the zygote is taken as early as what it makes, which is told
            // as any end of a zygote.
            let _set_back = rustix::io::pwrite(&preference.file, &preference.own, 0);
        }
    }
}

impl Preference {
    fn open() -> io::Result<Self> {
        let path = "/proc/self/oom_score_adj";
        let own = std::fs::read(path)?;
        // The file of a process that is not dumpable belongs to root.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty());
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(Self { file: file?, own })
    }
}

/// The namespaces of a command, and what they are worth in its report.
fn namespaces(spec: &Surroundings) -> (CloneFlags, Confined) {
    let mut flags = CloneFlags::empty();
    let mut confined = Confined::default();
    for (mechanism, flag) in [
        (Mechanism::UserNamespace, CloneFlags::CLONE_NEWUSER),
        (Mechanism::MountNamespace, CloneFlags::CLONE_NEWNS),
        (Mechanism::PidNamespace, CloneFlags::CLONE_NEWPID),
        (Mechanism::NetworkNamespace, CloneFlags::CLONE_NEWNET),
        (Mechanism::IpcNamespace, CloneFlags::CLONE_NEWIPC),
        (Mechanism::UtsNamespace, CloneFlags::CLONE_NEWUTS),
    ] {
        let faulty = mechanism == Mechanism::NetworkNamespace && spec.faults.network;
        if !faulty && !spec.without.contains(mechanism) {
            flags |= flag;
            confined.by.insert(mechanism);
        }
    }
    (flags, confined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_asked_a_zygote_that_cannot_be_made_hear_why_and_later_ones_find_it_closed() {
        let (spawner, zygote) = Channel::pair().unwrap();
        let asked: Vec<_> = (0..3)
            .map(|_| {
                let (ours, theirs) = Channel::pair().unwrap();
                spawner.send(b"request", &[theirs.as_fd()]).unwrap();
                ours
            })
            .collect();
        let why = StepError::new(Step::ViewSource, "/work", io::ErrorKind::NotFound);
        let expected = Report::Failed(why.clone()).encode();
        refuse(&zygote, why);
        for ours in asked {
            assert!(matches!(ours.receive(), Ok(Received::Frame(frame, _)) if frame == expected));
            assert!(matches!(ours.receive(), Ok(Received::Closed)));
        }
        let late = spawner.send(b"late", &[]).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_zygote_that_nobody_asks_any_more_waits_for_nobody() {
        let (spawner, zygote) = Channel::pair().unwrap();
        drop(spawner);
        refuse(
            &zygote,
            StepError::new(Step::ViewSource, "/work", io::ErrorKind::NotFound),
        );
    }
}
