//! Grants that outlive a session, in words any session understands.
//!
//! What for: "always". A handle to a directory, an instant since boot and a
//! grant's number mean nothing after the session, so what is kept says places
//! as they are seen from `/`, times on the wall clock, and the boot in which
//! somebody last said yes. The edge stores these records; the core judges them.
//!
//! A record is no authority: it becomes a grant only in a session, only after
//! [`Standing::check`], and only for as long as the check says. In another directory
//! that came to lie in the place of the one it was for, after a reboot,
//! after the interval, after the clock went backwards, under weaker isolation
//! than at the last yes, or for anybody else, it has to be confirmed again.
//!
//! It must never extend itself: only [`Standing::confirm`], called for a yes
//! of the user, moves its times, and no yes revives a revoked one.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::authority::{Extension, Extent, Host, Name, ObjectKind, Program, Verb};
use crate::digest::Digest;
use crate::grant::Uses;
use crate::isolation::Isolation;
use crate::limits::{CAPS_PER_STANDING_MAX, GRANT_LIFETIME_MAX};
use crate::outcome::{Denial, DenialCode};
use crate::path::RelPath;
use crate::time::{Instant, Millis};

pub use crate::grant::StandingId;

/// Milliseconds since 1970 on the machine's wall clock, which can be set to anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// The time `ms` milliseconds after the start of 1970.
    #[must_use]
    pub const fn from_millis(ms: u64) -> WallTime {
        WallTime(ms)
    }

    /// Milliseconds since the start of 1970.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time `span` later.
    #[must_use]
    pub const fn after(self, span: Millis) -> WallTime {
        WallTime(self.0.saturating_add(span.get()))
    }
}

/// One run of the machine, from start to shutdown, as the kernel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId([u8; 16]);

impl BootId {
    /// Wraps the kernel's random name of this boot.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> BootId {
        BootId(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Which directory a workspace is, by what the file system tells it by and not by its path:
/// what lies in its place later is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(Digest);

impl Site {
    /// Wraps the digest of all that a directory is told by.
    #[must_use]
    pub const fn from_digest(digest: Digest) -> Site {
        Site(digest)
    }

    /// The digest.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.0
    }
}

/// Whom a kept grant is for, such as the agent of one workspace. The edge makes
/// the name; two different audiences never share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Audience(Name);

impl Audience {
    /// The audience of this name.
    #[must_use]
    pub const fn new(name: Name) -> Audience {
        Audience(name)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// What a kept capability acts on: an object without a handle of any session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortableObject {
    /// A place seen from `/`.
    Place {
        /// Where it is.
        at: RelPath,
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
    /// Every session of the agent in that place.
    Session,
    /// What a vendor's verb acts on.
    Extension(Extension),
}

impl PortableObject {
    /// A name seen from `/`, and nothing below it.
    #[must_use]
    pub const fn alone(at: RelPath) -> PortableObject {
        let extent = Extent::Alone;
        PortableObject::Place { at, extent }
    }

    /// A place seen from `/`, and everything below it.
    #[must_use]
    pub const fn tree(at: RelPath) -> PortableObject {
        let extent = Extent::Tree;
        PortableObject::Place { at, extent }
    }

    /// The same as something asked for, which mostly is a single name.
    fn asked(&self) -> impl fmt::Display {
        fmt::from_fn(move |f| match self {
            PortableObject::Place { at, extent } => {
                f.write_str(extent.asked_as())?;
                write_place(f, at)
            }
            held => write!(f, "{held}"),
        })
    }

    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> ObjectKind {
        match self {
            PortableObject::Place { .. } => ObjectKind::Dir,
            PortableObject::Program(_) => ObjectKind::Program,
            PortableObject::Host(_) => ObjectKind::Host,
            PortableObject::Secret(_) => ObjectKind::Secret,
            PortableObject::Model(_) => ObjectKind::Model,
            PortableObject::Session => ObjectKind::Session,
            PortableObject::Extension(_) => ObjectKind::Extension,
        }
    }
}

/// One verb on one object, in portable words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortableCap {
    verb: Verb,
    object: PortableObject,
}

impl PortableCap {
    /// `verb` on `object`; `None` if the verb acts on another kind of object.
    /// Of what is done to a session itself, to see what was said earlier means the same in
    /// each of them; the rest (asking, starting agents, its settings) has no portable form.
    #[must_use]
    pub fn new(verb: Verb, object: PortableObject) -> Option<PortableCap> {
        let is_lasting = verb == Verb::SessionRead || object != PortableObject::Session;
        (is_lasting && verb.object_kind() == object.kind()).then_some(PortableCap { verb, object })
    }

    /// What may be done.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.verb
    }

    /// What it may be done to.
    #[must_use]
    pub const fn object(&self) -> &PortableObject {
        &self.object
    }

    /// The same as what is asked for and not as what is held: places are single names
    /// there unless all of a directory is told.
    pub fn asked(&self) -> impl fmt::Display {
        fmt::from_fn(|f| match &self.object {
            PortableObject::Extension(extension) => write!(f, "{extension}"),
            object => write!(f, "{} {}", self.verb, object.asked()),
        })
    }
}

/// Authority in portable words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortableAuthority {
    // INVARIANT: sorted, without duplicates, not empty, within the limit.
    caps: Vec<PortableCap>,
}

impl PortableAuthority {
    /// Everything these caps allow.
    ///
    /// # Errors
    /// `limit-reached` for too many of them; `no-cap` for none.
    pub fn from_caps(
        caps: impl IntoIterator<Item = PortableCap>,
    ) -> Result<PortableAuthority, Denial> {
        let mut caps: Vec<PortableCap> = caps.into_iter().collect();
        caps.sort_unstable();
        caps.dedup();
        if caps.is_empty() {
            Err(Denial::new(
                DenialCode::NoCap,
                "a standing grant of nothing",
            ))
        } else if caps.len() > CAPS_PER_STANDING_MAX {
            Err(Denial::new(
                DenialCode::LimitReached,
                format_args!(
                    "{CAPS_PER_STANDING_MAX} capabilities in one standing grant; make several grants"
                ),
            ))
        } else {
            Ok(PortableAuthority { caps })
        }
    }

    /// The caps, in a fixed order.
    #[must_use]
    pub fn caps(&self) -> &[PortableCap] {
        &self.caps
    }
}

/// What became of a kept grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kept {
    /// Somebody said yes to it and nobody took that back.
    Confirmed,
    /// Ended for good.
    Revoked,
}

/// A kept grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its number in the store.
    pub id: StandingId,
    /// Whom it is for.
    pub audience: Audience,
    /// Which directory it was confirmed for; records of before have none.
    pub site: Option<Site>,
    /// What it allows.
    pub authority: PortableAuthority,
    /// How often it may still be used.
    pub uses_left: Uses,
    /// What was proved about the sandbox at the last yes.
    pub isolation: Isolation,
    /// When it was made.
    pub made_at: WallTime,
    /// When somebody last said yes to it.
    pub confirmed_at: WallTime,
    /// How long a yes lasts; never longer than [`GRANT_LIFETIME_MAX`], whatever stands here.
    pub confirm_every: Millis,
    /// The boot in which somebody last said yes to it.
    pub boot: BootId,
    /// When in that boot, on the clock that nobody sets; records of before have none.
    pub confirmed_in_boot: Option<Instant>,
    /// What became of it.
    pub kept: Kept,
}

/// Where and when a kept grant is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Who wants to use it.
    pub audience: Audience,
    /// Which directory that is, as far as it can be told.
    pub site: Option<Site>,
    /// The boot the machine is in.
    pub boot: BootId,
    /// The wall clock.
    pub now: WallTime,
    /// The clock that nobody sets, which begins with the boot.
    pub in_boot: Instant,
    /// What the probe of the sandbox proved.
    pub isolation: Isolation,
}

/// Why a kept grant is not one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    /// It is for somebody else; a yes here would not change that.
    OtherAudience,
    /// It was ended for good.
    Revoked,
    /// Its uses are spent.
    Exhausted,
    /// Another directory lies where the one was that it was confirmed for.
    OtherSite,
    /// The machine was started again since the last yes.
    Rebooted,
    /// The last yes is in the future: a clock was set back.
    ClockWentBack,
    /// The last yes is too long ago.
    IntervalOver,
    /// Less is proved about the sandbox than at the last yes.
    IsolationWeaker,
}

impl Due {
    /// Every reason.
    pub const ALL: [Due; 8] = [
        Due::OtherAudience,
        Due::Revoked,
        Due::Exhausted,
        Due::OtherSite,
        Due::Rebooted,
        Due::ClockWentBack,
        Due::IntervalOver,
        Due::IsolationWeaker,
    ];

    /// Can a yes of the user change it?
    #[must_use]
    pub const fn can_be_confirmed(self) -> bool {
        match self {
            Due::OtherAudience | Due::Revoked | Due::Exhausted => false,
            Due::OtherSite
            | Due::Rebooted
            | Due::ClockWentBack
            | Due::IntervalOver
            | Due::IsolationWeaker => true,
        }
    }

    /// The refusal of a use.
    #[must_use]
    pub const fn code(self) -> DenialCode {
        match self {
            // Whoever it is not for learns no more than that there is nothing.
            Due::OtherAudience => DenialCode::NoCap,
            Due::Revoked => DenialCode::Revoked,
            Due::Exhausted => DenialCode::Exhausted,
            Due::OtherSite
            | Due::Rebooted
            | Due::ClockWentBack
            | Due::IntervalOver
            | Due::IsolationWeaker => DenialCode::ConfirmationDue,
        }
    }

    /// What it means, in a few words.
    #[must_use]
    pub const fn wording(self) -> &'static str {
        match self {
            Due::OtherAudience => "it is for another agent",
            Due::Revoked => "it was revoked",
            Due::Exhausted => "its uses are spent",
            Due::OtherSite => "another directory lies where the one was that it was confirmed for",
            Due::Rebooted => "the machine was restarted since it was confirmed",
            Due::ClockWentBack => "the clock shows a time before it was confirmed",
            Due::IntervalOver => "it was confirmed too long ago",
            Due::IsolationWeaker => "less is proved about the sandbox than when it was confirmed",
        }
    }
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wording())
    }
}

impl Standing {
    /// How much longer it counts without a new yes; the reasons in a fixed
    /// order, those first that no yes can lift.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn check(&self, here: &Surroundings) -> Result<Millis, Due> {
        if self.audience != here.audience {
            return Err(Due::OtherAudience);
        }
        if self.kept == Kept::Revoked {
            return Err(Due::Revoked);
        }
        if self.uses_left == Uses::AtMost(0) {
            return Err(Due::Exhausted);
        }
        // What cannot be told is not the same.
        if self.site.is_some() && self.site != here.site {
            return Err(Due::OtherSite);
        }
        if self.boot != here.boot {
            return Err(Due::Rebooted);
        }
        // The wall clock can be set back; within a boot there is one that cannot, and what is
        // left by either is all there is.
        let confirmed_in_boot = self.confirmed_in_boot.unwrap_or(here.in_boot);
        if here.now < self.confirmed_at || here.in_boot < confirmed_in_boot {
            return Err(Due::ClockWentBack);
        }
        let lasts = self.confirm_every.min(GRANT_LIFETIME_MAX);
        let until = self.confirmed_at.after(lasts);
        let until_in_boot = confirmed_in_boot.after(lasts);
        if here.now > until || here.in_boot > until_in_boot {
            return Err(Due::IntervalOver);
        }
        if strength(here.isolation) < strength(self.isolation) {
            return Err(Due::IsolationWeaker);
        }
        let by_wall = until.0.saturating_sub(here.now.0);
        let by_boot = until_in_boot
            .as_millis()
            .saturating_sub(here.in_boot.as_millis());
        Ok(Millis::new(by_wall.min(by_boot)))
    }

    /// Somebody was shown it and said yes, here and now.
    ///
    /// # Errors
    /// The reason no yes can lift; then nothing is changed.
    pub fn confirm(&mut self, here: &Surroundings) -> Result<Millis, Due> {
        match self.check(here) {
            Err(due) if !due.can_be_confirmed() => Err(due),
            Ok(_) | Err(_) => {
                self.site = here.site;
                self.confirmed_at = here.now;
                self.boot = here.boot;
                self.confirmed_in_boot = Some(here.in_boot);
                self.isolation = here.isolation;
                self.check(here)
            }
        }
    }

    /// Ends it for good.
    pub fn revoke(&mut self) {
        self.kept = Kept::Revoked;
    }
}

/// How much is proved.
const fn strength(isolation: Isolation) -> u8 {
    match isolation {
        Isolation::Isolated => 2,
        Isolation::Unknown => 1,
        Isolation::Unisolated => 0,
    }
}

/// A place as it is seen from `/`.
fn write_place(f: &mut fmt::Formatter<'_>, at: &RelPath) -> fmt::Result {
    if at.is_root() {
        f.write_str("/")
    } else {
        write!(f, "/{at}")
    }
}

/// What a verb is held on, as it is told: no two different objects look the same.
impl fmt::Display for PortableObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortableObject::Place { at, extent } => {
                // Before the name, which can be made to look like anything.
                f.write_str(extent.held_as())?;
                write_place(f, at)
            }
            PortableObject::Program(program) => write!(f, "{program}"),
            PortableObject::Host(host) => write!(f, "{host}"),
            PortableObject::Secret(name) => write!(f, "secret {name}"),
            PortableObject::Model(name) => write!(f, "model {name}"),
            PortableObject::Session => f.write_str("the session"),
            PortableObject::Extension(extension) => write!(f, "{extension}"),
        }
    }
}

impl fmt::Display for PortableCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.object {
            // A vendor's verb is named by its object.
            PortableObject::Extension(extension) => write!(f, "{extension}"),
            object => write!(f, "{} {object}", self.verb),
        }
    }
}

impl fmt::Display for PortableAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_file = |cap: &&PortableCap| Verb::FILES.contains(&cap.verb);
        let files: Vec<(Verb, String)> = self
            .caps
            .iter()
            .filter(is_file)
            .map(|cap| (cap.verb, cap.object.to_string()))
            .collect();
        let files = Verb::listed(&files).into_iter();
        let others = self.caps.iter().filter(|cap| !is_file(cap));
        let texts: Vec<String> = files
            .map(|(verb, on)| format!("{verb} {on}"))
            .chain(others.map(ToString::to_string))
            .collect();
        f.write_str(&texts.join(", "))
    }
}
