//! Strictness that needs no entry in the catalogue: a generated case says by
//! itself what is held, so a refusal of what is not held is right by definition.
//!
//! The list of known divergences is for the suites, whose cases prove each
//! entry's edges. Here a closed list of rules is asked instead, by a book of
//! the oracle's own ([`Holdings`]); what none of them names is a finding.

mod begun;
mod edits;
mod linked;
mod names;
mod ordinary;
mod own_name;
mod running;
mod service;
#[cfg(test)]
mod testing;
mod unvouched;
mod view;
mod yes;

use bisim_world::protocol::{FileKind, Happened, RawTrace, Step};

use crate::case::Case;
use crate::generate::surroundings::{JOBS, MEMORIES, SKILLS};
use crate::holdings::{Holdings, below};
use crate::relation::{Finding, StepJudgement};
use crate::result::CaseResult;
use crate::verdict::{EXPECTATION, Kind};

/// What remains of a result once every difference with a name is left out: the
/// worst kind among the others. To act where Hermes asks needs no name: the
/// relation finds that only where nothing left the grants.
pub fn unnamed(case: &Case, result: &CaseResult) -> Option<Kind> {
    worst(case, result).map(|(kind, _)| kind)
}

/// The same with the step it is about, if it is about one.
pub(super) fn worst<'r>(
    case: &Case,
    result: &'r CaseResult,
) -> Option<(Kind, Option<&'r StepJudgement>)> {
    let verdict = &result.verdict;
    let Some(judgement) = &result.judgement else {
        return Some((verdict.kind, None));
    };
    // What a case says of the agent on its own is never explained away.
    if verdict.fingerprint == EXPECTATION && !verdict.kind.passes() {
        return Some((verdict.kind, None));
    }
    judgement
        .steps
        .iter()
        .filter_map(|step| {
            let kind = match step.finding {
                Finding::Equal | Finding::EqualMasked | Finding::Attenuated => None,
                Finding::Stricter | Finding::Different => {
                    let kind = if step.finding == Finding::Stricter {
                        Kind::StricterUnnamed
                    } else {
                        Kind::Different
                    };
                    rule(case, result, step).is_none().then_some(kind)
                }
                Finding::Inconclusive => Some(Kind::Inconclusive),
                Finding::Weaker => Some(Kind::Weaker),
                Finding::BeyondGrant => Some(Kind::BeyondGrant),
                Finding::BothUnsafe => Some(Kind::BothUnsafe),
            };
            kind.map(|kind| (kind, Some(step)))
        })
        // The first of the worst: what follows may follow from it.
        .reduce(|worst, next| if next.0 > worst.0 { next } else { worst })
}

/// The rule that names a difference.
fn rule(case: &Case, result: &CaseResult, step: &StepJudgement) -> Option<&'static str> {
    if step.hermes.contains(":outside") && !step.agent.contains(":outside") {
        return Some("hermes-reached-outside");
    }
    if let Some(rule) = names::rule(case, step) {
        return Some(rule);
    }
    if let Some(Step::Call { tool, args, .. }) = case.job.script.get(step.step)
        && tool == "patch"
        && let Some(rule) = own_name::rule(case, args, step)
    {
        return Some(rule);
    }
    if step.finding == Finding::Different {
        return service::rule(case, result, step);
    }
    if edits::is_about_another_text(case, result, step) {
        return Some("another-text-by-then");
    }
    if edits::is_about_another_file(case, step) {
        return Some("shown-from-where-the-shell-began");
    }
    let refused_or_asked = [
        "refused:",
        "refused+asked",
        "asked-refused",
        "discarded",
        "tool-error",
        "ran+asked",
    ]
    .iter()
    .any(|class| step.agent.starts_with(class));
    (refused_or_asked && !is_held(case, result.agent.as_ref(), step.step)).then_some("not-held")
}

/// Whether a step is a search in which Hermes, without ripgrep, finds nothing because it
/// begins with a dot, and in which the agent finds what is there.
pub(crate) fn is_found_below_a_dot(case: &Case, result: &CaseResult, step: &StepJudgement) -> bool {
    step.finding == Finding::Different
        && service::rule(case, result, step) == Some(service::BELOW_A_DOT)
}

/// What is surely held when this step begins, by what happened until then while the agent's
/// user was asked.
fn followed<'c>(case: &'c Case, agent: Option<&RawTrace>, at: usize) -> Holdings<'c> {
    let mut holdings = Holdings::new(case);
    for (place, earlier) in case.job.script.iter().take(at).enumerate() {
        holdings.follow_meanwhile(earlier, &meanwhile(agent, place));
        // No child is made to whom something would be forwarded that is not held.
        let is_made = match earlier {
            Step::Spawn { forward, .. } => forward.iter().all(|grant| holdings.is_live(grant)),
            _ => true,
        };
        if is_made {
            holdings.follow(earlier);
        }
        if matches!(earlier, Step::Call { .. }) {
            holdings.spend();
        }
    }
    holdings
}

/// Of each question of a step, what happened while it waited.
fn meanwhile(agent: Option<&RawTrace>, at: usize) -> Vec<Vec<Happened>> {
    let step = agent.and_then(|agent| agent.steps.get(at));
    let questions = step.into_iter().flat_map(|step| &step.questions);
    questions
        .map(|question| question.meanwhile.clone())
        .collect()
}

/// Whether what is held at this step surely covers all the call may do, to its end.
fn is_held(case: &Case, agent: Option<&RawTrace>, at: usize) -> bool {
    let mut holdings = followed(case, agent, at);
    if let Some(step) = case.job.script.get(at) {
        holdings.follow_meanwhile(step, &meanwhile(agent, at));
    }
    let (tool, args, by) = match case.job.script.get(at) {
        Some(Step::Call { tool, args, by }) => (tool, args, by),
        Some(Step::Spawn { forward, .. }) => {
            return forward.iter().all(|grant| holdings.is_live(grant));
        }
        _ => return true,
    };
    let runs = matches!(tool.as_str(), "terminal" | "execute_code");
    // A child runs commands only if that was forwarded to it.
    if runs && !holdings.may(by.as_deref(), "proc.exec", "*") {
        return false;
    }
    let Some(paths) = places(case, tool, args) else {
        return false;
    };
    let verbs: &[&str] = match tool.as_str() {
        "read_file" => &["fs.read"],
        // Whoever searches a directory lists it.
        "search_files" => &["fs.read", "fs.list"],
        _ => &["fs.create", "fs.modify", "fs.delete"],
    };
    let is_one = paths.len() == 1;
    // What leads elsewhere is nobody's.
    paths.iter().all(|path| {
        // A change and a search look first; where only a grant for so many uses lets them
        // look, that use may have been the last.
        let mut left = holdings.clone();
        left.spend();
        let looks_freely = left.may(by.as_deref(), "fs.read", path);
        // Each thing a command changes is a use, and it may change several; so is each
        // directory a search lists, and each file it reads.
        let is_one_use = match tool.as_str() {
            "terminal" | "execute_code" | "search_files" => false,
            "read_file" => true,
            _ => looks_freely && is_one,
        };
        let holdings = if is_one_use { &holdings } else { &left };
        verbs
            .iter()
            .all(|verb| holdings.may(by.as_deref(), verb, path))
    })
}

/// All places a call may be about, as far as it says them plainly.
fn places(case: &Case, tool: &str, args: &serde_json::Value) -> Option<Vec<String>> {
    let field = |name: &str| args.get(name).and_then(serde_json::Value::as_str);
    match tool {
        // A command may do anything below its directory, and more where it names more.
        "terminal" | "execute_code" => {
            let text = match tool {
                "terminal" => field("command").map(str::to_owned),
                _ => field("code").map(|code| code.replace(CODE_MARKS, " ")),
            };
            let stays = !names_elsewhere(case, &text.unwrap_or_default());
            stays.then(|| vec![case.cwd().to_owned()])
        }
        "memory" => Some(vec![MEMORIES.to_owned()]),
        "skill_manage" => Some(vec![SKILLS.to_owned()]),
        "cronjob" => Some(vec![JOBS.to_owned()]),
        // A patch names its files in its text.
        "patch" if args.get("patch").is_some() => {
            let text = field("patch").unwrap_or_default();
            let headings = text.lines().filter_map(|line| line.strip_prefix("*** "));
            headings
                .filter(|heading| !matches!(*heading, "Begin Patch" | "End Patch" | "End of File"))
                .map(|heading| {
                    let (what, path) = heading.split_once(" File: ")?;
                    let is_plain = matches!(what, "Add" | "Update" | "Delete");
                    plain(case, path).filter(|_| is_plain)
                })
                .collect::<Option<Vec<String>>>()
                .filter(|paths| !paths.is_empty())
        }
        _ => field("path")
            .and_then(|path| plain(case, path))
            .map(|path| vec![path]),
    }
}

/// What stands around a text in code.
const CODE_MARKS: [char; 5] = ['\'', '"', '(', ')', ','];

/// Whether a word of a command begins at the root or at a home, and not in the workspace.
fn names_elsewhere(case: &Case, command: &str) -> bool {
    command
        .split_whitespace()
        .any(|word| word.starts_with(['/', '~']) && word != "/dev/null" && !below(word, case.cwd()))
}

/// The absolute path, if it is one below the workspace that no prepared link,
/// pipe or second name stands in.
fn plain(case: &Case, path: &str) -> Option<String> {
    if path.contains(['\0', '~', '$']) {
        return None;
    }
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{}/{path}", case.cwd())
    };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            // Where a directory is not there, or is a link, this means something else.
            ".." => return None,
            name => names.push(name),
        }
    }
    let whole = format!("/{}", names.join("/"));
    let special = case
        .job
        .world
        .iter()
        .flat_map(|world| &world.files)
        .any(|file| {
            below(&whole, &file.path)
                && matches!(
                    file.kind,
                    FileKind::Symlink(_)
                        | FileKind::Hardlink(_)
                        | FileKind::Fifo(_)
                        | FileKind::Mount(_)
                )
        });
    (below(&whole, case.cwd()) && !special).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Defaults;
    use crate::generate::Specimen;

    fn case(name: &str) -> Case {
        let file = Specimen::named(name).unwrap().case_file().unwrap();
        Case::resolve("generated", &Defaults::default(), file)
    }

    #[test]
    fn what_is_plainly_held_is_held_and_nothing_else() {
        for (name, at, held) in [
            ("path:read+plain+nothing", 0, true),
            ("path:write+plain+all", 0, true),
            ("path:write+plain+all+double-slash~0", 0, true),
            ("path:write+plain+reading", 0, false),
            ("path:read+plain+ruled", 0, false),
            ("path:write+plain+ruled", 0, false),
            ("path:read+link-out+all", 0, false),
            ("path:read+up-and-in-again+all", 0, false),
            ("path:read+absolute-key+all", 0, false),
            ("path:read+hard-link-out+all", 0, false),
            ("sequence:0+h0+c2.0", 1, true),
            ("sequence:0+h0+r0+c2.0", 2, false),
            ("sequence:0+h0+c6.0", 1, true),
            // The command is about data that lies elsewhere.
            ("sequence:0+h0+c8.0", 1, false),
            ("sequence:0+h1+a2+c2.0", 2, false),
            ("sequence:0+h0+s0+c2.1", 2, false),
            ("sequence:0+h0+s1+c2.1", 2, true),
            ("sequence:0+h0+e+c2.0", 2, false),
            ("sequence:0+h0+c7.0", 1, true),
            ("sequence:0+h0+s1+c2.1", 1, true),
            ("sequence:0+h0+r0+s1+c2.1", 2, false),
            ("sequence:0+h5+h0+s3+c14.1", 3, true),
            ("sequence:0+h3+h0+s3+c14.1", 3, true),
            ("sequence:0+h3+h0+r0+s3+c14.1", 4, false),
            ("sequence:0+h3+h0+r0+s2+c14.1", 4, true),
            ("sequence:0+h0+a3+c2.0", 2, true),
            ("sequence:0+h0+a4+c2.0", 2, false),
            ("sequence:0+a4+c14.0", 1, false),
            ("sequence:0+a4+e+c14.0", 2, true),
            ("sequence:0+h2+c2.0", 1, true),
            ("sequence:0+h2+c7.0", 1, false),
            // What is forwarded may be read, and may not be listed.
            ("sequence:4+h3+s3+c14.1", 2, false),
            ("sequence:0+a4+h2+c2.0", 2, false),
            ("sequence:0+a4+h2+c0.0", 2, true),
            ("sequence:4+a4+h2+c14.0", 2, false),
            ("sequence:4+a4+h0+c14.0", 2, true),
            ("sequence:0+a4+h0+c2.0", 2, true),
            ("sequence:0+h2+c2.0+c2.0", 2, false),
            ("sequence:0+h0+s1+c7.1", 2, false),
            ("sequence:0+h0+c15.0", 1, true),
            ("sequence:0+h6+c15.0", 1, false),
            ("sequence:0+h0+c16.0", 1, true),
            ("sequence:0+h0+c17.0", 1, false),
            ("sequence:0+h0+c19.0", 1, true),
            ("sequence:0+h0+c20.0", 1, false),
            ("sequence:0+h0+s1+c19.1", 2, false),
            ("sequence:0+h0+c30.0", 1, false),
            ("sequence:0+h11+c30.0", 1, true),
            ("sequence:0+h12+a2+c30.0", 2, false),
            ("sequence:0+h11+c31.0", 1, false),
            ("sequence:0+h13+c31.0", 1, true),
            ("sequence:0+h14+c34.0", 1, true),
        ] {
            assert_eq!(is_held(&case(name), None, at), held, "{name}");
        }
    }

    #[test]
    fn a_refusal_of_what_is_not_held_has_a_name_whether_something_was_asked_or_not() {
        for (name, at, named) in [
            ("sequence:0+h0+c17.0", 1, Some("not-held")),
            ("sequence:0+h0+c2.0", 1, None),
        ] {
            let case = case(name);
            for class in [
                "refused:none:no-cap",
                "refused+asked:none:no-cap",
                "asked-refused:none",
                "discarded:none",
            ] {
                let step = StepJudgement {
                    finding: Finding::Stricter,
                    hermes: "tool-error:none".to_owned(),
                    agent: class.to_owned(),
                    ..testing::judgement(at)
                };
                let seen = || testing::trace(at + 1, &serde_json::Value::Null, &[]);
                let result = testing::result(&case, &step, seen(), seen());
                assert_eq!(rule(&case, &result, &step), named, "{name}: {class}");
            }
        }
    }
}
