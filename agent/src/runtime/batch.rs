//! Which calls of one answer may be made at the same time.
//!
//! The core cuts the batch; this finds out which file each call is about. Links
//! are followed through the directories the agent holds, each look with a
//! permit of its own, and where the agent may not look without a question
//! nothing is known: such a call runs alone. It must never look at a place
//! outside those directories, and never permit anything.

use std::path::PathBuf;

use hermitcrab_core::{
    authority::Verb,
    batch::{LinkFact, Links, ScopeError, ScopePath, Segment, Standing, canonical, plan},
    grant::AgentId,
    tool::Tool,
};

use super::{Runtime, hands::Hands, mounts, place::Place, result::ChangeSummary, turn::Stop};
use crate::parity::batch::footprint_by;

/// Looks at no link.
struct Unlinked;

impl Links for Unlinked {
    fn look(&self, _: &ScopePath) -> LinkFact {
        LinkFact::NotALink
    }
}

impl Runtime {
    /// Cuts a batch of (tool, arguments as the model wrote them) into pieces
    /// that run one after the other.
    pub fn batch_plan(&mut self, by: AgentId, calls: &[(&str, &str)]) -> Vec<Segment> {
        let footprints: Vec<_> = calls
            .iter()
            .map(|(tool, arguments)| {
                footprint_by(tool, arguments, |raw| self.scope_of(by, tool, raw))
            })
            .collect();
        plan(&footprints)
    }

    /// The one name of the file a path leads to.
    fn scope_of(&mut self, by: AgentId, tool: &str, raw: &str) -> Result<ScopePath, ScopeError> {
        let cwd = self.cwd_of(by);
        let standing = Standing {
            cwd: cwd.to_str().ok_or(ScopeError::RelativeBase)?,
            home: self.config.home.to_str(),
        };
        let asked = canonical(raw, standing, &Unlinked)?;
        let tool = Tool::offered(tool).ok_or(ScopeError::LinkUnknown)?;
        let (mut questions, mut changes) = (Vec::new(), ChangeSummary::default());
        let found = self.with_hands((by, tool), &mut questions, &mut changes, |hands| {
            Ok(followed(hands, PathBuf::from(asked.as_str())))
        });
        let found = found.map_err(|_| ScopeError::LinkUnknown)??;
        ScopePath::lexical(found.to_str().ok_or(ScopeError::LinkUnknown)?)
    }
}

/// Where a path leads, as far as the directories that are held say.
fn followed(hands: &mut Hands<'_>, mut at: PathBuf) -> Result<PathBuf, ScopeError> {
    let mut missing = PathBuf::new();
    let found = loop {
        let Some((dir, below)) = hands.runtime.mounts.locate(&at) else {
            // No call reaches anything there.
            break at;
        };
        let place = Place {
            dir,
            below,
            absolute: at.to_string_lossy().into_owned(),
        };
        if !hands.freely(Verb::FsRead, &place) && !hands.freely(Verb::FsList, &place) {
            return Err(ScopeError::LinkUnknown);
        }
        match hands.real(&place) {
            Ok(real) => break hands.runtime.mounts.really(&real),
            Err(Stop::Missing) => {}
            Err(_) => return Err(ScopeError::LinkUnknown),
        }
        match (hands.is_absent(&place), at.file_name()) {
            (Ok(true), Some(name)) => missing = PathBuf::from(name).join(missing),
            _ => return Err(ScopeError::LinkUnknown),
        }
        at.pop();
    };
    Ok(found.join(missing))
}

impl mounts::Mounts {
    /// Where a place is when the links above its directory are followed, too:
    /// one directory can be known by two names.
    fn really(&self, place: &Place) -> PathBuf {
        match self.get(place.dir) {
            Some(mount) => match std::path::Path::new(&place.absolute).strip_prefix(&mount.path) {
                Ok(below) => mounts::real(&mount.path).join(below),
                Err(_) => PathBuf::from(&place.absolute),
            },
            None => PathBuf::from(&place.absolute),
        }
    }
}
