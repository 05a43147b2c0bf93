//! What a transaction is about to do, as it lies on the disk.
//!
//! The form ends with the digest of everything before it. A plan that does not
//! hold its own digest is damaged. One that does, and does not decode or begins
//! otherwise, is another version's: it is refused and left, never guessed at.
//! So a kind of step may be added under the same first bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::BorrowedFd;

use hermitcrab_core::authority::{Extent, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;

use super::root::{Marks, Root};
use crate::changeset::in_place::OtherMode;
use crate::changeset::node::{Fingerprint, Meta};
use crate::digest::{digest_beginning, sha256};
use crate::dircap::Thing;
use crate::wire::{Reader, WireError, Writer};

/// The first bytes of the file.
const MAGIC: &[u8] = b"hermitcrab journal 1\n";
/// At the end of each, of all that is before it.
pub(super) const DIGEST_BYTES: usize = 32;
/// What is said of files that are no plans.
pub(super) const TOO_SHORT: &str = "it is shorter than any plan";
pub(super) const OTHER_DIGEST: &str = "it does not hold its own digest";
pub(super) const NO_PLAN: &str = "it does not decode";
pub(super) const OTHER_VERSION: &str = "it is of another version, or none at all";
/// A longer plan is none.
pub(crate) const PLAN_BYTES_MAX: usize = 256 << 20;

/// A whole transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The number it was made under.
    pub number: u64,
    /// Seconds since 1970, for people.
    pub made_at: u64,
    /// What it was, for people.
    pub note: Vec<u8>,
    /// The transaction it takes back, if that is what it does.
    pub undoes: Option<u64>,
    pub roots: Vec<Root>,
    pub ops: Vec<Op>,
    /// Every name it touches, and what it does there.
    pub touched: Vec<Touched>,
    /// How much the names held before that it replaces or removes.
    pub bytes_before: u64,
}

/// One name and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    pub root: usize,
    pub path: RelPath,
    pub verb: Verb,
}

/// One step of a transaction: names of different steps never lie below each
/// other, except that [`Act::Meta`] stands for the directory alone, that
/// [`Act::Move`] may lead into a directory that comes before it, and out of
/// one that is taken after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub root: usize,
    pub path: RelPath,
    pub act: Act,
}

/// What is done to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// What is staged comes to a free name.
    Put { staged: Staged },
    /// What is staged changes places with what is there.
    Swap { staged: Staged, before: Fingerprint },
    /// What is there comes to the staging directory.
    Take { before: Fingerprint },
    /// Mode and attributes of a directory, in place.
    Meta { before: Meta, after: Meta },
    /// What is there comes to a free name of the same directory: this thing, and, if it is
    /// said what it holds, only as long as it holds that.
    Move {
        to: RelPath,
        what: Thing,
        holds: Option<Fingerprint>,
    },
    /// Mode of a file that has no other name, in place.
    Mode(OtherMode),
}

/// A finished thing in the staging directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Staged {
    /// Its number there, by which it is told from what it changes places with.
    pub inode: u64,
    pub state: Fingerprint,
}

impl Plan {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u64(self.number);
        w.u64(self.made_at);
        w.bytes(&self.note);
        w.u64(self.undoes.unwrap_or(0));
        w.list(&self.roots, |w, root| {
            w.bytes(&root.path);
            w.u64(root.inode);
            w.bytes(root.beside.as_deref().unwrap_or_default());
        });
        w.list(&self.ops, |w, op| {
            w.u64(u64::try_from(op.root).unwrap_or(u64::MAX));
            w.bytes(op.path.as_bytes());
            put_act(w, &op.act);
        });
        w.list(&self.touched, |w, touched| {
            w.u64(u64::try_from(touched.root).unwrap_or(u64::MAX));
            w.bytes(touched.path.as_bytes());
            w.bytes(touched.verb.as_str().as_bytes());
        });
        w.u64(self.bytes_before);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(w.finish());
        let digest = sha256(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let (body, digest) = bytes.split_last_chunk::<DIGEST_BYTES>().ok_or(TOO_SHORT)?;
        if sha256(body) != Digest::from_bytes(*digest) {
            return Err(OTHER_DIGEST);
        }
        let body = body.strip_prefix(MAGIC).ok_or(OTHER_VERSION)?;
        Self::read(body).map_err(|WireError| NO_PLAN)
    }

    fn read(body: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(body);
        let Beginning {
            number,
            made_at,
            note,
            undoes,
            roots,
        } = Beginning::read(&mut r)?;
        let plan = Self {
            number,
            made_at,
            note,
            undoes,
            roots,
            ops: r.list(|r| {
                Ok(Op {
                    root: index(r)?,
                    path: path(r)?,
                    act: act(r)?,
                })
            })?,
            touched: r.list(|r| {
                Ok(Touched {
                    root: index(r)?,
                    path: path(r)?,
                    verb: std::str::from_utf8(&r.bytes()?)
                        .ok()
                        .and_then(Verb::parse)
                        .ok_or(WireError)?,
                })
            })?,
            bytes_before: r.u64()?,
        };
        r.finish()?;
        let roots = plan.roots.len();
        let inside = plan.ops.iter().all(|op| op.root < roots)
            && plan.touched.iter().all(|touched| touched.root < roots);
        if inside { Ok(plan) } else { Err(WireError) }
    }

    /// The same, with this as what is kept of these steps; `None` where that is nothing new.
    pub(super) fn keeping(&self, kept: &BTreeMap<usize, Fingerprint>) -> Option<Self> {
        let mut plan = self.clone();
        for (at, state) in kept {
            if let Some(Act::Take { before } | Act::Swap { before, .. }) =
                plan.ops.get_mut(*at).map(|op| &mut op.act)
            {
                *before = *state;
            }
        }
        (plan != *self).then_some(plan)
    }

    /// The old and the new names of directories that are moved with whatever is below them. Of
    /// what is known by what it holds each name is touched by itself.
    pub(crate) fn moved_trees(&self) -> BTreeSet<(usize, RelPath)> {
        let mut trees = BTreeSet::new();
        for op in &self.ops {
            if let Act::Move { to, what, holds } = &op.act
                && (*holds, what.extent()) == (None, Extent::Tree)
            {
                trees.extend([&op.path, to].map(|path| (op.root, path.clone())));
            }
        }
        trees
    }

    /// What the same transaction touches backwards.
    pub(crate) fn touched_backwards(&self) -> Vec<Touched> {
        self.touched
            .iter()
            .rev()
            .map(|touched| Touched {
                verb: match touched.verb {
                    Verb::FsCreate => Verb::FsDelete,
                    Verb::FsDelete => Verb::FsCreate,
                    other => other,
                },
                ..touched.clone()
            })
            .collect()
    }
}

/// Whether a file ends with the digest of all that is before it; it is not in memory whole.
pub(super) fn holds(file: BorrowedFd<'_>) -> io::Result<bool> {
    let length = rustix::fs::fstat(file)?.st_size;
    let body = u64::try_from(length).ok();
    let Some(body) = body.and_then(|length| length.checked_sub(DIGEST_BYTES as u64)) else {
        return Ok(false);
    };
    let mut kept = [0; DIGEST_BYTES];
    let got = rustix::io::pread(file, &mut kept, body)?;
    let (digest, bytes) = digest_beginning(file, body)?;
    Ok((got, bytes, digest) == (DIGEST_BYTES, body, Digest::from_bytes(kept)))
}

/// What comes before the steps.
pub(super) struct Beginning {
    pub number: u64,
    pub made_at: u64,
    pub note: Vec<u8>,
    pub undoes: Option<u64>,
    pub roots: Vec<Root>,
}

/// The beginning of a plan, of as many bytes as it takes or more.
pub(super) fn beginning(bytes: &[u8]) -> Result<Beginning, WireError> {
    let body = bytes.strip_prefix(MAGIC).ok_or(WireError)?;
    Beginning::read(&mut Reader::new(body))
}

impl Beginning {
    fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let beginning = Self {
            number: r.u64()?,
            made_at: r.u64()?,
            note: r.bytes()?,
            undoes: match r.u64()? {
                0 => None,
                number => Some(number),
            },
            roots: r.list(|r| {
                Ok(Root {
                    path: r.bytes()?,
                    inode: r.u64()?,
                    marks: Marks::default(),
                    beside: Some(r.bytes()?).filter(|name| !name.is_empty()),
                })
            })?,
        };
        let is_a_place = |root: &Root| {
            let mut beside = root.beside.iter();
            root.path.first() == Some(&b'/')
                && beside.all(|name| RelPath::root().child(name).is_ok())
        };
        match beginning.roots.iter().all(is_a_place) {
            true => Ok(beginning),
            false => Err(WireError),
        }
    }
}

fn put_act(w: &mut Writer, act: &Act) {
    let put_staged = |w: &mut Writer, staged: &Staged| {
        w.u64(staged.inode);
        w.bytes(staged.state.0.as_bytes());
    };
    let put_meta = |w: &mut Writer, meta: &Meta| {
        w.u32(meta.mode);
        let xattrs: Vec<_> = meta.xattrs.iter().collect();
        w.list(&xattrs, |w, (name, value)| {
            w.bytes(name);
            w.bytes(value);
        });
    };
    match act {
        Act::Put { staged } => {
            w.u8(0);
            put_staged(w, staged);
        }
        Act::Swap { staged, before } => {
            w.u8(1);
            put_staged(w, staged);
            w.bytes(before.0.as_bytes());
        }
        Act::Take { before } => {
            w.u8(2);
            w.bytes(before.0.as_bytes());
        }
        Act::Meta { before, after } => {
            w.u8(3);
            put_meta(w, before);
            put_meta(w, after);
        }
        Act::Move { to, what, holds } => {
            w.u8(if holds.is_some() { 5 } else { 4 });
            w.bytes(to.as_bytes());
            put_thing(w, *what);
            if let Some(holds) = holds {
                w.bytes(holds.0.as_bytes());
            }
        }
        Act::Mode(change) => {
            w.u8(6);
            put_thing(w, change.what);
            w.u32(change.modes.0);
            w.u32(change.modes.1);
            w.bytes(change.states.0.0.as_bytes());
            w.bytes(change.states.1.0.as_bytes());
        }
    }
}

fn act(r: &mut Reader<'_>) -> Result<Act, WireError> {
    Ok(match r.u8()? {
        0 => Act::Put { staged: staged(r)? },
        1 => Act::Swap {
            staged: staged(r)?,
            before: fingerprint(r)?,
        },
        2 => Act::Take {
            before: fingerprint(r)?,
        },
        3 => Act::Meta {
            before: meta(r)?,
            after: meta(r)?,
        },
        tag @ (4 | 5) => Act::Move {
            to: path(r)?,
            what: thing(r)?,
            holds: match tag {
                5 => Some(fingerprint(r)?),
                _ => None,
            },
        },
        6 => Act::Mode(OtherMode {
            what: thing(r)?,
            modes: (r.u32()?, r.u32()?),
            states: (fingerprint(r)?, fingerprint(r)?),
        }),
        _ => return Err(WireError),
    })
}

fn put_thing(w: &mut Writer, thing: Thing) {
    w.u64(thing.inode);
    w.u32(thing.kind);
    w.u64(thing.seconds.cast_unsigned());
    w.u32(thing.nanos);
}

fn thing(r: &mut Reader<'_>) -> Result<Thing, WireError> {
    Ok(Thing {
        inode: r.u64()?,
        kind: r.u32()?,
        seconds: r.u64()?.cast_signed(),
        nanos: r.u32()?,
    })
}

fn staged(r: &mut Reader<'_>) -> Result<Staged, WireError> {
    Ok(Staged {
        inode: r.u64()?,
        state: fingerprint(r)?,
    })
}

fn meta(r: &mut Reader<'_>) -> Result<Meta, WireError> {
    Ok(Meta {
        mode: r.u32()?,
        xattrs: r
            .list(|r| Ok((r.bytes()?, r.bytes()?)))?
            .into_iter()
            .collect(),
    })
}

fn fingerprint(r: &mut Reader<'_>) -> Result<Fingerprint, WireError> {
    let bytes = r.bytes()?;
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| WireError)?;
    Ok(Fingerprint(Digest::from_bytes(bytes)))
}

fn index(r: &mut Reader<'_>) -> Result<usize, WireError> {
    usize::try_from(r.u64()?).map_err(|_| WireError)
}

fn path(r: &mut Reader<'_>) -> Result<RelPath, WireError> {
    RelPath::parse(&r.bytes()?).map_err(|_| WireError)
}

#[cfg(test)]
mod tests {
    use super::{Act, Marks, Op, OtherMode, Plan, Root, Staged, Touched};
    use crate::changeset::node::{Fingerprint, Meta};
    use crate::digest::sha256;
    use crate::dircap::Thing;
    use crate::journal::brief::Brief;
    use hermitcrab_core::authority::Verb;
    use hermitcrab_core::path::RelPath;

    fn plan() -> Plan {
        let path = |text: &str| RelPath::parse(text.as_bytes()).expect("path");
        let state = Fingerprint(sha256(b"state"));
        let staged = Staged { inode: 7, state };
        let meta = |mode| Meta {
            mode,
            xattrs: [(b"user.a".to_vec(), b"1".to_vec())].into(),
        };
        let op = |path, act| Op { root: 0, path, act };
        Plan {
            number: 3,
            made_at: 1_700_000_000,
            note: b"make".to_vec(),
            undoes: Some(2),
            roots: vec![Root {
                path: b"/work".to_vec(),
                inode: 9,
                marks: Marks::default(),
                beside: Some(b".hermitcrab-x".to_vec()),
            }],
            ops: vec![
                op(path("a"), Act::Put { staged }),
                op(
                    path("b/c"),
                    Act::Swap {
                        staged,
                        before: state,
                    },
                ),
                op(path("d"), Act::Take { before: state }),
                op(
                    RelPath::root(),
                    Act::Meta {
                        before: meta(0o755),
                        after: meta(0o700),
                    },
                ),
                op(
                    path("e"),
                    Act::Move {
                        to: path("f/e"),
                        what: Thing {
                            inode: 8,
                            kind: 0o100_000,
                            seconds: -3,
                            nanos: 5,
                        },
                        holds: None,
                    },
                ),
                op(
                    path("g"),
                    Act::Move {
                        to: path("h"),
                        what: Thing {
                            inode: 9,
                            kind: 0o120_000,
                            seconds: 3,
                            nanos: 0,
                        },
                        holds: Some(state),
                    },
                ),
                op(
                    path("i"),
                    Act::Mode(OtherMode {
                        what: Thing {
                            inode: 10,
                            kind: 0o100_000,
                            seconds: 1,
                            nanos: 2,
                        },
                        modes: (0o644, 0o755),
                        states: (state, Fingerprint(sha256(b"other"))),
                    }),
                ),
            ],
            touched: vec![Touched {
                root: 0,
                path: path("a"),
                verb: Verb::FsCreate,
            }],
            bytes_before: 12,
        }
    }

    #[test]
    fn a_plan_comes_back_as_it_was_written() {
        assert_eq!(Plan::decode(&plan().encode()), Ok(plan()));
    }

    #[test]
    fn what_a_plan_says_of_itself_is_read_without_its_steps() {
        let check = |plan: &Plan, read_max: usize| {
            let whole = plan.encode();
            let mut read = 0;
            let found = Brief::read(whole.len() as u64, |into, at| {
                let from = whole.get(usize::try_from(at).unwrap()..).unwrap();
                let got = into.len().min(from.len());
                into[..got].copy_from_slice(&from[..got]);
                read += got;
                Ok(got)
            });
            let expected = Brief {
                number: plan.number,
                made_at: plan.made_at,
                note: plan.note.clone(),
                undoes: plan.undoes,
                roots: plan.roots.clone(),
                bytes_before: plan.bytes_before,
            };
            assert_eq!(found.unwrap(), Ok(expected));
            assert!(read <= read_max, "{read} bytes of {}", whole.len());
        };
        check(&plan(), 4 << 10);
        let mut large = plan();
        large.touched = vec![large.touched[0].clone(); 100_000];
        check(&large, 5 << 10);
        // One whose first part is long by itself.
        large.note = b"echo ".repeat(10_000);
        check(&large, 128 << 10);
    }

    #[test]
    fn what_is_no_plan_says_nothing_of_itself() {
        let whole = plan().encode();
        let said = |bytes: &[u8]| {
            let read = Brief::read(bytes.len() as u64, |into, at| {
                let from = bytes.get(usize::try_from(at).unwrap()..).unwrap();
                let got = into.len().min(from.len());
                into[..got].copy_from_slice(&from[..got]);
                Ok(got)
            });
            read.unwrap().is_ok()
        };
        assert!(said(&whole));
        assert!(!said(&whole[..60]) && !said(&[]) && !said(&whole[1..]));
        assert!(!said(&[0; 1 << 20]));
    }

    #[test]
    fn a_plan_that_was_cut_or_changed_anywhere_is_refused() {
        let whole = plan().encode();
        for length in 0..whole.len() {
            assert!(Plan::decode(&whole[..length]).is_err(), "cut to {length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert!(Plan::decode(&changed).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn a_plan_that_names_places_outside_is_refused() {
        for (root, beside) in [
            (1, b"x".to_vec()),
            (0, b"..".to_vec()),
            (0, b"a/b".to_vec()),
        ] {
            let mut bad = plan();
            bad.ops[0].root = root;
            bad.roots[0].beside = Some(beside);
            assert!(Plan::decode(&bad.encode()).is_err());
        }
    }
}
