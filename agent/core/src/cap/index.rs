//! Which grants could allow an action, found without looking at the others.
//!
//! Each capability of a grant is filed under a number made from its holder,
//! its verb and its object. An action is covered only by capabilities on its
//! own object or on one of the few that include it (the directories above it,
//! the domains its host lies in), so a search visits just those numbers. Two
//! capabilities may share a number: whoever searches must still compare.
//!
//! Dead grants are moved to a second list that keeps only the newest for each
//! number, so that a session with a long past decides as fast as a young one
//! and can still say why the last grant no longer counts. Of what an operation
//! was lent nobody is told, so it leaves the reason that stands there alone.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::authority::{
    Authority, Cap, Extension, Extent, Host, HostPattern, Name, Object, Port, Program, Verb,
};
use crate::fault::{self, Fault};
use crate::grant::{AgentId, Grant, GrantId};
use crate::path::RelPath;

/// Grants by what they are on.
#[derive(Debug, Default)]
pub(super) struct Index {
    live: BTreeSet<(Key, GrantId)>,
    graves: BTreeMap<Key, GrantId>,
    trees: Depths,
    names: Depths,
}

/// How deep below their directory the places lie that anything was ever filed
/// for, a bit for each depth: most sessions hold whole directories, and their
/// searches need not look at every directory on the way to a file.
#[derive(Clone, Copy, Debug, Default)]
struct Depths(u64);

impl Depths {
    /// The depth as a bit; the deepest share one.
    fn bit(depth: u32) -> u64 {
        1 << depth.min(u64::BITS - 1)
    }

    fn note(&mut self, below: &RelPath) {
        let names = below.components().count();
        self.0 |= Depths::bit(u32::try_from(names).unwrap_or(u32::MAX));
    }

    fn has(self, depth: u32) -> bool {
        self.0 & Depths::bit(depth) != 0
    }
}

impl Index {
    pub(super) fn file(&mut self, holder: AgentId, authority: &Authority, id: GrantId) {
        for cap in authority.caps() {
            if let Object::Dir { below, extent, .. } = cap.object() {
                match extent {
                    Extent::Tree => self.trees.note(below),
                    Extent::Alone => self.names.note(below),
                }
            }
            self.live.insert((Key::of(holder, cap), id));
        }
    }

    /// Takes a grant out of the living; harmless if it is not among them.
    pub(super) fn bury(&mut self, grant: &Grant) {
        // A planted fault lets the dead be used, so they must still be found.
        let walks = [
            Fault::ForgetRevocation,
            Fault::ForgetExpiry,
            Fault::ForgetUses,
        ];
        if walks.into_iter().any(fault::is) {
            return;
        }
        let id = grant.id;
        for cap in grant.authority.caps() {
            let key = Key::of(grant.holder, cap);
            if self.live.remove(&(key, id)) && grant.is_told_of() {
                let newest = self.graves.entry(key).or_insert(id);
                *newest = id.max(*newest);
            }
        }
    }

    /// Visits every grant of `holder` that is not buried and could allow `cap`.
    pub(super) fn living(&self, holder: AgentId, cap: &Cap, mut visit: impl FnMut(GrantId)) {
        self.covering(holder, cap, |key| {
            let from_here = self.live.range((key, GrantId(0))..);
            for (_, id) in from_here.take_while(|(found, _)| *found == key) {
                visit(*id);
            }
        });
    }

    /// Visits the newest buried grant under each number.
    pub(super) fn buried(&self, holder: AgentId, cap: &Cap, mut visit: impl FnMut(GrantId)) {
        self.covering(holder, cap, |key| {
            if let Some(id) = self.graves.get(&key) {
                visit(*id);
            }
        });
    }

    /// Visits the numbers of every capability that could cover `cap`, its own included.
    fn covering(&self, holder: AgentId, cap: &Cap, mut visit: impl FnMut(Key)) {
        let start = |kind| Key::start(holder, cap.verb(), kind);
        match cap.object() {
            Object::Dir { dir, below, extent } => {
                let start = start(0)
                    .number(dir.session())
                    .number(u64::from(dir.index()));
                covering_places(start, (below, *extent), (self.trees, self.names), visit);
            }
            Object::Program(program) => {
                visit(Key::program(start(1), program));
                if let Program::InView(_) = program {
                    visit(Key::program(start(1), &Program::AnyInView));
                }
            }
            Object::Host(host) => covering_hosts(start(2), host, visit),
            Object::Extension(extension) => {
                visit(Key::extension(start(6), extension));
                if extension.on.is_some() {
                    let all = Extension {
                        name: extension.name.clone(),
                        on: None,
                    };
                    visit(Key::extension(start(6), &all));
                }
            }
            Object::Secret(_) | Object::Model(_) | Object::Session => visit(Key::of(holder, cap)),
        }
    }
}

/// A number made from a holder, a verb and an object (FNV-1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    fn start(holder: AgentId, verb: Verb, kind: u8) -> Key {
        Key(0xcbf2_9ce4_8422_2325)
            .number(u64::from(holder.0))
            .byte(verb as u8)
            .byte(kind)
    }

    const fn byte(self, byte: u8) -> Key {
        Key((self.0 ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
    }

    const fn number(self, number: u64) -> Key {
        Key((self.0 ^ number)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn name(self, name: &Name) -> Key {
        name.as_str().bytes().fold(self, Key::byte)
    }

    fn port(self, port: Port) -> Key {
        match port {
            Port::Any => self.byte(0),
            Port::Only(port) => self.byte(1).number(u64::from(port)),
        }
    }

    /// The number of a held capability.
    fn of(holder: AgentId, cap: &Cap) -> Key {
        let start = |kind| Key::start(holder, cap.verb(), kind);
        match cap.object() {
            Object::Dir { dir, below, extent } => {
                let start = start(0)
                    .number(dir.session())
                    .number(u64::from(dir.index()));
                let tree = if below.is_root() {
                    start
                } else {
                    below.as_bytes().iter().copied().fold(start, Key::byte)
                };
                match extent {
                    Extent::Tree => tree,
                    Extent::Alone => tree.alone(),
                }
            }
            Object::Program(program) => Key::program(start(1), program),
            Object::Host(host) => Key::host(start(2), &host.name).port(host.port),
            Object::Secret(name) => start(3).name(name),
            Object::Model(name) => start(4).name(name),
            Object::Session => start(5),
            Object::Extension(extension) => Key::extension(start(6), extension),
        }
    }

    /// The number of a name, of that of the tree below it: no name holds this byte.
    const fn alone(self) -> Key {
        self.byte(0)
    }

    fn program(self, program: &Program) -> Key {
        match program {
            Program::AnyInView => self.byte(0),
            Program::InView(name) => self.byte(1).name(name),
            Program::OnHost(name) => self.byte(2).name(name),
        }
    }

    fn host(self, pattern: &HostPattern) -> Key {
        match pattern {
            HostPattern::Exact(name) => self.byte(0).name(name),
            HostPattern::Subdomains(name) => self.byte(1).name(name),
        }
    }

    fn extension(self, extension: &Extension) -> Key {
        let named = extension.name.as_str().bytes().fold(self, Key::byte);
        match &extension.on {
            None => named.byte(0),
            Some(on) => named.byte(1).name(on),
        }
    }
}

/// Visits the numbers of every place that could cover this one, its own included: trees
/// from the top down, and last the name.
fn covering_places(
    start: Key,
    (below, extent): (&RelPath, Extent),
    (trees, names): (Depths, Depths),
    mut visit: impl FnMut(Key),
) {
    let (mut key, mut depth) = (start, 0);
    if trees.has(depth) {
        visit(key);
    }
    if !below.is_root() {
        for byte in below.as_bytes() {
            // A slash ends the name of a directory above.
            if *byte == b'/' {
                depth += 1;
                if trees.has(depth) {
                    visit(key);
                }
            }
            key = key.byte(*byte);
        }
        depth += 1;
        if trees.has(depth) {
            visit(key);
        }
    }
    if extent == Extent::Alone && names.has(depth) {
        visit(key.alone());
    }
}

fn covering_hosts(start: Key, host: &Host, mut visit: impl FnMut(Key)) {
    let mut each_port = |key: Key| {
        visit(key.port(Port::Any));
        if let Port::Only(_) = host.port {
            visit(key.port(host.port));
        }
    };
    let (HostPattern::Exact(name) | HostPattern::Subdomains(name)) = &host.name;
    each_port(Key::host(start, &host.name));
    let text = name.as_str();
    for (place, _) in text.match_indices('.') {
        let domain = text.get(place.saturating_add(1)..).unwrap_or_default();
        // As `Key::host` does for the pattern of all subdomains of it.
        each_port(domain.bytes().fold(start.byte(1), Key::byte));
    }
}
