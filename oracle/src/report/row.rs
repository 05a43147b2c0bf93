//! One line of a machine-readable report.

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

/// One judged case, as the JUnit and SARIF writers need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The suite's name.
    pub suite: String,
    /// The case's id.
    pub case_id: String,
    /// The verdict as words, `stricter:effects-need-a-grant` for example.
    pub verdict_code: String,
    /// What the gate makes of it.
    pub verdict_class: VerdictClass,
    /// Why, for a person.
    pub reason: String,
    /// Wall time of both subjects together, in seconds.
    pub seconds: f64,
    /// A command that shows this case again.
    pub replay: String,
}
