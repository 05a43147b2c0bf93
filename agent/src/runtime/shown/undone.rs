//! A question about a commit that is to be taken back.

use std::collections::BTreeMap;

use hermitcrab_core::{approval::Question, authority::Verb};
use hermitcrab_sandbox::journal::{Former, Undo};

use super::{
    super::visible::{marked, named},
    Effort, heading, in_bytes, with_content,
};

/// What taking a commit back would do. Of names in `former`, by their place among the changes,
/// it is told what they get back: what was agreed to a month ago, or by somebody else, is not
/// to come under a name that is asked about each time unseen.
pub fn undo(question: &Question, undo: &Undo, former: &BTreeMap<usize, Former>) -> String {
    let mut effort = Effort::of_a_question();
    let kept = undo.kept();
    let mut out = heading(question);
    out.push_str(&format!(
        "undo commit {}: {}\n",
        kept.id,
        marked(&kept.note)
    ));
    for (at, change) in undo.changes().iter().enumerate() {
        let what = match change.verb {
            Verb::FsCreate => "brings back",
            Verb::FsDelete => "removes",
            _ => "puts back the former version of",
        };
        let root = String::from_utf8_lossy(&change.root);
        let path = named(&format!("{root}/{}", change.path));
        out.push_str(&match former.get(&at) {
            Some(Former::File {
                bytes,
                mode,
                digest,
                content: Some(content),
                now,
            }) => {
                let head = format!("{what} {path}, {}, mode {mode:o}", in_bytes(*bytes));
                let sides = (now.as_deref(), Some(content.as_slice()));
                with_content(&head, &path, digest, sides, &mut effort)
            }
            Some(Former::File {
                bytes,
                mode,
                digest,
                content: None,
                ..
            }) => format!(
                "{what} {path}, {}, mode {mode:o}, sha256 {digest}, not shown as text\n",
                in_bytes(*bytes)
            ),
            Some(Former::Link(target)) => format!(
                "{what} link {path} to {}\n",
                named(&String::from_utf8_lossy(target))
            ),
            Some(Former::Other) | None => format!("{what} {path}\n"),
        });
    }
    out
}
