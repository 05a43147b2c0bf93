//! What verbs act on, and which object includes which.

use core::fmt;

use super::extension::Extension;
use super::name::Name;
use super::verb::ObjectKind;
use crate::fault::{self, Fault};
use crate::path::RelPath;

/// A directory the edge holds open, by its number in one session.
///
/// It carries the session it was made in, so that a handle from another
/// session names nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId {
    session: u64,
    index: u32,
}

impl DirId {
    pub(crate) const fn new(session: u64, index: u32) -> DirId {
        DirId { session, index }
    }

    /// The session it belongs to.
    #[must_use]
    pub const fn session(self) -> u64 {
        self.session
    }

    /// Its number in that session.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }
}

impl fmt::Display for DirId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dir{}", self.index)
    }
}

/// A program, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// Any program, in the isolated copy-on-write view: what it does there is
    /// judged by its change set, so its name decides nothing.
    AnyInView,
    /// One program, in the isolated view.
    InView(Name),
    /// One program, on the machine itself.
    OnHost(Name),
}

/// The names of network peers a cap stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// This name or address.
    Exact(Name),
    /// Every name that ends in a dot and this one, but not this one itself.
    Subdomains(Name),
}

/// The ports a cap stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// All of them.
    Any,
    /// This one.
    Only(u16),
}

/// A network peer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    /// Which names.
    pub name: HostPattern,
    /// Which ports.
    pub port: Port,
}

/// How far a cap on a place reaches.
///
/// The kernel's rights to a directory are two as well: what is done to the name itself
/// (made, removed, its mode changed) and what is done in it. A yes is for what was shown,
/// which is names; a person who names a directory means all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extent {
    /// The name and nothing below it, whatever it names by then.
    Alone,
    /// The name and everything below it.
    Tree,
}

/// What a verb acts on: handles where the kernel can hold one, matchers elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// `below`, alone or with everything under it, in the directory `dir`.
    ///
    /// A narrowed directory keeps the handle's id and lengthens `below`, so
    /// that every place has one name.
    Dir {
        /// The handle.
        dir: DirId,
        /// Where in it.
        below: RelPath,
        /// How far it reaches.
        extent: Extent,
    },
    /// A program.
    Program(Program),
    /// A network peer.
    Host(Host),
    /// A secret, by name.
    Secret(Name),
    /// A model, by name.
    Model(Name),
    /// The session: its user, its agents, its settings.
    Session,
    /// What a vendor's verb acts on.
    Extension(Extension),
}

impl Object {
    /// A name in a directory, and nothing below it.
    #[must_use]
    pub const fn alone(dir: DirId, below: RelPath) -> Object {
        let extent = Extent::Alone;
        Object::Dir { dir, below, extent }
    }

    /// A name in a directory, and everything below it.
    #[must_use]
    pub const fn tree(dir: DirId, below: RelPath) -> Object {
        let extent = Extent::Tree;
        Object::Dir { dir, below, extent }
    }

    /// The same as something asked for, which mostly is a single name.
    pub(super) fn asked(&self) -> impl fmt::Display {
        fmt::from_fn(move |f| match self {
            Object::Dir { dir, below, extent } => {
                f.write_str(extent.asked_as())?;
                write!(f, "{dir}:{below}")
            }
            held => write!(f, "{held}"),
        })
    }

    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> ObjectKind {
        match self {
            Object::Dir { .. } => ObjectKind::Dir,
            Object::Program(_) => ObjectKind::Program,
            Object::Host(_) => ObjectKind::Host,
            Object::Secret(_) => ObjectKind::Secret,
            Object::Model(_) => ObjectKind::Model,
            Object::Session => ObjectKind::Session,
            Object::Extension(_) => ObjectKind::Extension,
        }
    }

    /// Is everything in `other` also in `self`?
    #[must_use]
    pub fn covers(&self, other: &Object) -> bool {
        match (self, other) {
            (
                Object::Dir { dir, below, extent },
                Object::Dir {
                    dir: other_dir,
                    below: other_below,
                    extent: other_extent,
                },
            ) => dir == other_dir && extent.covers(below, *other_extent, other_below),
            (Object::Program(held), Object::Program(asked)) => held.covers(asked),
            (Object::Host(held), Object::Host(asked)) => {
                held.name.covers(&asked.name) && held.port.covers(asked.port)
            }
            (Object::Secret(held), Object::Secret(asked))
            | (Object::Model(held), Object::Model(asked)) => held == asked,
            (Object::Session, Object::Session) => true,
            (Object::Extension(held), Object::Extension(asked)) => held.covers(asked),
            (
                Object::Dir { .. }
                | Object::Program(_)
                | Object::Host(_)
                | Object::Secret(_)
                | Object::Model(_)
                | Object::Session
                | Object::Extension(_),
                _,
            ) => false,
        }
    }

    /// What is in both; `None` if nothing is.
    #[must_use]
    pub fn meet(&self, other: &Object) -> Option<Object> {
        if let (Object::Host(left), Object::Host(right)) = (self, other) {
            let name = smaller(&left.name, &right.name, HostPattern::covers)?;
            let port = smaller(&left.port, &right.port, |held, asked| held.covers(*asked))?;
            return Some(Object::Host(Host { name, port }));
        }
        // Objects of the other kinds either include one another or share nothing.
        smaller(self, other, Object::covers)
    }
}

/// The one that the other covers.
fn smaller<T: Clone>(left: &T, right: &T, covers: impl Fn(&T, &T) -> bool) -> Option<T> {
    if covers(left, right) {
        Some(right.clone())
    } else if covers(right, left) {
        Some(left.clone())
    } else {
        None
    }
}

impl Extent {
    /// What stands before a place that is held, in lists of what is: most are trees, and
    /// a person named them.
    #[must_use]
    pub const fn held_as(self) -> &'static str {
        match self {
            Extent::Alone => "only ",
            Extent::Tree => "",
        }
    }

    /// What stands before a place that is asked for: most are single names.
    #[must_use]
    pub const fn asked_as(self) -> &'static str {
        match self {
            Extent::Alone => "",
            Extent::Tree => "all of ",
        }
    }

    /// Does this much of `below` include that much of `other`?
    fn covers(self, below: &RelPath, that: Extent, other: &RelPath) -> bool {
        match (self, that) {
            (Extent::Tree, Extent::Alone | Extent::Tree) => other.starts_with(below),
            (Extent::Alone, Extent::Alone) if fault::is(Fault::NamesReachBelow) => {
                other.starts_with(below)
            }
            (Extent::Alone, Extent::Alone) => other == below,
            // What lies below is more than any number of names.
            (Extent::Alone, Extent::Tree) => false,
        }
    }
}

impl Program {
    fn covers(&self, other: &Program) -> bool {
        match (self, other) {
            (Program::AnyInView, Program::AnyInView | Program::InView(_)) => true,
            (Program::InView(held), Program::InView(asked))
            | (Program::OnHost(held), Program::OnHost(asked)) => held == asked,
            (Program::AnyInView | Program::InView(_) | Program::OnHost(_), _) => false,
        }
    }
}

impl HostPattern {
    fn covers(&self, other: &HostPattern) -> bool {
        match (self, other) {
            (HostPattern::Exact(held), HostPattern::Exact(asked)) => held == asked,
            (HostPattern::Exact(_), HostPattern::Subdomains(_)) => false,
            (HostPattern::Subdomains(held), HostPattern::Exact(asked)) => is_subdomain(asked, held),
            (HostPattern::Subdomains(held), HostPattern::Subdomains(asked)) => {
                held == asked || is_subdomain(asked, held)
            }
        }
    }
}

fn is_subdomain(name: &Name, of: &Name) -> bool {
    name.as_str()
        .strip_suffix(of.as_str())
        .and_then(|rest| rest.strip_suffix('.'))
        .is_some_and(|label| !label.is_empty())
}

impl Port {
    fn covers(self, other: Port) -> bool {
        match (self, other) {
            (Port::Any, Port::Any | Port::Only(_)) => true,
            (Port::Only(held), Port::Only(asked)) => held == asked,
            (Port::Only(_), Port::Any) => false,
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Program::AnyInView => f.write_str("any program in the view"),
            Program::InView(name) => write!(f, "{name} in the view"),
            Program::OnHost(name) => write!(f, "{name} on the host"),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            HostPattern::Exact(name) => write!(f, "{name}")?,
            HostPattern::Subdomains(name) => write!(f, "*.{name}")?,
        }
        match self.port {
            Port::Any => f.write_str(":*"),
            Port::Only(port) => write!(f, ":{port}"),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Dir { dir, below, extent } => {
                // Before the name, which can be made to look like anything.
                f.write_str(extent.held_as())?;
                write!(f, "{dir}:{below}")
            }
            Object::Program(program) => write!(f, "{program}"),
            Object::Host(host) => write!(f, "{host}"),
            Object::Secret(name) => write!(f, "secret {name}"),
            Object::Model(name) => write!(f, "model {name}"),
            Object::Session => f.write_str("the session"),
            Object::Extension(extension) => write!(f, "{extension}"),
        }
    }
}
