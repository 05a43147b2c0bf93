//! What a server sent that is no text, kept in files by who may make them.
//!
//! It is kept after the session was told that the server was heard, so a grant
//! from before that asks again: a file of somebody else's making is a change that
//! somebody else steers. What comes into one directory is one question, which shows all
//! of it. A refusal is told in the pieces' place and costs nothing of the rest of the answer.

use std::collections::BTreeMap;

use hermitcrab_core::{grant::AgentId, tool::Tool};

use super::ExternalServer;
use crate::{
    digest::sha256,
    mcp::{Answer, Piece},
    runtime::{
        Runtime,
        call::in_words,
        edit::Received,
        result::{Asked, ChangeSummary},
    },
};

/// Pieces of one answer that are kept.
const PIECES_MAX: usize = 16;
/// Said of what is not kept for the reason that was told already.
const AS_BEFORE: &str = "as the one before";
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
        // Why a piece is not kept, or where it is; by its place among the others.
        let mut told: BTreeMap<usize, Result<String, String>> = BTreeMap::new();
        let mut wanted: BTreeMap<&str, Vec<(usize, &Piece)>> = BTreeMap::new();
        for (at, piece) in answer.pieces().enumerate() {
            if let Some(flaw) = piece.flaw() {
                told.insert(at, Err(flaw.to_owned()));
            } else if at >= PIECES_MAX {
                let why = format!("of one answer the first {PIECES_MAX} are kept");
                told.insert(at, Err(why));
            } else {
                wanted.entry(piece.shelf()).or_default().push((at, piece));
            }
        }
        let mut is_refused = false;
        for pieces in wanted.values() {
            let kept = match is_refused {
                // Whoever said no once is not asked for each of the others.
                true => Err(AS_BEFORE.to_owned()),
                false => self.keep(by, server, pieces, questions),
            };
            match kept {
                Ok(paths) => {
                    let places = pieces.iter().map(|(at, _)| *at);
                    told.extend(places.zip(paths.into_iter().map(Ok)));
                }
                Err(why) => {
                    is_refused = true;
                    for ((at, _), why) in pieces.iter().zip(once_said(why)) {
                        told.insert(*at, Err(why));
                    }
                }
            }
        }
        let mut places = 0..;
        answer.kept(|piece| {
            let told = places.next().and_then(|at| told.remove(&at));
            match told {
                Some(Ok(path)) => piece.kept_at(&path),
                Some(Err(why)) => piece.unkept(Some(&why)),
                None => piece.unkept(None),
            }
        })
    }

    /// Keeps what comes into one directory, all of it or nothing; says where it lies.
    fn keep(
        &mut self,
        by: AgentId,
        server: &ExternalServer,
        pieces: &[(usize, &Piece)],
        questions: &mut Vec<Asked>,
    ) -> Result<Vec<String>, String> {
        let now = self.clock.now().as_millis();
        let mut changes = ChangeSummary::default();
        self.with_hands((by, Tool::External), questions, &mut changes, |hands| {
            let mut received = Vec::new();
            for (at, piece) in pieces {
                // Two pieces are told apart by when they came; nothing is overwritten if not.
                let mut drawn = piece.bytes().to_vec();
                drawn.extend_from_slice(&now.to_le_bytes());
                drawn.extend_from_slice(&at.to_le_bytes());
                let digest = sha256(&drawn);
                let drawn = digest.as_bytes().get(..DRAWN_BYTES).unwrap_or_default();
                let file = piece.file(&data_encoding::HEXLOWER.encode(drawn));
                let path = format!("{}/{file}", server.keep.trim_end_matches('/'));
                received.push(Received {
                    place: hands.resolve(&path)?,
                    content: piece.bytes(),
                    from: format!(
                        "the server `{}` sent it, and says it is {}",
                        server.name,
                        piece.called()
                    ),
                });
            }
            hands.receive(&received)?;
            let paths = received.into_iter().map(|one| one.place.absolute);
            Ok(paths.collect())
        })
        .map_err(|stop| in_words(&stop).0)
    }
}

/// A reason for the first, and that it is the same one for the others.
fn once_said(why: String) -> impl Iterator<Item = String> {
    std::iter::once(why).chain(std::iter::repeat_with(|| AS_BEFORE.to_owned()))
}
