//! Why a call was refused: one table of stable codes.
//!
//! Below everything that can refuse, so that paths and grants name the same codes
//! as the monitor does.

use core::fmt;

macro_rules! denial_codes {
    ($( $(#[doc = $doc:literal])+ $variant:ident = $code:literal, $wording:literal, $next:literal; )+) => {
        /// Why a call was refused. The text of a code is part of the interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DenialCode {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl DenialCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [DenialCode] = &[ $( DenialCode::$variant, )+ ];

            /// The stable spelling, such as `no-cap`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( DenialCode::$variant => $code, )+ }
            }

            /// What it means, in a few words.
            #[must_use]
            pub const fn wording(self) -> &'static str {
                match self { $( DenialCode::$variant => $wording, )+ }
            }

            /// What the user can do about it.
            #[must_use]
            pub const fn next_step(self) -> &'static str {
                match self { $( DenialCode::$variant => $next, )+ }
            }
        }
    };
}

denial_codes! {
    /// No grant ever covered it.
    NoCap = "no-cap", "no capability held for this", "grant it, or give the call a target that is granted";
    /// The grant, or one it came from, was revoked.
    Revoked = "revoked", "the grant was revoked", "grant it again";
    /// The grant's deadline has passed.
    Expired = "expired", "the grant has expired", "grant it again";
    /// The grant's uses are spent.
    Exhausted = "exhausted", "the grant's uses are spent", "grant it again";
    /// A standing grant that nobody confirmed since it fell due.
    ConfirmationDue = "confirmation-due", "the standing grant has to be confirmed again", "look at it and confirm it";
    /// A `..` in a path.
    PathEscapes = "path-escapes", "path escapes", "name the target from the directory granted, without `..`";
    /// A path that begins at the root of the machine.
    PathAbsolute = "path-absolute", "absolute paths forbidden", "name the target from the directory granted";
    /// A NUL byte in a path.
    PathNul = "path-nul", "path holds a NUL byte", "correct the path";
    /// No path at all.
    PathEmpty = "path-empty", "path is empty", "name a target";
    /// A path or a name beyond the limits.
    PathTooLong = "path-too-long", "path is too long", "shorten the path";
    /// A directory's spelling where a file may be meant.
    PathTrailingSlash = "path-trailing-slash", "path ends like a directory", "remove the final slash";
    /// A link that leads out of the directory granted.
    OutsideRoot = "outside-root", "resolved outside root", "grant the directory the link leads to";
    /// A link where a change may not follow one.
    SymlinkRefused = "symlink-refused", "a change may not pass a symbolic link", "name the link's target instead";
    /// Another file system mounted below the directory granted.
    MountCrossing = "mount-crossing", "another file system is mounted there", "grant that directory itself";
    /// A device, pipe, socket or directory where a file was needed.
    NotRegularFile = "not-regular-file", "not a regular file", "name a regular file; a pipe or a socket that a command needs is made in /tmp, or removed before it ends";
    /// A name that is asked about every time, with nobody to ask.
    SensitivePath = "sensitive-path", "a sensitive path needs a yes for each call", "run where the user can be asked";
    /// Data that reached the agent after the grant was made may be behind the call.
    UntrustedFlow = "untrusted-flow", "what the agent has read since the grant was made may be behind this", "ask the user whether this is what they want";
    /// The agent's own configuration, ledger or store.
    Protected = "protected", "the agent's own files are out of its reach", "change them outside the agent";
    /// The kernel's own switches.
    IsolationControl = "isolation-control", "the kernel's own switches are not for an agent", "change them outside the agent";
    /// A disk, memory or another device as such.
    RawDevice = "raw-device", "devices are not opened as files", "name a regular file";
    /// A secret's value on its way into what a model reads.
    SecretToModel = "secret-to-model", "a secret's value is never shown to a model", "let a program use the secret by its name";
    /// A network peer that is not named.
    NetworkUnnamed = "network-unnamed", "the network peer is not named", "name the host and the port";
    /// A configured rule refuses it.
    DeniedByRule = "denied-by-rule", "a configured rule refuses it", "change the rule where it is written, outside the agent";
    /// A configured rule wants the user asked, and there is nobody to ask.
    AskedByRule = "asked-by-rule", "a configured rule wants the user asked", "run where the user can be asked";
    /// The user said no.
    RejectedByUser = "rejected-by-user", "the user said no", "ask the user what to do instead";
    /// An answer that is none of the offered ones.
    UnknownAnswer = "unknown-answer", "the answer is not one of those offered", "answer with one of the words offered";
    /// Silence, a closed dialog or a broken one.
    NoAnswer = "no-answer", "nobody answered", "try again when somebody can answer";
    /// What would be spent is not what was shown.
    ChangedSinceShown = "changed-since-shown", "it changed after it was shown", "look at the new state and ask again";
    /// A tool that does not exist.
    UnknownTool = "unknown-tool", "no such tool", "use one of the tools offered";
    /// Arguments the tool does not take.
    BadArguments = "bad-arguments", "the arguments do not fit the tool", "correct the arguments";
    /// An agent this session does not have.
    UnknownAgent = "unknown-agent", "no such agent in this session", "use an agent of this session";
    /// A grant this session does not have.
    UnknownGrant = "unknown-grant", "no such grant in this session", "use a grant of this session";
    /// An object's name that leads to nothing here: unknown, ended, of another
    /// session or for somebody else. Which of these it is, is not told.
    NoSuchObject = "no-such-object", "no such object", "ask whoever gave the name for a new one";
    /// A call that is not running.
    UnknownCall = "unknown-call", "no such call is running", "start the call again";
    /// The session is over.
    SessionEnded = "session-ended", "the session has ended", "start a new session";
    /// The ledger cannot be written, and nothing is done that is not in it.
    LedgerUnwritable = "ledger-unwritable", "the ledger cannot be written, so nothing is done", "make room or mend the disk, see what `hermitcrab doctor` says, then start a new session";
    /// The disk has no room for a change that was allowed, or a quota leaves none.
    NoRoom = "no-room", "the disk has no room for it", "make room there, then run it again";
    /// A change that was allowed is on a file system that takes none.
    ReadOnly = "read-only", "the file system is read-only", "mount it for writing or work in another directory, then run it again";
    /// The system does not let whoever runs the agent write there.
    NotWritable = "not-writable", "the system lets you write nothing there", "change who may write there or work in another directory, then run it again";
    /// What the system does not let whoever runs the agent read, so that nobody can tell what
    /// a change to it would be.
    NotReadable = "not-readable", "the system does not let you look at it", "let yourself read it, or have its owner do so (`chmod u+rwX`), then run it again";
    /// The file system failed at a change that was allowed.
    DiskFailed = "disk-failed", "the file system failed", "see what the system's log says of that disk, then run it again";
    /// An effect of a kind that is never had for an agent, whatever is granted.
    EffectNotCovered = "effect-not-covered", "no grant covers such an effect", "leave it out; who wants it does it outside the agent";
    /// A grant that would give more than the one it comes from.
    Amplifies = "amplifies", "it would give more than is held", "pass on what is held, or less";
    /// A permit spent on something else than it was made for.
    PermitMismatch = "permit-mismatch", "the permit is for something else", "report this as a bug";
    /// Isolation that was not proved.
    IsolationUnknown = "isolation-unknown", "the isolation of the sandbox is not proved", "see what `hermitcrab doctor` misses";
    /// A proposal this session does not have, or one that was settled.
    UnknownProposal = "unknown-proposal", "no such proposal is open", "propose it again";
    /// A limit of the core.
    LimitReached = "limit-reached", "a limit is reached", "do it in smaller parts, or end what counts towards the limit; where neither is possible, start a new session";
}

impl DenialCode {
    /// The code with this spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<DenialCode> {
        DenialCode::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == text)
    }
}

impl fmt::Display for DenialCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
