//! One line of a machine-readable report.

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
