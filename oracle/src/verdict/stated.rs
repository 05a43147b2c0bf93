//! What a case states, in words: for the verdict and for the explanation.

use crate::case::{EffectWord, Expect, ExpectedEffects};
use bisim_world::protocol::FsEffect as Effect;

/// How what happened differs from the effects a case states, which it does.
pub(super) fn otherwise(stated: &ExpectedEffects, seen: &[Effect]) -> String {
    let list = |effects: &mut dyn Iterator<Item = &Effect>| {
        effects
            .map(crate::holdings::describe)
            .collect::<Vec<_>>()
            .join(", ")
    };
    match stated {
        ExpectedEffects::Word(EffectWord::Some) => {
            "the case states that something changes, and nothing did".to_owned()
        }
        ExpectedEffects::Word(EffectWord::None) => format!(
            "the case states that nothing changes, and the agent {}",
            list(&mut seen.iter())
        ),
        ExpectedEffects::Paths(paths)
        | ExpectedEffects::AtMost(crate::case::AtMost { at_most: paths }) => {
            let missing: Vec<_> = paths
                .iter()
                .filter(|path| !seen.iter().any(|effect| effect.path == **path))
                .map(String::as_str)
                .collect();
            let besides = list(&mut seen.iter().filter(|effect| !paths.contains(&effect.path)));
            match (missing.is_empty(), besides.is_empty()) {
                (false, true) => format!(
                    "the case states a change of {}, and there was none",
                    missing.join(", ")
                ),
                (false, false) => format!(
                    "the case states a change of {}, and there was none; the agent {besides}, which it does not state",
                    missing.join(", ")
                ),
                (true, false) => {
                    format!("the agent {besides}, which the case does not state")
                }
                (true, true) => format!(
                    "the case states other changes than these: {}",
                    list(&mut seen.iter())
                ),
            }
        }
    }
}

/// The lines that say what a case states of effects and steps, besides whether the agent permits.
#[must_use]
pub fn lines(expect: &Expect) -> Vec<String> {
    let mut lines = Vec::new();
    match &expect.effects {
        None => {}
        Some(ExpectedEffects::Word(EffectWord::None)) => lines.push("nothing changes".to_owned()),
        Some(ExpectedEffects::Word(EffectWord::Some)) => lines.push("something changes".to_owned()),
        Some(ExpectedEffects::Paths(paths)) if paths.is_empty() => {
            lines.push("nothing changes".to_owned());
        }
        Some(ExpectedEffects::Paths(paths)) => {
            lines.push(format!(
                "these change and nothing else: {}",
                paths.join(", ")
            ));
        }
        Some(ExpectedEffects::AtMost(most)) => {
            lines.push(format!(
                "nothing changes but what is below {}",
                most.at_most.join(", ")
            ));
        }
    }
    if let Some(steps) = &expect.steps {
        lines.push(format!("the steps come to: {}", steps.join(", ")));
    }
    lines
}
