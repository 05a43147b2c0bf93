//! Where what commands change lies until that is decided: what is wanted, and what comes of
//! it in one workspace.

use std::path::Path;

use hermitcrab_sandbox::layers::Prefer;

use crate::state_dir::roomy;

/// Where what a command changed lies until that is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layers {
    /// In memory; and on disk in a workspace where a command needed more room than that has.
    #[default]
    AsNeeded,
    /// In memory.
    Memory,
    /// On disk.
    Disk,
}

/// Where the layers of commands in a workspace are to lie.
#[must_use]
pub fn prefer(layers: Layers, common_dir: &Path, workspace: &Path) -> Prefer {
    match layers {
        Layers::Disk => Prefer::Disk,
        Layers::Memory => Prefer::Memory,
        Layers::AsNeeded if roomy::is_noted(common_dir, workspace) => Prefer::Disk,
        Layers::AsNeeded => Prefer::Memory,
    }
}
