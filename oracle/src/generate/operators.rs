//! Every operator, by what it rewrites.
//!
//! Names are unique and stable: findings are filed under them.

mod busybox;
mod calls;
mod encodings;
mod expansions;
mod files;
mod frames;
mod layout;
mod programs;
mod shells;
mod spellings;
mod substitutions;
mod wrappers;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::operator::Operator;

/// All operators, in a fixed order; a variant names one by its place here.
pub fn all() -> impl Iterator<Item = &'static Operator> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The operator with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Operator> {
    static BY_NAME: LazyLock<HashMap<&str, &Operator>> =
        LazyLock::new(|| all().map(|operator| (operator.name, operator)).collect());
    BY_NAME.get(name).copied()
}

const TABLES: &[&[Operator]] = &[
    spellings::TABLE,
    expansions::TABLE,
    substitutions::TABLE,
    layout::TABLE,
    frames::TABLE,
    shells::TABLE,
    wrappers::TABLE,
    programs::TABLE,
    encodings::TABLE,
    files::TABLE,
    busybox::TABLE,
    calls::TABLE,
];
