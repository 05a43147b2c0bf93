//! From a proposal and an answer to a result.

use core::fmt;

use crate::fault::{self, Fault};

use super::proposal::{Proposal, ProposalError};

/// What became of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The client agreed to this edit.
    Agreed,
    /// The client refused.
    Refused,
    /// The client failed, fell silent or said something nobody offered.
    Failed,
}

/// What the gate says about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The call is no edit: nothing for this gate to say, neither yes nor no.
    NotAnEdit,
    /// The edit was shown and agreed to.
    Agreed,
    /// It must not go ahead.
    Denied(GateDenial),
}

/// Why an edit must not go ahead. The wording is what the model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateDenial {
    /// The client refused, or gave no answer that could count.
    NotAgreed,
    /// There was nothing faithful to show.
    NotShowable(ProposalError),
}

impl fmt::Display for GateDenial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAgreed => {
                formatter.write_str("Edit approval denied by ACP client; file was not modified.")
            }
            Self::NotShowable(error) => {
                write!(
                    formatter,
                    "Edit approval denied: could not prepare diff ({error})"
                )
            }
        }
    }
}

impl core::error::Error for GateDenial {}

/// Asks about an edit that could be prepared; refuses one that could not.
///
/// `prepared` is `None` for a call that edits nothing.
pub fn settle(
    prepared: Option<Result<Proposal, ProposalError>>,
    ask: impl FnOnce(&Proposal) -> Consent,
) -> Gate {
    match prepared {
        None => Gate::NotAnEdit,
        Some(Err(_)) if fault::is(Fault::EditUnseenIsAgreed) => Gate::Agreed,
        Some(Err(error)) => Gate::Denied(GateDenial::NotShowable(error)),
        Some(Ok(proposal)) => match ask(&proposal) {
            Consent::Agreed => Gate::Agreed,
            Consent::Failed if fault::is(Fault::EditFailureIsYes) => Gate::Agreed,
            Consent::Refused | Consent::Failed => Gate::Denied(GateDenial::NotAgreed),
        },
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    fn prepared() -> Result<Proposal, ProposalError> {
        let (paths, new_text) = (alloc::vec!["a".to_string()], String::new());
        Ok(Proposal {
            tool: "write_file",
            paths,
            old_text: None,
            new_text,
        })
    }

    #[test]
    fn only_a_yes_lets_an_edit_go_ahead() {
        assert_eq!(settle(Some(prepared()), |_| Consent::Agreed), Gate::Agreed);
        for consent in [Consent::Refused, Consent::Failed] {
            let expected = Gate::Denied(GateDenial::NotAgreed);
            assert_eq!(settle(Some(prepared()), |_| consent), expected);
        }
    }

    #[test]
    fn what_cannot_be_shown_is_refused_without_asking() {
        let error = ProposalError::PathMissing;
        let got = settle(Some(Err(error.clone())), |_| {
            unreachable!("nobody is asked")
        });
        assert_eq!(got, Gate::Denied(GateDenial::NotShowable(error)));
    }

    #[test]
    fn a_call_that_edits_nothing_is_not_asked_about() {
        assert_eq!(
            settle(None, |_| unreachable!("nobody is asked")),
            Gate::NotAnEdit
        );
    }
}
