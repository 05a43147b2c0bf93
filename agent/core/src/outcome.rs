//! Refusals and outcomes: what a call came to.
//!
//! A [`Denial`] is a normal result with a stable code, not an error. Tests,
//! the oracle and other programs compare the codes, never the prose, so a
//! code is never renamed. A denial must never hint at another way to get the
//! same effect.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write as _};

use crate::authority::Cap;
use crate::digest::Digest;
use crate::letters::{is_like_a_space, is_unseen};
use crate::limits::TEXT_BYTES_MAX;
use crate::rules::RuleRef;

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
    NotRegularFile = "not-regular-file", "not a regular file", "name a regular file";
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
    /// An effect of a kind the tool never has.
    EffectNotCovered = "effect-not-covered", "the tool has no such effect", "use the tool made for it";
    /// A grant that would give more than the one it comes from.
    Amplifies = "amplifies", "it would give more than is held", "pass on what is held, or less";
    /// A permit spent on something else than it was made for.
    PermitMismatch = "permit-mismatch", "the permit is for something else", "report this as a bug";
    /// Isolation that was not proved.
    IsolationUnknown = "isolation-unknown", "the isolation of the sandbox is not proved", "see what `hermitcrab doctor` misses";
    /// A proposal this session does not have, or one that was settled.
    UnknownProposal = "unknown-proposal", "no such proposal is open", "propose it again";
    /// A limit of the core.
    LimitReached = "limit-reached", "a limit of the session is reached", "start a new session";
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

/// A refusal: a code, what it is about, and what led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    code: DenialCode,
    because: Option<DenialCode>,
    rule: Option<RuleRef>,
    about: String,
    // Behind a pointer: a refusal is the other side of most results.
    cap: Option<Box<Cap>>,
}

impl Denial {
    /// A refusal of `about`, which is escaped and cut to a bounded length.
    #[must_use]
    pub fn new(code: DenialCode, about: impl fmt::Display) -> Denial {
        Denial {
            code,
            because: None,
            rule: None,
            about: bounded(about),
            cap: None,
        }
    }

    /// A refusal of one capability. Its place is named by the session's own name until
    /// somebody who knows a better one says it ([`Denial::said_as`]).
    #[must_use]
    pub(crate) fn of(code: DenialCode, cap: &Cap) -> Denial {
        Denial {
            cap: Some(Box::new(cap.clone())),
            ..Denial::new(code, cap)
        }
    }

    /// The same refusal in words its reader knows; they are escaped and bounded.
    #[must_use]
    pub fn said_as(mut self, about: impl fmt::Display) -> Denial {
        self.about = bounded(about);
        self
    }

    /// The one capability it is about, if it is about one.
    #[must_use]
    pub fn cap(&self) -> Option<&Cap> {
        self.cap.as_deref()
    }

    /// The same refusal, saying what had led to the question or check that failed.
    #[must_use]
    pub fn because(mut self, code: DenialCode) -> Denial {
        self.because = Some(code);
        self
    }

    /// The same refusal, naming the rule behind it.
    #[must_use]
    pub fn by_rule(mut self, rule: RuleRef) -> Denial {
        self.rule = Some(rule);
        self
    }

    /// The rule behind it, if it was a rule.
    #[must_use]
    pub const fn rule(&self) -> Option<&RuleRef> {
        self.rule.as_ref()
    }

    /// Why it was refused.
    #[must_use]
    pub const fn code(&self) -> DenialCode {
        self.code
    }

    /// What made it necessary to ask, if the user was asked.
    #[must_use]
    pub const fn cause(&self) -> Option<DenialCode> {
        self.because
    }

    /// What was refused; printable, may be empty.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.wording())?;
        if !self.about.is_empty() {
            write!(f, ": `{}`", self.about)?;
        }
        Ok(())
    }
}

/// What happened when a call's permits were spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran, and its effects stand; the digest names the result.
    Done(Digest),
    /// It ran on the view, and its effects were thrown away.
    Discarded(DenialCode),
    /// The edge refused it after the permit was made (containment, kind of file, staleness).
    Refused(DenialCode),
    /// It ran out of time and was killed with everything it started.
    TimedOut,
    /// A revocation, the user or the end of the session stopped it.
    Stopped,
    /// The machinery failed; the effect may or may not have begun.
    Failed,
}

impl Outcome {
    /// The stable spelling of the kind of outcome.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Outcome::Done(_) => "done",
            Outcome::Discarded(_) => "discarded",
            Outcome::Refused(_) => "refused",
            Outcome::TimedOut => "timed-out",
            Outcome::Stopped => "stopped",
            Outcome::Failed => "failed",
        }
    }
}

/// Writes bytes so that nothing in them can act on a terminal or end a line.
pub(crate) fn write_escaped(out: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    // Nearly every name is its own printable form, and a record holds many names.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if bytes.iter().all(is_plain)
        && let Ok(text) = core::str::from_utf8(bytes)
    {
        return out.write_str(text);
    }
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            write_escaped_char(out, character)?;
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

fn write_escaped_char(out: &mut impl fmt::Write, character: char) -> fmt::Result {
    if character == '\\' {
        out.write_str("\\\\")
    } else if character.is_control() || is_unseen(character) || is_like_a_space(character) {
        write!(out, "\\u{{{:x}}}", u32::from(character))
    } else {
        out.write_char(character)
    }
}

/// Formats `value`, escaped, keeping at most [`TEXT_BYTES_MAX`] bytes.
pub(crate) fn bounded(value: impl fmt::Display) -> String {
    struct Bounded(String);
    impl fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for character in text.chars() {
                if self.0.len() >= TEXT_BYTES_MAX {
                    return Ok(());
                }
                // A backslash stays single: parts may already be escaped.
                if character == '\\' {
                    self.0.push(character);
                } else {
                    write_escaped_char(&mut self.0, character)?;
                }
            }
            Ok(())
        }
    }
    let mut out = Bounded(String::new());
    // Writing to a string cannot fail; a failing `Display` leaves what it wrote.
    let _ = write!(out, "{value}");
    out.0
}
