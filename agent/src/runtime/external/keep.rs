//! What a server sent that is no text, kept in files by who may make them.
//!
//! It is kept after the session was told that the server was heard, so a grant
//! from before that asks again: a file of somebody else's making is a change that
//! somebody else steers. A refusal is told in the piece's place and costs nothing
//! of the rest of the answer.

use hermitcrab_core::{grant::AgentId, tool::Tool};

use super::ExternalServer;
use crate::{
    digest::sha256,
    mcp::{Answer, Piece},
    runtime::{
        Runtime,
        call::in_words,
        result::{Asked, ChangeSummary},
    },
};

/// Pieces of one answer that are kept.
const PIECES_MAX: usize = 16;
/// Bytes of a digest that make the letters of a name.
const DRAWN_BYTES: usize = 6;

impl Runtime {
    /// An answer with what of it is no text kept, or with the reason why not.
    pub(super) fn kept(
        &mut self,
        by: AgentId,
        server: &ExternalServer,
        answer: Answer,
        questions: &mut Vec<Asked>,
    ) -> Answer {
        // What the others of a batch heard is not told yet, so nothing can be decided.
        if self.heard_late.is_some() {
            return answer
                .kept(|piece| piece.unkept(Some("it came beside other calls; call it by itself")));
        }
        let mut place = 0;
        let mut is_refused = false;
        answer.kept(|piece| {
            place += 1;
            let why = match piece.flaw() {
                Some(flaw) => flaw.to_owned(),
                None if place > PIECES_MAX => {
                    format!("of one answer the first {PIECES_MAX} are kept")
                }
                // Whoever said no once is not asked for each of the others.
                None if is_refused => "as the one before".to_owned(),
                None => match self.keep(by, (server, piece, place), questions) {
                    Ok(path) => return piece.kept_at(&path),
                    Err(why) => {
                        is_refused = true;
                        why
                    }
                },
            };
            piece.unkept(Some(&why))
        })
    }

    fn keep(
        &mut self,
        by: AgentId,
        (server, piece, place): (&ExternalServer, &Piece, usize),
        questions: &mut Vec<Asked>,
    ) -> Result<String, String> {
        // Two pieces are told apart by when they came; nothing is overwritten if not.
        let mut drawn = piece.bytes().to_vec();
        drawn.extend_from_slice(&self.clock.now().as_millis().to_le_bytes());
        drawn.extend_from_slice(&place.to_le_bytes());
        let digest = sha256(&drawn);
        let drawn = digest.as_bytes().get(..DRAWN_BYTES).unwrap_or_default();
        let file = piece.file(&data_encoding::HEXLOWER.encode(drawn));
        let path = format!("{}/{file}", server.keep.trim_end_matches('/'));
        let from = format!(
            "the server `{}` sent it, and says it is {}",
            server.name,
            piece.called()
        );
        let mut changes = ChangeSummary::default();
        self.with_hands((by, Tool::External), questions, &mut changes, |hands| {
            let place = hands.resolve(&path)?;
            hands.receive(&place, piece.bytes(), &from)?;
            Ok(place.absolute)
        })
        .map_err(|stop| in_words(&stop).0)
    }
}
