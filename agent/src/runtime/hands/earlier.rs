//! Earlier conversations: one question for all that a call may see of them.

use std::path::Path;

use hermitcrab_core::authority::{Object, Verb};

use super::{Hands, Stop};
use crate::{digest::sha256, recall::Kept};

impl Hands<'_> {
    /// The conversations that were had in directories whose files this agent may read without
    /// a question; `shown` says what for.
    ///
    /// # Errors
    /// The refusal.
    pub fn earlier(&mut self, shown: &str) -> Result<Kept, Stop> {
        let asked = self.questions.len();
        let action = (Verb::SessionRead, Object::Session, sha256(shown.as_bytes()));
        self.has_acted = true;
        let permitted = self.runtime.guarded(
            self.by,
            self.tool,
            action,
            shown.to_owned(),
            self.questions,
            |_, _| (),
        );
        permitted.map_err(|denial| Stop::Refused {
            denial,
            asked: self.questions.len() > asked,
        })?;
        let config = &self.runtime.config;
        let (common, session) = (config.common_dir.clone(), config.session);
        let may_see = |cwd: &Path| {
            let place = cwd.to_str().map(|cwd| self.resolve(cwd));
            place.is_some_and(|place| place.is_ok_and(|place| self.freely(Verb::FsRead, &place)))
        };
        Ok(Kept::look(&common, session, may_see))
    }
}
