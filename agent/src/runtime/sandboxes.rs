//! What commands run in, as configured.
//!
//! What for: what a command changed lies in memory until it is decided, or in a
//! directory of the agent's own: where that is wanted, and where this kernel keeps
//! the marks of a layer on no file system in memory, so that each directory would
//! have to be copied. Where nothing is said about it, that is wanted in a workspace
//! from the first command on that needed more room than memory has. Nothing is made
//! on disk otherwise.

use std::fs::File;
use std::path::{Path, PathBuf};

use hermitcrab_sandbox::SpawnerProgram;
use hermitcrab_sandbox::layers::{LayerStore, Prefer, memory_holds_layers};
use hermitcrab_sandbox::spawn::{Builder, Limits, Sandbox};

use super::{Ceilings, Layers, Runtime, RuntimeConfig, layers::prefer, uncounted::Uncounted};
use crate::state_dir::{own_file, roomy};

/// The directory of layers, in the agent's own.
const LAYERS: &str = "layers";

/// What the sandboxes of a session are made by.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub sandbox: Sandbox,
    /// Where layers were to lie when it was made.
    pub prefer: Prefer,
}

/// Sandboxes, and what a person should know of them.
pub(super) fn made(config: &RuntimeConfig, ceilings: &Ceilings) -> (Made, Option<String>) {
    let prefer = prefer(ceilings.layers, &config.common_dir, &config.workspace);
    let (builder, why) = builder(&config.spawner, &config.state_dir, ceilings, prefer);
    let builder = match config.git_settings.as_str() {
        "" => builder,
        settings => builder.showing(config.home.join(".gitconfig"), settings),
    };
    let sandbox = builder.pool(ceilings.pool()).build();
    (Made { sandbox, prefer }, why)
}

impl Runtime {
    /// Sets the ceilings of everything from here on.
    pub fn set_ceilings(&mut self, ceilings: Ceilings) {
        let made_by = |of: &Ceilings| (of.pool(), of.layers, of.leaves_owners);
        if made_by(&ceilings) != made_by(&self.ceilings) {
            self.remake(&ceilings);
        }
        if let Some(journal) = &mut self.journal {
            journal.count_without(Box::new(Uncounted(ceilings.caches.clone())));
        }
        self.ceilings = ceilings;
    }

    /// What runs keeps the old ones; what waited in them is built again.
    fn remake(&mut self, ceilings: &Ceilings) {
        let (made, remark) = made(&self.config, ceilings);
        self.sandboxes = made;
        self.told.extend(remark);
    }

    /// The sandboxes of a command that begins. Whether one needed more room meanwhile is
    /// looked up each time: it may have been one of another session in the workspace.
    pub(super) fn sandbox(&mut self) -> Sandbox {
        let RuntimeConfig {
            common_dir,
            workspace,
            ..
        } = &self.config;
        let is_in_memory = self.sandboxes.prefer == Prefer::Memory;
        if is_in_memory && prefer(self.ceilings.layers, common_dir, workspace) == Prefer::Disk {
            let ceilings = self.ceilings.clone();
            self.remake(&ceilings);
        }
        self.sandboxes.sandbox.clone()
    }

    /// Has the layers of later commands lie on disk, where nobody wants them elsewhere and
    /// they can. Whether they will.
    pub(super) fn gives_room(&self) -> bool {
        let config = &self.config;
        let bounds = self.ceilings.narrowed(Limits::default());
        self.ceilings.layers == Layers::AsNeeded
            && bounds.disk_bytes_max > bounds.view_bytes_max
            && layers(&config.state_dir, Prefer::Disk).is_ok()
            && roomy::note(&config.common_dir, &config.workspace).is_ok()
    }
}

/// How the sandboxes of commands are, and what a person should know of it.
#[must_use]
pub fn builder(
    spawner: &SpawnerProgram,
    state_dir: &Path,
    ceilings: &Ceilings,
    prefer: Prefer,
) -> (Builder, Option<String>) {
    let builder = Sandbox::builder()
        .spawner(spawner.clone())
        .copied_for_owners(!ceilings.leaves_owners);
    match layers(state_dir, prefer) {
        Ok(None) => (builder, None),
        Ok(Some(store)) => (builder.layers(store, prefer), None),
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
