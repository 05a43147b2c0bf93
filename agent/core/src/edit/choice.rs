//! The answers a client is offered, and what each one gives.

use alloc::vec::Vec;

/// One answer a client can pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Yes, this once.
    AllowOnce,
    /// Yes, until the session ends.
    AllowSession,
    /// Yes, also in later sessions.
    AllowAlways,
    /// No.
    Deny,
    /// No, also next time.
    DenyAlways,
}

/// What an answer gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Granted {
    /// One use.
    Once,
    /// Until the session ends.
    Session,
    /// Beyond the session, to be confirmed anew at intervals.
    Always,
    /// Nothing.
    Nothing,
}

/// Whether a lasting yes may be offered at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permanence {
    /// It may.
    Offered,
    /// It may not.
    Withheld,
}

/// What a judge in front of the user said, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JudgeVerdict {
    /// It said nothing against it.
    NoObjection,
    /// It said no: the user may overrule it once, and no longer.
    Denied,
}

impl Choice {
    const ALL: [Self; 5] = [
        Self::AllowOnce,
        Self::AllowSession,
        Self::AllowAlways,
        Self::Deny,
        Self::DenyAlways,
    ];

    /// The id on the wire.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowSession => "allow_session",
            Self::AllowAlways => "allow_always",
            Self::Deny => "deny",
            Self::DenyAlways => "deny_always",
        }
    }

    /// The nearest kind the client protocol knows; it has no word for a session.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowSession | Self::AllowAlways => "allow_always",
            Self::Deny => "reject_once",
            Self::DenyAlways => "reject_always",
        }
    }

    fn gives(self) -> Granted {
        match self {
            Self::AllowOnce => Granted::Once,
            Self::AllowSession => Granted::Session,
            Self::AllowAlways => Granted::Always,
            Self::Deny | Self::DenyAlways => Granted::Nothing,
        }
    }
}

impl Granted {
    /// The word for it: `once`, `session`, `always`, `deny`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Nothing => "deny",
        }
    }
}

/// The answers to offer, in the order to show them.
#[must_use]
pub fn offered(permanence: Permanence, judge: JudgeVerdict) -> Vec<Choice> {
    Choice::ALL
        .into_iter()
        .filter(|choice| match choice {
            Choice::AllowOnce | Choice::Deny => true,
            Choice::AllowSession | Choice::DenyAlways => judge == JudgeVerdict::NoObjection,
            Choice::AllowAlways => {
                judge == JudgeVerdict::NoObjection && permanence == Permanence::Offered
            }
        })
        .collect()
}

/// What the picked id gives. `None` stands for a client that picked nothing;
/// an id that was not offered gives nothing, whatever it is.
#[must_use]
pub fn understood(picked: Option<&str>, offered: &[Choice]) -> Granted {
    offered
        .iter()
        .find(|choice| Some(choice.id()) == picked)
        .map_or(Granted::Nothing, |choice| choice.gives())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(permanence: Permanence, judge: JudgeVerdict) -> Vec<&'static str> {
        offered(permanence, judge)
            .into_iter()
            .map(Choice::id)
            .collect()
    }

    #[test]
    fn a_lasting_yes_is_offered_only_where_it_may_be() {
        let all = [
            "allow_once",
            "allow_session",
            "allow_always",
            "deny",
            "deny_always",
        ];
        assert_eq!(ids(Permanence::Offered, JudgeVerdict::NoObjection), all);
        let session = ["allow_once", "allow_session", "deny", "deny_always"];
        assert_eq!(
            ids(Permanence::Withheld, JudgeVerdict::NoObjection),
            session
        );
        for permanence in [Permanence::Offered, Permanence::Withheld] {
            assert_eq!(
                ids(permanence, JudgeVerdict::Denied),
                ["allow_once", "deny"]
            );
        }
    }

    #[test]
    fn a_choice_has_the_nearest_kind_of_the_protocol_and_gives_what_it_says() {
        for (choice, kind, gives) in [
            (Choice::AllowOnce, "allow_once", "once"),
            (Choice::AllowSession, "allow_always", "session"),
            (Choice::AllowAlways, "allow_always", "always"),
            (Choice::Deny, "reject_once", "deny"),
            (Choice::DenyAlways, "reject_always", "deny"),
        ] {
            assert_eq!((choice.kind(), choice.gives().as_str()), (kind, gives));
        }
    }

    #[test]
    fn an_answer_that_was_not_offered_gives_nothing() {
        let all = offered(Permanence::Offered, JudgeVerdict::NoObjection);
        assert_eq!(understood(Some("allow_once"), &all), Granted::Once);
        assert_eq!(understood(Some("allow_session"), &all), Granted::Session);
        assert_eq!(understood(Some("allow_always"), &all), Granted::Always);
        for picked in [
            Some("deny"),
            Some("deny_always"),
            Some("ALLOW_ONCE"),
            Some("yes"),
            Some(""),
            None,
        ] {
            assert_eq!(understood(picked, &all), Granted::Nothing, "{picked:?}");
        }
        let few = offered(Permanence::Offered, JudgeVerdict::Denied);
        assert_eq!(understood(Some("allow_always"), &few), Granted::Nothing);
    }
}
