//! Views whose owners are not translated: which of them are copied for that, and what is
//! told of each.

use std::collections::BTreeMap;

use super::layers::{Layer, Made};
use crate::spawn::channel::Channel;
use crate::step::StepError;

/// Where owners are not translated.
pub(super) struct Owners<'a> {
    /// Why not, by the number of the view.
    pub strange: &'a BTreeMap<usize, String>,
    /// Who copies such views, if that is wanted.
    pub copier: Option<Channel>,
    /// What became of those that were placed.
    pub told: Vec<String>,
    /// Why the command is a stranger in the last of those it may write, if it is in one.
    pub left_strange: Option<String>,
}

impl Owners<'_> {
    /// Has root copy a view in which the command would be a stranger, if it can be: else
    /// it is one, which is told.
    pub(super) fn have_copied(&mut self, layer: &Layer<'_>) -> Result<Option<Made>, StepError> {
        let Some(why) = self.strange.get(&layer.number) else {
            return Ok(None);
        };
        let made = match &self.copier {
            Some(copier) => layer.make_by_root(copier)?,
            None => Err(String::from("it was asked for that it is not")),
        };
        Ok(match made {
            Ok(upper) => {
                self.told.push(format!("{why}; so it is copied"));
                Some(Made {
                    upper,
                    copied: Some(format!("owners cannot be translated there: {why}")),
                })
            }
            Err(not) => {
                let strange = format!(
                    "{why}; nor does root copy it ({not}), so commands have a stranger's rights there: keep less in it, allow commands more memory, put it on a file system that takes id maps (a volume on ext4, xfs or btrfs), or have an ordinary user own it and start the agent"
                );
                self.told.push(strange.clone());
                self.left_strange = Some(strange);
                None
            }
        })
    }

    /// Tells of a view that can only be read.
    pub(super) fn of_what_is_read(&mut self, number: usize) {
        if let Some(why) = self.strange.get(&number) {
            self.told
                .push(format!("{why}; commands read there what everybody may"));
        }
    }

    /// Whether there is nothing to tell.
    pub(super) fn told(self) -> Result<(), String> {
        if self.told.is_empty() {
            Ok(())
        } else {
            Err(self.told.join("; "))
        }
    }
}
