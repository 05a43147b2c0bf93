//! A question about files of somebody else's making: each with who sent it.

use hermitcrab_core::approval::Question;

use super::{
    super::{
        edit::{Before, Received},
        turn::Shown,
        visible::{named, one_line},
    },
    difference, diffs, heading,
};
use crate::text::difflib::Effort;

/// Files somebody sent, about to be made.
pub fn received(question: &Question, received: &[Received<'_>]) -> Shown {
    let mut effort = Effort::of_a_question();
    let mut shown = Shown {
        text: heading(question),
        files: Vec::new(),
        besides: Vec::new(),
    };
    for one in received {
        let (path, from) = (named(&one.place.absolute), one_line(&one.from));
        let difference = difference(&path, None, Some(one.content), &mut effort);
        shown.text.push_str(&format!("{difference}{from}\n"));
        let before = &Before::Nothing;
        shown
            .files
            .push(diffs::written(&one.place, before, one.content));
        let besides = diffs::besides_written(&one.place, before, one.content);
        shown.besides.extend(besides);
        shown.besides.push(from);
    }
    shown
}
