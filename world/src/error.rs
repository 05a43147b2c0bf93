//! Faults of the harness itself.
//!
//! A [`WorldError`] means that a case could not be judged; it never describes
//! what a subject did.
use std::fmt;

/// A stage of building or running a world failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldError {
    /// What was being done, such as `mount overlay`.
    pub stage: String,
    /// What went wrong, for a person.
    pub message: String,
}

impl WorldError {
    /// An error of `stage`.
    pub fn new(stage: impl Into<String>, message: impl fmt::Display) -> Self {
        Self {
            stage: stage.into(),
            message: message.to_string(),
        }
    }
}

impl fmt::Display for WorldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.stage, self.message)
    }
}

impl std::error::Error for WorldError {}

/// Names the stage of a failing call.
pub(crate) trait AtStage<T> {
    /// Turns the error into a [`WorldError`] of `stage`.
    fn at(self, stage: &str) -> Result<T, WorldError>;
}

impl<T, E: fmt::Display> AtStage<T> for Result<T, E> {
    fn at(self, stage: &str) -> Result<T, WorldError> {
        self.map_err(|error| WorldError::new(stage, error))
    }
}
