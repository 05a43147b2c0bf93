//! What commands run in, as configured.
//!
//! What for: what a command changed lies in memory until it is decided, or in a
//! directory of the agent's own: where that is wanted, and where this kernel keeps
//! the marks of a layer on no file system in memory, so that each directory would
//! have to be copied. Nothing is made on disk otherwise.

use std::fs::File;
use std::path::{Path, PathBuf};

use hermitcrab_sandbox::SpawnerProgram;
use hermitcrab_sandbox::layers::{LayerStore, Prefer, memory_holds_layers};
use hermitcrab_sandbox::spawn::{Builder, Sandbox};

use super::{Ceilings, Runtime, RuntimeConfig, uncounted::Uncounted};
use crate::state_dir::own_file;

/// The directory of layers, in the agent's own.
const LAYERS: &str = "layers";

/// A sandbox, and what a person should know of it.
pub(super) fn made(config: &RuntimeConfig, ceilings: &Ceilings) -> (Sandbox, Option<String>) {
    let (builder, why) = builder(&config.spawner, &config.state_dir, ceilings);
    let builder = match config.git_settings.as_str() {
        "" => builder,
        settings => builder.showing(config.home.join(".gitconfig"), settings),
    };
    (builder.pool(ceilings.pool()).build(), why)
}

impl Runtime {
    /// Sets the ceilings of everything from here on.
    pub fn set_ceilings(&mut self, ceilings: Ceilings) {
        let made_by = |of: &Ceilings| (of.pool(), of.layers, of.leaves_owners);
        if made_by(&ceilings) != made_by(&self.ceilings) {
            // What runs keeps the old one; what waited in it is built again.
            let (sandbox, remark) = made(&self.config, &ceilings);
            self.sandbox = sandbox;
            self.told.extend(remark);
        }
        if let Some(journal) = &mut self.journal {
            journal.count_without(Box::new(Uncounted(ceilings.caches.clone())));
        }
        self.ceilings = ceilings;
    }
}

/// How the sandboxes of commands are, and what a person should know of it.
#[must_use]
pub fn builder(
    spawner: &SpawnerProgram,
    state_dir: &Path,
    ceilings: &Ceilings,
) -> (Builder, Option<String>) {
    let builder = Sandbox::builder()
        .spawner(spawner.clone())
        .copied_for_owners(!ceilings.leaves_owners);
    match layers(state_dir, ceilings.layers) {
        Ok(None) => (builder, None),
        Ok(Some(store)) => (builder.layers(store, ceilings.layers), None),
        Err(why) => (builder, Some(why)),
    }
}

/// Where layers may lie on disk, if any may have to.
///
/// # Errors
/// Why none can, in words.
fn layers(state_dir: &Path, prefer: Prefer) -> Result<Option<LayerStore>, String> {
    let dir = state_dir.join(LAYERS);
    if prefer == Prefer::Memory && memory_holds_layers() {
        clear(dir);
        return Ok(None);
    }
    let failed = |error: &dyn std::fmt::Display| {
        format!(
            "what commands change lies in memory and not in `{}`: {error}; it has less room there",
            dir.display()
        )
    };
    own_file::state_dir(&dir).map_err(|error| failed(&error))?;
    let opened = File::open(&dir).map_err(|error| failed(&error))?;
    LayerStore::open(opened.into())
        .map(Some)
        .map_err(|error| failed(&error))
}

/// Removes what a killed agent left on disk that had layers there, where none is needed
/// there any more. Nobody waits for that.
fn clear(dir: PathBuf) {
    if !dir.is_dir() {
        return;
    }
    // What is not removed now is at the next start.
    let _begun = std::thread::Builder::new()
        .name("hermitcrab-layers".to_owned())
        .spawn(move || {
            let _swept = File::open(&dir).and_then(|opened| LayerStore::open(opened.into()));
        });
}
