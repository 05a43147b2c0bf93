//! Which rules are asked of what a run told, and in which order.

use bisim_world::protocol::FsEffect;
use serde_json::Value;

use super::complaints::Greetings;
use super::consent::without_reasons;
use super::forks::without_forks;
use super::index::without_index_bytes;
use super::listed::{ended_in_any_order, without_repetitions};
use super::message_ids::within_its_conversation;
use super::parsers::without_parsers_words;
use super::servers::without_drawn_names;
use super::siblings::Siblings;
use super::traceback::without_traceback;
use super::unwritten::{without_drafts, without_drawn_letters};
use super::{Names, without_counts, without_job_bytes, without_job_output, without_moments};

/// Every rule about what a tool answers.
pub fn without_own_words(
    tool: &str,
    value: &mut Value,
    names: &mut Names,
    siblings: &mut Siblings,
    greetings: &mut Greetings,
) {
    // In a plain text there are names, and none of the fields that all the others are about.
    if !(value.is_object() || value.is_array()) {
        names.numbered(tool, value);
        return;
    }
    without_repetitions(tool, value);
    without_counts(tool, value);
    greetings.taken_away(tool, value);
    without_drafts(tool, value);
    without_parsers_words(tool, value);
    without_reasons(tool, value);
    without_traceback(tool, value);
    without_forks(tool, value);
    without_drawn_names(tool, value);
    within_its_conversation(tool, value);
    siblings.numbered(tool, value);
    names.numbered(tool, value);
    ended_in_any_order(tool, value);
}

/// Every rule about effects.
pub fn without_own_marks(effects: &mut [FsEffect]) {
    without_job_bytes(effects);
    without_job_output(effects);
    without_index_bytes(effects);
    without_moments(effects);
    without_drawn_letters(effects);
}
