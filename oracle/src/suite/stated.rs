//! What is wrong with what a case states: it could never come true, and a typing error in it
//! would look like a fault of the agent's, or hide one.

use crate::case::{AtMost, Case, ExpectedEffects};
use crate::observation::Class;

/// Every problem of a case's expected effects and steps.
pub(super) fn lint(case: &Case, wrong: &mut Vec<String>) {
    if let Some(steps) = &case.expect.steps {
        if steps.len() != case.job.script.len() {
            wrong.push(format!(
                "expect.steps has {} entries for {} steps",
                steps.len(),
                case.job.script.len()
            ));
        }
        for step in steps {
            let word = step.split(':').next().unwrap_or(step);
            if word != "*" && !Class::ALL.iter().any(|class| class.word() == word) {
                wrong.push(format!(
                    "expect.steps has `{word}`, which no step comes to; there are {} and `*`",
                    Class::ALL.map(Class::word).join(", ")
                ));
            }
        }
    }
    let paths = match &case.expect.effects {
        Some(
            ExpectedEffects::Paths(paths) | ExpectedEffects::AtMost(AtMost { at_most: paths }),
        ) => paths.as_slice(),
        Some(ExpectedEffects::Word(_)) | None => &[],
    };
    for path in paths.iter().filter(|path| !path.starts_with('/')) {
        wrong.push(format!(
            "expect.effects has `{path}`, which must be absolute"
        ));
    }
}
