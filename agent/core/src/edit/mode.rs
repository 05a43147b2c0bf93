//! The standing wish of a client: which edits it does not want to be shown.

/// How much a client wants to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditMode {
    /// Every edit.
    Ask,
    /// Edits outside the workspace and the directory for temporary files.
    Workspace,
    /// Only edits that are asked about whatever is granted.
    Session,
}

/// Where edits are to be covered by standing grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Nowhere.
    Nowhere,
    /// In the workspace, if there is one, and in the directory for temporary files.
    WorkspaceAndTemp,
    /// Wherever the user has directories to give.
    Anywhere,
}

impl EditMode {
    /// Reads the client's word for it. A word nobody knows asks for everything.
    #[must_use]
    pub fn read(word: &str) -> Self {
        match word.trim() {
            "workspace_session" => Self::Workspace,
            "session" => Self::Session,
            _ => Self::Ask,
        }
    }

    /// Where the user who chose this mode grants edits for the session.
    #[must_use]
    pub fn reach(self) -> Reach {
        match self {
            Self::Ask => Reach::Nowhere,
            Self::Workspace => Reach::WorkspaceAndTemp,
            Self::Session => Reach::Anywhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_means_asking() {
        for word in [
            "",
            "ask",
            "bogus",
            "WORKSPACE_SESSION",
            "Session",
            "session;",
        ] {
            assert_eq!(EditMode::read(word).reach(), Reach::Nowhere, "{word:?}");
        }
        assert_eq!(EditMode::read(" session ").reach(), Reach::Anywhere);
        assert_eq!(
            EditMode::read("workspace_session").reach(),
            Reach::WorkspaceAndTemp
        );
    }
}
