//! Whose ids the command runs with.
//!
//! An ordinary user keeps the own id: a user namespace with a single line of
//! map. Root gets a range of high ids that exist nowhere on the machine, so
//! that the kernel never sees the command as uid 0: files below /proc/sys and
//! /proc/sysrq-trigger are guarded by the real uid and by nothing else.

use std::fmt::Write as _;
use std::fs;
use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::thread::CapabilitySet;

use crate::step::{AtStep, Step, StepError};
use crate::sys::Cloneling;

/// The first kernel id of the range root's commands live in.
const RANGE_FIRST: u32 = 0x7000_0000;
/// How many ids the range has.
const RANGE_COUNT: u32 = 0x1_0000;

/// One line of an id map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    inner: u32,
    outer: u32,
    count: u32,
}

/// The maps of the sandbox's user namespace and the ids taken in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    users: Vec<Extent>,
    groups: Vec<Extent>,
    /// An ordinary user must give up setgroups(2) to write a group map.
    deny_setgroups: bool,
    /// Whether views get their owners translated (root only).
    pub translate_owners: bool,
    /// The command's user id inside.
    pub user: u32,
    /// The command's group id inside.
    pub group: u32,
}

impl Identity {
    /// Chooses for the calling process and a workspace of this owner.
    pub(crate) fn choose(owner: u32, group: u32) -> Result<Self, StepError> {
        let own_user = rustix::process::geteuid().as_raw();
        let own_group = rustix::process::getegid().as_raw();
        if own_user != 0 {
            not_machines_root(own_user)?;
            return Ok(Self {
                users: vec![single(own_user, own_user)],
                groups: vec![single(own_group, own_group)],
                deny_setgroups: true,
                translate_owners: false,
                user: own_user,
                group: own_group,
            });
        }
        let users = outer_ids("/proc/self/uid_map")?;
        let groups = outer_ids("/proc/self/gid_map")?;
        if users.contains_range() && groups.contains_range() {
            return Ok(Self {
                users: range_with(owner),
                groups: range_with(group),
                deny_setgroups: false,
                translate_owners: true,
                user: owner,
                group,
            });
        }
        // Root of some container: any id but root's own will do.
        let user = users.highest().at(Step::Identity, "/proc/self/uid_map")?;
        let group = groups.highest().at(Step::Identity, "/proc/self/gid_map")?;
        not_machines_root(user)?;
        // Made by an ordinary user, it has that user's id alone and no way to change
        // groups: root of it is an ordinary user to the machine, and to us.
        let is_ordinary = user == 0 && group == 0 && gives_up_groups();
        Ok(Self {
            users: vec![single(0, user)],
            groups: vec![single(0, group)],
            deny_setgroups: is_ordinary,
            // Ids that are the agent's own see its files as they are.
            translate_owners: user != 0 || group != 0,
            user: 0,
            group: 0,
        })
    }

    /// The same, if the calling process can also prepare what commands with these ids are
    /// shown. Else it would be told of the first directory that it cannot be used.
    pub(crate) fn served_by_caller(self) -> Result<Self, StepError> {
        if !self.translate_owners || may_mount() {
            return Ok(self);
        }
        let why = io::Error::other("root without CAP_SYS_ADMIN, or with `no_new_privs` set");
        Err(StepError::new(Step::Identity, "", why))
    }

    /// The same ids under their outer numbers: for the zygotes, whose namespace
    /// lies between the machine's and those of the commands. Whoever owns the workspace,
    /// the maps are the same, because all zygotes are in one.
    pub(crate) fn outer(&self) -> Self {
        let same = |extents: &[Extent]| match extents {
            // With the place of an owner above the range, whether there is one or not.
            [range, ..] if range.outer == RANGE_FIRST => vec![Extent {
                inner: RANGE_FIRST,
                outer: RANGE_FIRST,
                count: RANGE_COUNT.saturating_add(1),
            }],
            _ => {
                let same = |extent: &Extent| single(extent.outer, extent.outer);
                extents.iter().map(same).collect()
            }
        };
        Self {
            users: same(&self.users),
            groups: same(&self.groups),
            user: outer_id(&self.users, self.user),
            group: outer_id(&self.groups, self.group),
            ..self.clone()
        }
    }

    /// Whose a file of this user is to a command, if anybody's: by what id outside a
    /// mount with these maps would have it written.
    pub(crate) fn user_outside(&self, user: u32) -> Option<u32> {
        mapped(&self.users, user)
    }

    /// The same of a group.
    pub(crate) fn group_outside(&self, group: u32) -> Option<u32> {
        mapped(&self.groups, group)
    }

    /// The id a command knows for this user outside, if it has one.
    pub(crate) fn user_inside(&self, user: u32) -> Option<u32> {
        mapped(&turned(&self.users), user)
    }

    /// The same of a group.
    pub(crate) fn group_inside(&self, group: u32) -> Option<u32> {
        mapped(&turned(&self.groups), group)
    }

    /// Writes the maps of a process in a new user namespace.
    pub(crate) fn write_maps(&self, child: &Cloneling) -> Result<(), StepError> {
        own_proc()?;
        let path = format!("/proc/{}", child.number);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty()).at(Step::MapIds, path.clone())?;
        // Its number can be another's as soon as it has ended. Alive, the place
        // just opened is its own, and stays so.
        if child.has_ended().at(Step::MapIds, path.clone())? {
            let gone = io::Error::from_raw_os_error(nix::libc::ESRCH);
            return Err(StepError::new(Step::MapIds, path, gone));
        }
        let write = |file: &str, text: &str| {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&dir, file, flags, Mode::empty())
                .and_then(|file| rustix::io::write(&file, text.as_bytes()))
                .map(drop)
                .at(Step::MapIds, format!("{path}/{file}"))
        };
        if self.deny_setgroups {
            write("setgroups", "deny")?;
        }
        write("uid_map", &text(&self.users))?;
        write("gid_map", &text(&self.groups))
    }

    /// Whether the ids must be taken with setresuid after the maps are written.
    pub(crate) fn must_switch(&self) -> bool {
        !self.deny_setgroups
    }
}

/// What `inner` is called outside; an id without a map stays what it is, and
/// taking it fails.
fn outer_id(extents: &[Extent], inner: u32) -> u32 {
    mapped(extents, inner).unwrap_or(inner)
}

fn mapped(extents: &[Extent], inner: u32) -> Option<u32> {
    extents.iter().find_map(|extent| {
        let offset = inner.checked_sub(extent.inner)?;
        (offset < extent.count).then(|| extent.outer.saturating_add(offset))
    })
}

/// The same map, from the outside in.
fn turned(extents: &[Extent]) -> Vec<Extent> {
    let turn = |extent: &Extent| Extent {
        inner: extent.outer,
        outer: extent.inner,
        ..*extent
    };
    extents.iter().map(turn).collect()
}

/// Refuses an id that is the machine's root by another number, as a namespace may call it
/// that root made. Maps tell of one namespace only; the kernel's settings belong to that
/// root, and tell in each of them.
fn not_machines_root(id: u32) -> Result<(), StepError> {
    let is_root = match rustix::fs::stat("/proc/sys/vm") {
        Ok(settings) => settings.st_uid == id,
        Err(_) => {
            let ids = outer_ids("/proc/self/uid_map")?;
            mapped(&ids.0, id).is_none_or(|outer| outer == 0)
        }
    };
    if !is_root {
        return Ok(());
    }
    let why = format!("{id} is the machine's root by another number");
    Err(StepError::new(Step::Identity, "", io::Error::other(why)))
}

/// Whether root of the user namespace this process is in is somebody else outside of it. In
/// doubt it is root.
pub(crate) fn root_is_somebody_else() -> bool {
    outer_ids("/proc/self/uid_map").is_ok_and(|ids| mapped(&ids.0, 0).is_some_and(|id| id != 0))
}

/// Whether numbers of processes mean the same here and below `/proc`; else what lies there
/// under the number of a child is another's.
fn own_proc() -> Result<(), StepError> {
    let named = fs::read_link("/proc/self").at(Step::MapIds, "/proc/self")?;
    let own = std::process::id().to_string();
    if named.as_os_str() == own.as_str() {
        return Ok(());
    }
    let why = "`/proc` is that of another process namespace; mount this one's there, as `unshare --mount-proc` does";
    Err(StepError::new(Step::MapIds, "", io::Error::other(why)))
}

/// Whether this process can prepare mounts for others.
fn may_mount() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Whether nobody in this user namespace can change groups.
fn gives_up_groups() -> bool {
    fs::read("/proc/self/setgroups").is_ok_and(|word| word.trim_ascii() == b"deny")
}

fn single(inner: u32, outer: u32) -> Extent {
    Extent {
        inner,
        outer,
        count: 1,
    }
}

/// The whole range, and one more line when `id` lies above it.
fn range_with(id: u32) -> Vec<Extent> {
    let mut extents = vec![Extent {
        inner: 0,
        outer: RANGE_FIRST,
        count: RANGE_COUNT,
    }];
    if id >= RANGE_COUNT {
        extents.push(single(id, RANGE_FIRST.saturating_add(RANGE_COUNT)));
    }
    extents
}

fn text(extents: &[Extent]) -> String {
    let mut text = String::new();
    for extent in extents {
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{} {} {}", extent.inner, extent.outer, extent.count);
    }
    text
}

/// The ids that exist in the user namespace of this process.
struct OuterIds(Vec<Extent>);

impl OuterIds {
    fn contains_range(&self) -> bool {
        self.0.iter().any(|extent| {
            let end = u64::from(extent.inner).saturating_add(u64::from(extent.count));
            extent.inner <= RANGE_FIRST
                && end > u64::from(RANGE_FIRST).saturating_add(u64::from(RANGE_COUNT))
        })
    }

    /// The highest id that is not root's, or root's own if that is somebody
    /// else outside.
    fn highest(&self) -> io::Result<u32> {
        let highest = self
            .0
            .iter()
            .map(|extent| extent.inner.saturating_add(extent.count.saturating_sub(1)))
            .max()
            .unwrap_or(0);
        if highest != 0 {
            return Ok(highest);
        }
        match self.0.first() {
            Some(extent) if extent.outer != 0 => Ok(0),
            _ => Err(io::Error::other("the only id here is the host's root")),
        }
    }
}

fn outer_ids(path: &str) -> Result<OuterIds, StepError> {
    let text = fs::read_to_string(path).at(Step::Identity, path)?;
    let mut extents = Vec::new();
    for line in text.lines() {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(inner)), Some(Ok(outer)), Some(Ok(count))) => extents.push(Extent {
                inner,
                outer,
                count,
            }),
            _ => {
                return Err(StepError::new(
                    Step::Identity,
                    path,
                    io::Error::other("a line that is not three numbers"),
                ));
            }
        }
    }
    Ok(OuterIds(extents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_above_the_range_gets_a_line_of_its_own() {
        assert_eq!(text(&range_with(1000)), "0 1879048192 65536\n");
        assert_eq!(
            text(&range_with(1_664_000_000)),
            "0 1879048192 65536\n1664000000 1879113728 1\n"
        );
    }

    #[test]
    fn the_zygotes_ids_are_the_outer_ones() {
        let identity = Identity {
            users: range_with(1000),
            groups: range_with(1_664_000_000),
            deny_setgroups: false,
            translate_owners: true,
            user: 1000,
            group: 1_664_000_000,
        };
        let outer = identity.outer();
        assert_eq!(outer.user, RANGE_FIRST + 1000);
        assert_eq!(outer.group, RANGE_FIRST + RANGE_COUNT);
        assert_eq!(outer.outer(), outer);
        // All zygotes are in one namespace, so its maps fit whoever owns the workspace.
        assert_eq!(text(&outer.users), "1879048192 1879048192 65537\n");
        assert_eq!(text(&outer.groups), text(&outer.users));
    }

    #[test]
    fn a_single_id_is_the_zygotes_as_it_is_outside() {
        let identity = Identity {
            users: vec![single(0, 65_535)],
            groups: vec![single(0, 1000)],
            deny_setgroups: true,
            translate_owners: true,
            user: 0,
            group: 0,
        };
        let outer = identity.outer();
        assert_eq!(text(&outer.users), "65535 65535 1\n");
        assert_eq!(text(&outer.groups), "1000 1000 1\n");
        assert_eq!((outer.user, outer.group), (65_535, 1000));
    }

    #[test]
    fn files_are_given_to_ids_of_the_map_and_those_of_others_to_nobody() {
        let identity = Identity {
            users: range_with(0),
            groups: vec![single(0, 65_535)],
            deny_setgroups: false,
            translate_owners: true,
            user: 0,
            group: 0,
        };
        assert_eq!(identity.user_outside(0), Some(RANGE_FIRST));
        assert_eq!(identity.user_outside(1000), Some(RANGE_FIRST + 1000));
        assert_eq!(identity.user_outside(RANGE_COUNT), None);
        // What is written by an id of the range is not that id's by the map.
        assert_eq!(identity.user_outside(RANGE_FIRST), None);
        assert_eq!(identity.user_inside(RANGE_FIRST + 1000), Some(1000));
        assert_eq!(identity.user_inside(0), None);
        assert_eq!(identity.group_outside(0), Some(65_535));
        assert_eq!(identity.group_outside(1), None);
    }

    #[test]
    fn no_map_ever_names_the_hosts_root_as_outer_id() {
        for id in [0, 1, 1000, 65_535, 65_536, u32::MAX - 1] {
            assert!(range_with(id).iter().all(|extent| extent.outer != 0));
        }
        let only_root = OuterIds(vec![single(0, 0)]);
        assert!(only_root.highest().is_err());
        let rootless = OuterIds(vec![single(0, 1000)]);
        assert_eq!(rootless.highest().ok(), Some(0));
        let container = OuterIds(vec![Extent {
            inner: 0,
            outer: 100_000,
            count: 65_536,
        }]);
        assert_eq!(container.highest().ok(), Some(65_535));
    }
}
