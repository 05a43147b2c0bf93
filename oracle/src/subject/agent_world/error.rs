//! What there is instead of an answer.

/// Why a probe has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// No family knows the name.
    Unknown,
    /// The input is not what the probe needs.
    BadInput(String),
    /// The agent failed.
    Failed(String),
}
