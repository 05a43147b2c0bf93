//! How far a step had come where it was looked at before its end.

use serde::{Deserialize, Serialize};

use super::FsEffect;

/// The state between two parts of a step, such as two answers of a conversation's model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// How many of the step's questions had been put by then.
    pub asked: usize,
    /// The tree's difference from the template then, sorted by path.
    pub effects: Vec<FsEffect>,
}
