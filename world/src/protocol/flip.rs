//! Names of a world that change places while a step runs, as a case says it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FileSpec;

/// Two names and when they change places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flip {
    /// Absolute path of what stands there at first; not a link.
    pub one: String,
    /// Absolute path of the link that takes its place.
    pub other: String,
    /// Both, made on top of the starting tree: a directory of that tree itself
    /// cannot change places.
    pub files: Vec<FileSpec>,
    /// When.
    pub when: When,
    /// The first step during which they do, counted from 0: those before work in peace.
    #[serde(default, skip_serializing_if = "is_first")]
    pub from: usize,
}

/// Whether names change places from the first step on.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the serializer hands a field over by reference"
)]
const fn is_first(from: &usize) -> bool {
    *from == 0
}

/// When two names change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Once, before the step begins (write `true`).
    First(bool),
    /// As fast as one process can, all through the step (write `true`).
    Always(bool),
    /// Right before this system call that names them, counted from 1, for good.
    Before(u32),
    /// Right before this one, and back before the next.
    During(u32),
}
