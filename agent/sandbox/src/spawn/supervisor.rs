//! The spawner process: one for each agent, single-threaded, started again
//! from the program itself.
//!
//! It stays outside of every sandbox and reads nothing a command says. It
//! keeps a zygote for each identity and set of places, and hands requests on to it;
//! what these have in common is its own ([`super::ground`]). It waits for nothing that
//! opens a view: a file system that does not answer holds up who asked for it. When the
//! agent goes away its socket closes and the spawner ends; when the spawner
//! ends the kernel kills the zygotes, and with them every sandbox.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sched::CloneFlags;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Signal, pidfd_send_signal};

use super::channel::{Channel, Received};
use super::ground::Ground;
use super::spec::{Places, Report, Surroundings};
use super::{stage, zygote};
use crate::cgroup::{Entrances, GroupLimits, History, Keeper};
use crate::identity::Identity;
use crate::mechanism::Mechanism;
use crate::step::{AtStep, CLOSE_RANGE, Step, StepError};
use crate::sys::{self, Cloned, Cloneling};

/// The list of the machine's mounts.
const MOUNTS: &str = "/proc/self/mountinfo";
/// Zygotes kept at once; the one that was not used for longest gives way.
const ZYGOTES_MAX: usize = 8;
/// Processes that open views at once: those held up by a file system stay.
const PASSING_MAX: usize = 32;
/// How long a zygote may take no request once as many wait as its socket holds.
const ZYGOTE_PATIENCE: Duration = Duration::from_secs(2);
/// How long after a request what was let go waits for the next one.
const BUSY: Duration = Duration::from_millis(5);
/// How long the last groups may take to be empty once everything was killed.
const GROUPS_PATIENCE: Duration = Duration::from_secs(2);

/// How often, and how long each time, what was killed at the end is waited for: the first
/// process of a container that is no init would keep each of them as a dead one.
const REAPED_TRIES_MAX: u32 = 100;
const REAPED_WITHIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// What a spawner leaves out of the isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Nothing, whoever asks.
    Nothing,
    /// What the request says: for tests.
    WhatIsAsked,
}

/// The spawner's whole life; the result is its exit code.
pub(crate) fn run(control: OwnedFd, leaving: Leaving) -> i32 {
    // Whoever started the agent may have left descriptors open in it.
    if let Err(error) = sys::close_all_but(&[control.as_fd()]).at(Step::Fork, CLOSE_RANGE) {
        zygote::refuse(&Channel::new(control), error);
        return 1;
    }
    // What a zygote that was killed leaves behind comes here, to be reaped. Without it, that
    // is for the first process of the machine or the container.
    let _here = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    // Where something may be left out there is something to close: the machine's root, as
    // a careless program would have it open.
    let careless = match leaving {
        Leaving::Nothing => None,
        Leaving::WhatIsAsked => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            rustix::fs::open("/", flags, Mode::empty()).ok()
        }
    };
    let mut spawner = Spawner {
        leaving,
        _careless: careless,
        control: Channel::new(control),
        ground: None,
        zygotes: Vec::new(),
        groups: Keeper::default(),
        is_busy: false,
        likely: None,
        chosen: None,
        passing: Vec::new(),
        mounts: rustix::fs::open(MOUNTS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()),
    };
    let served = spawner.serve();
    spawner.finish();
    match served {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

struct Spawner {
    leaving: Leaving,
    /// What survives exec, for tests.
    _careless: Option<OwnedFd>,
    control: Channel,
    /// What the zygotes have in common, once there was one.
    ground: Option<Ground>,
    zygotes: Vec<Zygote>,
    groups: Keeper,
    /// Somebody asked just now, and may ask again: what was let go is looked at
    /// then. To be woken for each of it would cost more than to look.
    is_busy: bool,
    /// The groups the next command will probably want.
    likely: Option<(GroupLimits, History)>,
    /// The identity chosen last, for this owner and group: what it depends on
    /// besides cannot change while this process lives.
    chosen: Option<((u32, u32), Identity)>,
    /// Processes that end by themselves: those that open views.
    passing: Vec<Cloneling>,
    /// Tells when the machine's mounts have changed. Without it sandboxes would show
    /// what was mounted once, so none is made.
    mounts: rustix::io::Result<OwnedFd>,
}

/// A process that lives where sandboxes are cloned from.
struct Zygote {
    identity: Identity,
    places: Places,
    /// Known by its descriptor: its number is free once it was reaped.
    process: Cloneling,
    /// Whether it is in the machine's network, for tests.
    shares_network: bool,
    control: Channel,
}

impl Zygote {
    /// Whether sandboxes like this are cloned from it. One that serves those with
    /// a network of their own does not stay in the machine's.
    fn is_for(&self, identity: &Identity, spec: &Surroundings) -> bool {
        let has_them = self.places == spec.places
            || spec.faults.others_views && self.places.contain(&spec.places);
        self.identity == *identity && has_them && self.shares_network == spec.shares_network()
    }
}

impl Spawner {
    /// Serves until the agent is gone.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            if self.wait()? {
                // What the old zygotes see is not the machine any more. They
                // stay for what runs already.
                self.zygotes.clear();
            }
            match self.control.receive_now()? {
                Received::Frame(frame, descriptors) => {
                    let Some(reply) = descriptors.into_iter().next() else {
                        continue;
                    };
                    self.answer(&frame, Channel::new(reply));
                    self.is_busy = true;
                }
                Received::Nothing => match self.likely.take() {
                    Some((limits, wanted)) => self.groups.prepare(&limits, wanted),
                    None => self.is_busy = false,
                },
                Received::Closed => return Ok(()),
            }
            if !self.is_busy {
                self.groups.tidy();
            }
            self.reap();
        }
    }

    /// Waits for a request, and says whether mounts changed meanwhile.
    fn wait(&self) -> io::Result<bool> {
        let mut wanted = vec![PollFd::from_borrowed_fd(
            self.control.as_fd(),
            PollFlags::IN,
        )];
        if let Ok(mounts) = &self.mounts {
            wanted.push(PollFd::new(mounts, PollFlags::PRI));
        }
        for process in &self.passing {
            wanted.push(PollFd::new(&process.handle, PollFlags::IN));
        }
        if !self.is_busy {
            wanted.extend(self.groups.sources());
        }
        // What is likely is prepared only when nobody waits.
        let patience = match self.likely {
            Some(_) => Some(Duration::ZERO),
            None => [self.groups.patience(), self.is_busy.then_some(BUSY)]
                .into_iter()
                .flatten()
                .min(),
        };
        let patience = patience.map(|patience| Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        });
        match poll(&mut wanted, patience.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(self.mounts.is_ok()
            && wanted
                .get(1)
                .is_some_and(|fd| fd.revents().contains(PollFlags::PRI)))
    }

    /// Has a sandbox made; what fails is told to whoever asked for it.
    fn answer(&mut self, frame: &[u8], reply: Channel) {
        if let Err(error) = self.make(frame, &reply) {
            // If the agent does not want to hear it any more, nobody does.
            let _told = reply.send(&Report::Failed(error).encode(), &[]);
        }
    }

    fn make(&mut self, frame: &[u8], reply: &Channel) -> Result<(), StepError> {
        let spec = Surroundings::decode(frame).map_err(|_| {
            StepError::new(Step::ReadRequest, "", io::Error::other("garbled request"))
        })?;
        if self.leaving == Leaving::Nothing && spec.leaves_out() {
            return Err(StepError::new(
                Step::ReadRequest,
                spec.without.to_string(),
                io::Error::other("this spawner leaves nothing out"),
            ));
        }
        if let Err(errno) = &self.mounts {
            return Err(StepError::new(Step::PrivateRoot, MOUNTS, *errno));
        }
        let (owner, group) = spec
            .places
            .views
            .first()
            .map_or((0, 0), |view| (view.whose.owner, view.whose.group));
        let identity = match &self.chosen {
            Some((of, identity)) if *of == (owner, group) => identity.clone(),
            _ => Identity::choose(owner, group)?.served_by_caller()?,
        };
        self.chosen = Some(((owner, group), identity.clone()));
        let Self {
            ground,
            zygotes,
            groups,
            likely,
            passing,
            ..
        } = self;
        let entrances = hand_out(groups, likely, &spec, reply)?;
        // Before the frame: how many of the descriptors lead into groups.
        let counts = entrances.map_or([0; 3], Entrances::counts);
        let frame = [&counts, frame].concat();
        let mut descriptors = vec![reply.as_fd()];
        descriptors.extend(entrances.into_iter().flat_map(Entrances::descriptors));
        let ground = match ground {
            Some(ground) => ground,
            None => ground.insert(dumpable(|| Ground::make(&identity))?),
        };
        let user = ground.user().try_clone_to_owned().at(Step::Fork, "user")?;
        if let Some(common) = spec.network.common.filter(|_| !spec.shares_network()) {
            // Without it the command has a loopback of its own.
            descriptors.extend(ground.network(common).ok());
        }
        let mut again = true;
        loop {
            match zygote(zygotes, passing, user.as_fd(), &identity, &spec)?
                .control
                .send(&frame, &descriptors)
            {
                Ok(()) => return Ok(()),
                // It is gone; a new one gets one try.
                Err(error) if again && error.kind() == io::ErrorKind::BrokenPipe => {
                    again = false;
                    zygotes.retain(|zygote| !zygote.is_for(&identity, &spec));
                }
                Err(error) => return Err(StepError::new(Step::Talk, "zygote", error)),
            }
        }
    }

    /// Takes notice of processes that ended.
    fn reap(&mut self) {
        while matches!(
            waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)),
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
        ) {}
        self.passing
            .retain(|process| matches!(process.has_ended(), Ok(false)));
    }

    /// Kills whatever still runs, and removes the groups.
    fn finish(self) {
        for zygote in &self.zygotes {
            // Its end is the end of every sandbox it made.
            let _killed = pidfd_send_signal(&zygote.process.handle, Signal::KILL);
        }
        self.groups.finish(GROUPS_PATIENCE);
        reap_all();
    }
}

/// Reaps what was killed, and what that leaves behind. Who waits for a file system that does
/// not answer is left to others.
fn reap_all() {
    let mut tries = 0;
    while tries < REAPED_TRIES_MAX {
        match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => {
                tries += 1;
                let _slept = poll(&mut [], Some(&REAPED_WITHIN));
            }
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Has groups for a sandbox, tells the agent, and returns the ways in.
fn hand_out<'a>(
    groups: &'a mut Keeper,
    likely: &mut Option<(GroupLimits, History)>,
    spec: &Surroundings,
    reply: &Channel,
) -> Result<Option<&'a Entrances>, StepError> {
    let limits = spec.limits.of_group();
    if spec.without.contains(Mechanism::ControlGroups) || !limits.is_asked() {
        let report = Report::Ungrouped.encode();
        reply.send(&report, &[]).at(Step::Talk, "groups")?;
        return Ok(None);
    }
    let wanted = if spec.recycled {
        History::AsNew
    } else {
        History::New
    };
    // What was let go may be as new by now.
    groups.tidy();
    let spares = groups.spares(&limits, wanted);
    *likely = (spares < 2).then_some((limits, wanted));
    let (report, handed) = match groups.hand_out(&limits, wanted) {
        Ok(handed) => {
            let told = (handed.limited, handed.outlook.tallies.bits());
            (Report::Grouped(Ok(told)), Some(handed))
        }
        Err(why) => (Report::Grouped(Err(why)), None),
    };
    let mut descriptors = Vec::new();
    if let Some(handed) = &handed {
        descriptors.push(handed.hold.as_fd());
        descriptors.extend(handed.outlook.descriptors());
    }
    reply
        .send(&report.encode(), &descriptors)
        .at(Step::Talk, "groups")?;
    Ok(handed.map(|handed| handed.entrances))
}

/// The zygote for this identity and these places.
fn zygote<'a>(
    zygotes: &'a mut Vec<Zygote>,
    passing: &mut Vec<Cloneling>,
    user: BorrowedFd<'_>,
    identity: &Identity,
    spec: &Surroundings,
) -> Result<&'a Zygote, StepError> {
    let known = zygotes
        .iter()
        .rposition(|zygote| zygote.is_for(identity, spec));
    // The last used is the last.
    let zygote = match known {
        Some(place) => zygotes.remove(place),
        None => {
            if zygotes.len() >= ZYGOTES_MAX {
                zygotes.remove(0);
            }
            dumpable(|| start(passing, user, identity, spec))?
        }
    };
    Ok(zygotes.push_mut(zygote))
}

/// Does this while the map files of what it makes belong to whoever runs this program;
/// those of a process that is not dumpable belong to root.
fn dumpable<T>(make: impl FnOnce() -> Result<T, StepError>) -> Result<T, StepError> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)
        .at(Step::Identity, "dumpable")?;
    let made = make();
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .at(Step::Identity, "dumpable")?;
    made
}

fn start(
    passing: &mut Vec<Cloneling>,
    user: BorrowedFd<'_>,
    identity: &Identity,
    spec: &Surroundings,
) -> Result<Zygote, StepError> {
    let mounts = if identity.translate_owners && !spec.places.views.is_empty() {
        if passing.len() >= PASSING_MAX {
            let why = format!("{PASSING_MAX} others wait for file systems that do not answer");
            return Err(StepError::new(Step::StageViews, "", io::Error::other(why)));
        }
        let stage = stage::start(identity, &spec.places)?;
        passing.push(stage.process);
        Some(stage.mounts)
    } else {
        None
    };
    let (ours, theirs) = Channel::pair().at(Step::Fork, "zygote")?;
    ours.give_up_sending_after(ZYGOTE_PATIENCE)
        .at(Step::Fork, "zygote")?;
    let user = user.try_clone_to_owned().at(Step::Fork, "user")?;
    let child = match sys::fork_into(CloneFlags::empty()).at(Step::Fork, "zygote")? {
        Cloned::Child => zygote::run(zygote::Start {
            identity: identity.clone(),
            places: spec.places.clone(),
            mounts,
            control: theirs,
            user,
        }),
        Cloned::Parent(child) => child,
    };
    drop((theirs, mounts));
    // It is not waited for: one whose views lie on a file system that hangs must
    // hold up nobody but who asked for them. What fails it tells them itself.
    Ok(Zygote {
        identity: identity.clone(),
        places: spec.places.clone(),
        process: child,
        shares_network: spec.shares_network(),
        control: ours,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::MechanismSet;
    use crate::spawn::spec::LimitSpec;

    fn request() -> Surroundings {
        Surroundings {
            places: Places::default(),
            limits: LimitSpec {
                processes: 1,
                open_files: 1,
                file_bytes: 1,
                data_bytes: 0,
                view_bytes: 1,
                view_inodes: 1,
                tmp_bytes: 1,
                memory_bytes: 0,
                cpu_percent: 0,
            },
            network: Default::default(),
            faults: Default::default(),
            recycled: true,
            copies: Default::default(),
            without: MechanismSet::NONE,
        }
    }

    /// What an agent's own spawner that cannot tell when mounts change says to this, and
    /// that it made nothing.
    fn refusal(request: &Surroundings) -> StepError {
        let (control, _agent) = Channel::pair().unwrap();
        let mut spawner = Spawner {
            leaving: Leaving::Nothing,
            _careless: None,
            control,
            ground: None,
            zygotes: Vec::new(),
            groups: Keeper::default(),
            is_busy: false,
            likely: None,
            chosen: None,
            passing: Vec::new(),
            mounts: Err(rustix::io::Errno::ACCESS),
        };
        let (ours, theirs) = Channel::pair().unwrap();
        spawner.answer(&request.encode(), theirs);
        let Ok(Received::Frame(frame, _)) = ours.receive() else {
            panic!("nothing was said");
        };
        let Ok(Report::Failed(error)) = Report::decode(&frame) else {
            panic!("it did not fail");
        };
        assert!(spawner.zygotes.is_empty());
        error
    }

    #[test]
    fn a_spawner_that_cannot_tell_when_mounts_change_makes_no_sandbox_and_says_why() {
        let error = refusal(&request());
        assert_eq!(error.step(), Step::PrivateRoot);
        assert_eq!(error.errno(), rustix::io::Errno::ACCESS.raw_os_error());
        assert!(error.to_string().contains(MOUNTS), "{error}");
    }

    #[test]
    fn an_agents_own_spawner_leaves_nothing_out_however_it_is_asked() {
        let mut asked: Vec<_> = Mechanism::ALL
            .map(|mechanism| Surroundings {
                without: MechanismSet::of([mechanism]),
                ..request()
            })
            .into();
        let leave: [fn(&mut Places); 3] = [
            |places| places.faults.all_watches = true,
            |places| places.faults.machine_root = true,
            |places| places.faults.open_descriptors = true,
        ];
        for leave in leave {
            let mut one = request();
            leave(&mut one.places);
            asked.push(one);
        }
        for request in asked {
            let error = refusal(&request);
            assert_eq!(error.step(), Step::ReadRequest, "{request:?}");
            assert!(error.to_string().contains("leaves nothing out"), "{error}");
        }
    }

    #[test]
    fn a_zygote_serves_its_own_ids_and_places_and_the_networks_it_is_for() {
        let own = Identity::choose(0, 0).unwrap();
        let pid = rustix::process::getpid();
        let flags = rustix::process::PidfdFlags::empty();
        let zygote = Zygote {
            identity: own.clone(),
            places: Places::default(),
            process: Cloneling {
                number: Pid::this(),
                handle: rustix::process::pidfd_open(pid, flags).unwrap(),
            },
            shares_network: false,
            control: Channel::pair().unwrap().0,
        };
        assert!(zygote.is_for(&own, &request()));
        let mut others = own.clone();
        others.user += 1;
        assert!(!zygote.is_for(&others, &request()));
        let mut elsewhere = request();
        elsewhere.places.private_dirs.push(b"/srv".to_vec());
        assert!(!zygote.is_for(&own, &elsewhere));
        let mut outside = request();
        outside.without = MechanismSet::of([Mechanism::NetworkNamespace]);
        assert!(!zygote.is_for(&own, &outside));
    }
}
