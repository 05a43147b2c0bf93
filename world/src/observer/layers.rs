//! What a world writes, and what it started from: mounts only its observer has.
use std::fs;
use std::path::{Path, PathBuf};

use super::{own, volumes};
use crate::effects::Written;
use crate::error::{AtStage, WorldError};
use crate::protocol::FileSpec;
use crate::{case_tree, mounts};

/// Where the observer keeps a world's layers; a mount of its own.
const SCRATCH: &str = "/.w";
/// What a world may write, in total; reaching it is a full disk.
const UPPER_BYTES: &str = "64m";
/// How many files and directories a world may make.
const UPPER_INODES: &str = "32k";
/// Tripwire lines kept.
const TRIPWIRES_MAX: usize = 200;

/// The directories of one world.
pub(super) struct Layers {
    /// What the world writes: first to itself, then to each small disk of the case's.
    pub(super) written: Vec<Written>,
    /// What it started from.
    pub(super) base: PathBuf,
}

impl Layers {
    /// Mounts them, with the case's own files in what it started from.
    pub(super) fn mount(files: &[FileSpec]) -> Result<Self, WorldError> {
        let scratch = Path::new(SCRATCH);
        mounts::tmpfs(
            scratch,
            &format!("mode=0700,size={UPPER_BYTES},nr_inodes={UPPER_INODES}"),
        )?;
        let directory = |name: &str| -> Result<PathBuf, WorldError> {
            let place = scratch.join(name);
            fs::create_dir(&place).at("make world layers")?;
            Ok(place)
        };
        let (upper, work, merged) = (
            directory("upper")?,
            directory("work")?,
            directory("merged")?,
        );
        let template = Path::new("/");
        let base = if files.is_empty() {
            own::take(template, &upper).at("make world layers")?;
            mounts::overlay(&merged, &[template], Some((&upper, &work)))?;
            template.to_owned()
        } else {
            // The case's own entries are written through an overlay, so that they
            // may replace parts of the template, and then become a layer below.
            let (case, case_work, base) = (
                directory("case")?,
                directory("case-work")?,
                directory("base")?,
            );
            mounts::overlay(&base, &[template], Some((&case, &case_work)))?;
            case_tree::write(&base, files)?;
            mounts::detach(&base)?;
            mounts::overlay(&base, &[&case, template], None)?;
            own::take(&base, &upper).at("make world layers")?;
            mounts::overlay(&merged, &[&case, template], Some((&upper, &work)))?;
            base
        };
        let volumes = volumes::mount_all(files, scratch, &merged, &base)?;
        let upper = Written {
            layer: upper,
            whole: None,
        };
        Ok(Self {
            written: std::iter::once(upper).chain(volumes).collect(),
            base,
        })
    }

    /// The command lines the stand-ins noted.
    pub(super) fn tripwires(&self) -> Vec<String> {
        let own = self.written.first();
        own.map_or_else(Vec::new, |own| tripwires(&own.layer))
    }

    /// Unmounts them with all that is mounted below, when nobody is left in the world.
    pub(super) fn unmount(self) -> Result<(), WorldError> {
        mounts::detach(Path::new(SCRATCH))
    }
}

fn tripwires(upper: &Path) -> Vec<String> {
    let Ok(bytes) = fs::read(upper.join(".trip/log")) else {
        // Not written to, or removed together with its directory.
        return Vec::new();
    };
    String::from_utf8_lossy(&bytes)
        .lines()
        .take(TRIPWIRES_MAX)
        .map(str::to_owned)
        .collect()
}
