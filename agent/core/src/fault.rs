//! Planted faults: known ways of being wrong, to prove that the checks notice.
//!
//! Every package of the agent asks [`is`] at the places named here. Without
//! the feature `planted-faults` the answer is a constant `false` and no fault
//! can be switched on; the feature is never part of a shipped build. With it,
//! one fault at a time is planted for the whole process.

macro_rules! faults {
    ($( $variant:ident = $name:literal, $description:literal; )+) => {
        /// One way of being wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $( #[doc = $description] $variant, )+
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Fault] = &[ $( Fault::$variant, )+ ];

            /// Its stable spelling.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Fault::$variant => $name, )+ }
            }

            /// What is wrong while it is planted, in one line.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $( Fault::$variant => $description, )+ }
            }
        }
    };
}

faults! {
    ForgetExpiry = "forget-expiry", "a grant works after its deadline";
    ForgetRevocation = "forget-revocation", "a revoked grant goes on working";
    ForgetUses = "forget-uses", "a grant for one use works for ever";
    LeakGrantsToChild = "leak-grants-to-child", "a new agent gets everything its parent holds";
    SessionEndKeepsGrants = "session-end-keeps-grants", "grants outlive the session they were made in";
    UnknownAnswerIsYes = "unknown-answer-is-yes", "an answer nobody offered counts as yes";
    AnswerNotBoundToDigest = "answer-not-bound-to-digest", "an answer to one thing is taken for another";
    ApproveWholeClass = "approve-whole-class", "a yes for the session covers the whole directory";
    RefuseEverything = "refuse-everything", "the monitor denies every call";
    SensitivePathsArePlain = "sensitive-paths-are-plain", "sensitive names are not asked about";
    ProtectedPathsArePlain = "protected-paths-are-plain", "the agent's own files can be granted";
    DirCapFollowsLinks = "dircap-follows-links", "a directory capability follows links out of its root";
    DirCapAllowsDotDot = "dircap-allows-dot-dot", "a directory capability accepts `..`";
    WriteFollowsSymlink = "write-follows-symlink", "a write goes through a symbolic link at its target";
    ChangeSetMissesDeletes = "change-set-misses-deletes", "deletions in the view are not part of the change set";
    ChangeSetMissesMetadata = "change-set-misses-metadata", "changed permission bits are not part of the change set";
    SandboxHasNetwork = "sandbox-has-network", "a command shares the machine's network";
    SandboxSeesHome = "sandbox-sees-home", "a command sees the user's home directory";
    TimeoutLeavesOrphans = "timeout-leaves-orphans", "a timeout kills the command but not what it started";
    CommitWithoutAsking = "commit-without-asking", "a change set is committed whatever is held";
    DenialLooksLikeSuccess = "denial-looks-like-success", "a refused call reports that it worked";
    ReadTruncates = "read-truncates", "the end of a file is left out without saying so";
}

impl Fault {
    /// The fault with this spelling.
    #[must_use]
    pub fn parse(name: &str) -> Option<Fault> {
        Fault::ALL
            .iter()
            .copied()
            .find(|fault| fault.name() == name)
    }
}

/// Is this fault planted? Always `false` without the feature.
#[cfg(not(feature = "planted-faults"))]
#[must_use]
pub const fn is(_fault: Fault) -> bool {
    false
}

#[cfg(feature = "planted-faults")]
pub use planted::{is, plant};

#[cfg(feature = "planted-faults")]
mod planted {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Fault;

    const NONE: u8 = u8::MAX;
    static PLANTED: AtomicU8 = AtomicU8::new(NONE);

    /// Is this fault planted?
    #[must_use]
    pub fn is(fault: Fault) -> bool {
        PLANTED.load(Ordering::Relaxed) == fault as u8
    }

    /// Plants one fault for the whole process, or (`None`) takes it away.
    pub fn plant(fault: Option<Fault>) {
        PLANTED.store(fault.map_or(NONE, |fault| fault as u8), Ordering::Relaxed);
    }
}
