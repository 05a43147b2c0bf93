//! What a step of a change set brings, staged.

use std::os::fd::BorrowedFd;

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;

use super::like::Like;
use super::plan::Act;
use super::stage::{Source, Stager, Usable};
use crate::changeset::ChangeSet;
use crate::changeset::node::Fingerprint;
use crate::changeset::steps::{Step, StepKind, leave_out};
use crate::dircap::FsError;

/// What is done at the step, with what it brings under a name of the stager's, and what
/// counts of that.
pub(super) fn stage(
    step: Step,
    set: &ChangeSet,
    root: BorrowedFd<'_>,
    stager: &mut Stager<'_>,
    slot: &RelPath,
) -> Result<(Act, Option<Fingerprint>), FsError> {
    let mut later = Vec::new();
    let before = match step.kind {
        StepKind::Take(before) => return Ok((Act::Take { before }, None)),
        StepKind::Meta(before, after) => return Ok((Act::Meta { before, after }, None)),
        StepKind::Move(to, what, holds) => {
            let counts = holds.and_then(|_| {
                let (old, place) = (set.old_at(&step.path), (root, &step.path));
                stager.counting_of(&to, &old, place)
            });
            return Ok((Act::Move { to, what, holds }, counts));
        }
        StepKind::Mode(change) => return Ok((Act::Mode(change), None)),
        StepKind::Put(names) => {
            later = names;
            None
        }
        StepKind::Swap(before) => Some(before),
    };
    let mut nodes = set.new_at(&step.path);
    leave_out(&mut nodes, &later);
    let (staged, counts) = match set.other_name_of(&step.path, root)? {
        Some((first, node)) if nodes.len() == 1 => {
            (stager.link_to(root, &first, slot, &node)?, None)
        }
        _ => {
            let like = Like::at(root, &step.path, set.owners())
                .map_err(|error| gone(error, &step.path))?;
            let source = Source {
                dir: set.upper(),
                at: &step.path,
            };
            let (staged, tree) = stager.copy(source, &nodes, slot, &like, Usable::ByItsOwner)?;
            (staged, stager.counting(&step.path, &tree, slot))
        }
    };
    let act = match before {
        None => Act::Put { staged },
        Some(before) => Act::Swap { staged, before },
    };
    Ok((act, counts))
}

/// A place that is not there any more is a conflict.
fn gone(error: FsError, path: &RelPath) -> FsError {
    match error {
        FsError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            FsError::denied(DenialCode::ChangedSinceShown, path)
        }
        other => other,
    }
}
