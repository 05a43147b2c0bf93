//! What the agent asks of its spawner, and what comes back.

mod report;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Withheld;

pub(crate) use self::report::{Ending, Report, UsageSpec};
use super::Copies;
use crate::cgroup::GroupLimits;
use crate::mechanism::{Mechanism, MechanismSet};
use crate::net::{Common, Proxied};
use crate::whose::Whose;
use crate::wire::{Reader, WireError, Writer};

/// A directory the command sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewSpec {
    /// Where it lies outside.
    pub source: Vec<u8>,
    /// Which directory it must still be when mounted. Its owner becomes the
    /// command's user when root starts it, and the view's root gets its mode.
    pub whose: Whose,
    /// Where the command sees it.
    pub at: Vec<u8>,
    /// Whether writes are kept in an upper layer (else they are refused).
    pub copy_on_write: bool,
    /// Whether nothing can be written where it lies, so that keeping it is of no use.
    pub read_only: bool,
    /// What of it is not shown.
    pub withheld: Withheld,
}

/// A file of a few lines that every sandbox shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownFile {
    /// The absolute place it is at.
    pub at: Vec<u8>,
    /// What is in it.
    pub text: Vec<u8>,
}

/// A directory on disk for the layers of views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreSpec {
    /// Where it lies outside.
    pub source: Vec<u8>,
    /// Which directory it must still be when mounted.
    pub whose: Whose,
    /// Whether it is used where a file system in memory would do as well.
    pub always: bool,
}

/// Ceilings for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitSpec {
    pub processes: u64,
    pub open_files: u64,
    pub file_bytes: u64,
    /// 0 means no ceiling.
    pub data_bytes: u64,
    pub view_bytes: u64,
    pub view_inodes: u64,
    pub tmp_bytes: u64,
    /// Of the command as a whole; 0 means no ceiling.
    pub memory_bytes: u64,
    /// Of the command as a whole, of one processor; 0 means no ceiling.
    pub cpu_percent: u32,
}

impl LimitSpec {
    /// What control groups are to hold.
    pub(crate) const fn of_group(&self) -> GroupLimits {
        GroupLimits {
            memory_bytes: self.memory_bytes,
            cpu_percent: self.cpu_percent,
            // The sandbox's first process is inside as well.
            processes: self.processes.saturating_add(1),
        }
    }
}

/// Isolation left out on purpose, to see whether the oracle notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaultSpec {
    pub network: bool,
    pub orphans: bool,
    /// What was brought for other commands of the zygote is shown as well.
    pub others_views: bool,
}

/// The same, of what the sandboxes of one zygote share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceFaults {
    /// The homes of the machine are shown.
    pub home: bool,
    /// The root can be written.
    pub open_root: bool,
    /// /tmp is part of it.
    pub shared_tmp: bool,
    /// They have all watches on files of their user.
    pub all_watches: bool,
    /// The machine's root is shown in place of one of their own.
    pub machine_root: bool,
    /// What the spawner has open is not closed.
    pub open_descriptors: bool,
}

/// What of the network a command has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetSpec {
    /// It may listen and connect on a loopback.
    pub loopback: bool,
    /// With whom that is shared, if it is not its own.
    pub common: Option<Common>,
    /// A socket that listens inside is handed out, to be answered outside.
    pub proxy: bool,
}

impl NetSpec {
    /// Whether it needs sockets of the internet.
    pub(crate) const fn is_some(self) -> bool {
        self.loopback || self.proxy
    }
}

/// What of its surroundings the sandboxes of one zygote share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub views: Vec<ViewSpec>,
    /// Where the layers of views may lie besides memory.
    pub store: Option<StoreSpec>,
    pub private_dirs: Vec<Vec<u8>>,
    /// Files that are shown besides.
    pub shown: Vec<ShownFile>,
    pub faults: PlaceFaults,
}

impl Places {
    /// Whether one of them lies below /var/tmp, which else is /tmp by another name.
    pub(crate) fn use_var_tmp(&self) -> bool {
        let views = self.views.iter().map(|view| &view.at);
        let mut all = views.chain(&self.private_dirs);
        all.any(|at| Path::new(OsStr::from_bytes(at)).starts_with("/var/tmp"))
    }

    /// The files that are shown and that no directory will lie over.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        let is_below = |path: &Path, place: &[u8]| path.starts_with(OsStr::from_bytes(place));
        let files = self.shown.iter();
        let files = files.map(|file| (Path::new(OsStr::from_bytes(&file.at)), &*file.text));
        files.filter(move |(path, _)| {
            !self.views.iter().any(|view| is_below(path, &view.at))
                && !self.private_dirs.iter().any(|dir| is_below(path, dir))
        })
    }

    /// Whether rules withhold something of a view. What that is changes with every
    /// file that is made, so it is looked for when the command is known.
    pub(crate) fn withhold(&self) -> bool {
        self.views.iter().any(|view| !view.withheld.is_empty())
    }

    /// Whether they have all that these have.
    pub(crate) fn contain(&self, less: &Self) -> bool {
        less.views.iter().all(|view| self.views.contains(view))
            && self.store == less.store
            && self.private_dirs == less.private_dirs
            && self.shown == less.shown
            && self.faults == less.faults
    }
}

/// What a command is surrounded by: everything that is prepared before the
/// command itself is known. Equal surroundings have equal encodings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pub places: Places,
    pub limits: LimitSpec,
    pub network: NetSpec,
    pub faults: FaultSpec,
    /// Whether an empty network and control groups that served another sandbox
    /// are good enough.
    pub recycled: bool,
    /// Which views are copied.
    pub copies: Copies,
    /// Mechanisms left out on purpose. A spawner honours it only when it was
    /// started by a program made for that, see [`crate::spawner`].
    pub without: MechanismSet,
}

impl Surroundings {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.list(&self.places.views, |w, view| {
            w.bytes(&view.source);
            write_whose(w, &view.whose);
            w.bytes(&view.at);
            w.u8(u8::from(view.copy_on_write));
            w.u8(u8::from(view.read_only));
            w.list(&view.withheld.places, |w, place| w.bytes(place.as_bytes()));
            w.list(&view.withheld.names, |w, name| w.bytes(name.as_bytes()));
        });
        let store: Vec<_> = self.places.store.iter().collect();
        w.list(&store, |w, store| {
            w.bytes(&store.source);
            write_whose(w, &store.whose);
            w.u8(u8::from(store.always));
        });
        w.list(&self.places.private_dirs, |w, item| w.bytes(item));
        w.list(&self.places.shown, |w, file| {
            w.bytes(&file.at);
            w.bytes(&file.text);
        });
        let faults = self.places.faults;
        for fault in [
            faults.home,
            faults.open_root,
            faults.shared_tmp,
            faults.all_watches,
            faults.machine_root,
            faults.open_descriptors,
        ] {
            w.u8(u8::from(fault));
        }
        for value in [
            self.limits.processes,
            self.limits.open_files,
            self.limits.file_bytes,
            self.limits.data_bytes,
            self.limits.view_bytes,
            self.limits.view_inodes,
            self.limits.tmp_bytes,
            self.limits.memory_bytes,
        ] {
            w.u64(value);
        }
        w.u32(self.limits.cpu_percent);
        w.u8(u8::from(self.network.loopback));
        let common: Vec<_> = self.network.common.iter().collect();
        w.list(&common, |w, common| w.bytes(&common.0));
        w.u8(u8::from(self.network.proxy));
        w.u8(u8::from(self.faults.network));
        w.u8(u8::from(self.faults.orphans));
        w.u8(u8::from(self.faults.others_views));
        w.u8(u8::from(self.recycled));
        w.u8(u8::from(self.copies.all));
        w.u8(u8::from(self.copies.for_owners));
        w.u32(self.without.bits());
        w.finish()
    }

    /// Whether something is left out that only a spawner made for tests leaves out.
    pub(crate) const fn leaves_out(&self) -> bool {
        let places = self.places.faults;
        !self.without.is_empty()
            || places.all_watches
            || places.machine_root
            || places.open_descriptors
    }

    /// Whether it has no network of its own, in tests.
    pub(crate) fn shares_network(&self) -> bool {
        self.faults.network || self.without.contains(Mechanism::NetworkNamespace)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let spec = Self {
            places: Places {
                views: r.list(|r| {
                    Ok(ViewSpec {
                        source: r.bytes()?,
                        whose: read_whose(r)?,
                        at: r.bytes()?,
                        copy_on_write: flag(r)?,
                        read_only: flag(r)?,
                        withheld: Withheld {
                            places: r
                                .list(|r| RelPath::parse_dir(&r.bytes()?).map_err(|_| WireError))?,
                            names: r
                                .list(|r| String::from_utf8(r.bytes()?).map_err(|_| WireError))?,
                        },
                    })
                })?,
                store: r
                    .list(|r| {
                        Ok(StoreSpec {
                            source: r.bytes()?,
                            whose: read_whose(r)?,
                            always: flag(r)?,
                        })
                    })?
                    .pop(),
                private_dirs: r.list(Reader::bytes)?,
                shown: r.list(|r| {
                    Ok(ShownFile {
                        at: r.bytes()?,
                        text: r.bytes()?,
                    })
                })?,
                faults: PlaceFaults {
                    home: flag(&mut r)?,
                    open_root: flag(&mut r)?,
                    shared_tmp: flag(&mut r)?,
                    all_watches: flag(&mut r)?,
                    machine_root: flag(&mut r)?,
                    open_descriptors: flag(&mut r)?,
                },
            },
            limits: LimitSpec {
                processes: r.u64()?,
                open_files: r.u64()?,
                file_bytes: r.u64()?,
                data_bytes: r.u64()?,
                view_bytes: r.u64()?,
                view_inodes: r.u64()?,
                tmp_bytes: r.u64()?,
                memory_bytes: r.u64()?,
                cpu_percent: r.u32()?,
            },
            network: NetSpec {
                loopback: flag(&mut r)?,
                common: r
                    .list(|r| {
                        let bytes = r.bytes()?.try_into().map_err(|_| WireError)?;
                        Ok(Common(bytes))
                    })?
                    .pop(),
                proxy: flag(&mut r)?,
            },
            faults: FaultSpec {
                network: flag(&mut r)?,
                orphans: flag(&mut r)?,
                others_views: flag(&mut r)?,
            },
            recycled: flag(&mut r)?,
            copies: Copies {
                all: flag(&mut r)?,
                for_owners: flag(&mut r)?,
            },
            without: MechanismSet::from_bits(r.u32()?).ok_or(WireError)?,
        };
        r.finish()?;
        Ok(spec)
    }
}

/// The command itself, which the waiting process turns into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub argv: Vec<Vec<u8>>,
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    pub cwd: Vec<u8>,
    pub inputs: Vec<(Vec<u8>, Vec<u8>)>,
    pub merge_stderr: bool,
    /// Whether its input is the terminal that is to control it.
    pub on_terminal: bool,
    /// Whether it is an interpreter that waits for its script, whose two
    /// descriptors come after the standard streams.
    pub interpreter: bool,
    /// What its variables say of the proxy, besides those above.
    pub proxied: Proxied,
}

impl Program {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.list(&self.argv, |w, item| w.bytes(item));
        w.list(&self.env, write_pair);
        w.bytes(&self.cwd);
        w.list(&self.inputs, write_pair);
        w.u8(u8::from(self.merge_stderr));
        w.u8(u8::from(self.on_terminal));
        w.u8(u8::from(self.interpreter));
        w.u8(self.proxied as u8);
        w.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let program = Self {
            argv: r.list(Reader::bytes)?,
            env: r.list(read_pair)?,
            cwd: r.bytes()?,
            inputs: r.list(read_pair)?,
            merge_stderr: flag(&mut r)?,
            on_terminal: flag(&mut r)?,
            interpreter: flag(&mut r)?,
            proxied: proxied(&mut r)?,
        };
        r.finish()?;
        Ok(program)
    }
}

fn write_whose(w: &mut Writer, whose: &Whose) {
    w.u64(whose.device);
    w.u64(whose.inode);
    w.u64(whose.born);
    w.u32(whose.owner);
    w.u32(whose.group);
    w.u32(whose.mode);
}

fn read_whose(r: &mut Reader<'_>) -> Result<Whose, WireError> {
    Ok(Whose {
        device: r.u64()?,
        inode: r.u64()?,
        born: r.u64()?,
        owner: r.u32()?,
        group: r.u32()?,
        mode: r.u32()?,
    })
}

fn write_pair(w: &mut Writer, (first, second): &(Vec<u8>, Vec<u8>)) {
    w.bytes(first);
    w.bytes(second);
}

fn read_pair(r: &mut Reader<'_>) -> Result<(Vec<u8>, Vec<u8>), WireError> {
    Ok((r.bytes()?, r.bytes()?))
}

fn proxied(r: &mut Reader<'_>) -> Result<Proxied, WireError> {
    let code = r.u8()?;
    let mut all = Proxied::ALL.into_iter();
    all.find(|proxied| *proxied as u8 == code).ok_or(WireError)
}

fn flag(r: &mut Reader<'_>) -> Result<bool, WireError> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WireError),
    }
}

/// What the first process of a sandbox is told while its command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Everything the command started is asked to end.
    Terminate,
    /// The command's own process is told that its terminal went away.
    HangUp,
    /// It is to go on, if it was stopped.
    GoOn,
    /// It is interrupted.
    Interrupt,
    /// What is left when it has ended is not waited for any more.
    Clear,
}

impl Wish {
    const ALL: [Self; 5] = [
        Self::Terminate,
        Self::HangUp,
        Self::GoOn,
        Self::Interrupt,
        Self::Clear,
    ];

    pub(crate) fn encode(self) -> Vec<u8> {
        vec![self as u8]
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut wishes = Self::ALL.into_iter();
        wishes.find(|wish| bytes == [*wish as u8]).ok_or(WireError)
    }
}
