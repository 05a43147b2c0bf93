//! How far a sandbox is proved to hold.

/// What a probe inside the sandbox proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Every layer was seen to work.
    Isolated,
    /// It is known not to isolate.
    Unisolated,
    /// Something could not be proved.
    Unknown,
}
