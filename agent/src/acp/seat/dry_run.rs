//! `/dry-run`: the agent works, and changes nothing.

use agent_client_protocol::{Error, v1::schema::PromptResponse};
use hermitcrab_core::label::Source;

use super::{Seat, broken};
use crate::chat::Chat;

impl Seat {
    /// A turn of an agent that may look, and whose every change is shown and
    /// refused, whatever was granted.
    pub(super) fn dry_run(
        &mut self,
        words: &str,
        has_attachments: bool,
    ) -> Result<PromptResponse, Error> {
        let first = self.runtime.first_agent();
        let mut forward = self.runtime.harmless_grants(first);
        forward.extend(self.runtime.asking_grants(first));
        let child = self
            .runtime
            .spawn(first, &forward)
            .map_err(|why| broken(why.to_string()))?;
        // A mode that allows what nobody granted speaks for nobody who has read something.
        self.runtime
            .hear(child, Source::File)
            .map_err(|why| broken(why.to_string()))?;
        let new = || Chat::new(&self.runtime, &self.backend.model);
        self.chat = new().in_place_of(&self.chat).of(child);
        self.scene.borrow_mut().is_dry = true;
        let came = self.turn(words, has_attachments);
        self.chat = Chat::new(&self.runtime, &self.backend.model).in_place_of(&self.chat);
        // What the child read, the conversation holds now.
        let heard = self.runtime.hear_from(first, child);
        for grant in self.runtime.held_by(child) {
            // What ended by itself need not be ended.
            let _ = self.runtime.revoke(grant);
        }
        heard.map_err(|why| broken(why.to_string()))?;
        came
    }
}
