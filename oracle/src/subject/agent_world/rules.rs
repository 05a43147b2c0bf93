//! A case's rules, given to the agent as the program gives it those of its user's file.

use std::path::Path;

use bisim_world::protocol::{Decision, Rule};
use hermitcrab::config::RuleWords;
use hermitcrab::runtime::{GrantWords, Runtime};
use hermitcrab_core::rules::Layer;

/// What the file that the rules stand in is called in refusals.
const FILE: &str = "case";
/// Whose file it is.
const HOME: &str = "/home/u";

/// Adds the rules to a session, which knows none after it has begun.
///
/// # Errors
/// One of them means nothing.
pub(super) fn add(runtime: &mut Runtime, rules: &[Rule], workspace: &Path) -> Result<(), String> {
    for (line, rule) in (1_u32..).zip(rules) {
        let wrong = |why: String| format!("rule `{}`: {why}", rule.id);
        let such = words(rule).rules((FILE, line, Layer::User), workspace, Path::new(HOME));
        for one in such.map_err(wrong)? {
            runtime
                .add_rule(one)
                .map_err(|denial| wrong(denial.to_string()))?;
        }
    }
    Ok(())
}

/// What the rules that allow grant in a session.
pub(super) fn allowed(rules: &[Rule], workspace: &Path) -> Vec<GrantWords> {
    let allow = |rule: &&Rule| rule.decision == Decision::Allow;
    let grants = |rule: &Rule| words(rule).grants(workspace).collect::<Vec<_>>();
    rules.iter().filter(allow).flat_map(grants).collect()
}

fn words(rule: &Rule) -> RuleWords {
    RuleWords {
        id: rule.id.clone(),
        decision: rule.decision.word().to_owned(),
        verbs: rule.verbs.clone(),
        on: rule.on.clone(),
        named: rule.named.clone(),
        host: rule.host.clone(),
    }
}
