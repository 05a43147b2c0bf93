//! One line of a machine-readable report.

use hermitcrab_core::letters::is_unseen;

use super::place::Place;

/// What stands for a suite where something is wrong with the catalogue.
pub const CATALOGUE: &str = "known-divergences";

/// What the gate makes of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerdictClass {
    /// Conforms.
    Pass,
    /// Did not run on this machine; never counted as a pass.
    Skipped,
    /// The harness could not tell.
    Inconclusive,
    /// Fails the gate.
    Fail,
}

/// One judged case, or one fault of the catalogue, as the JUnit and SARIF writers need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The suite's name; for the catalogue [`CATALOGUE`].
    pub suite: String,
    /// The case's id.
    pub case_id: String,
    /// The verdict as words, `stricter:effects-need-a-grant` for example.
    pub verdict_code: String,
    /// What the gate makes of it.
    pub verdict_class: VerdictClass,
    /// What such a verdict means, in a sentence without its stop.
    pub means: &'static str,
    /// Why, for a person.
    pub reason: String,
    /// Where the case or entry is written.
    pub place: Option<Place>,
    /// Wall time of both subjects together, in seconds.
    pub seconds: f64,
    /// A command that shows this again.
    pub replay: String,
}

impl Row {
    /// The kind of verdict: its code without the names of what explains it.
    #[must_use]
    pub fn kind(&self) -> &str {
        let code = self.verdict_code.as_str();
        code.split_once(':').map_or(code, |(kind, _)| kind)
    }
}

/// A text with its lines, in which every letter is seen: XML has no place for control letters,
/// and a terminal obeys them. What is not seen is told by its number and never left out, so
/// that two names stay two.
#[must_use]
pub fn seen(text: &str) -> String {
    told(text, |letter| matches!(letter, '\n' | '\t'))
}

/// A name, which is on one line whatever it holds.
#[must_use]
pub fn name(text: &str) -> String {
    told(text, |_| false)
}

fn told(text: &str, is_spared: fn(char) -> bool) -> String {
    let is_odd = |letter: char| {
        letter.is_control() || is_unseen(letter) || matches!(u32::from(letter) & 0xffff, 0xfffe..)
    };
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_odd(letter) && !is_spared(letter) {
            out.extend(letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    out
}
