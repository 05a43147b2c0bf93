//! One case, from job to verdict.

use bisim_world::WorldError;
use bisim_world::protocol::{FileKind, RawTrace};
use bisim_world::template::CANARIES;

use crate::case::Case;
use crate::known::Catalogue;
use crate::observation::{Canary, observe};
use crate::relation::{AUTHORITY_REFINEMENT, Judgement, Legs};
use crate::result::{CaseResult, is_adversarial};
use crate::subject::{Subject, Subjects};
use crate::verdict::{self, Kind, Verdict};

/// How a secret of a case's own files begins.
const CANARY: &str = "CANARY-";

/// What a verdict needs beside the traces.
#[derive(Debug)]
pub struct Judge<'a> {
    /// The named differences.
    pub catalogue: &'a Catalogue,
    /// The release of Hermes whose named differences count.
    pub version: String,
}

impl<'a> Judge<'a> {
    /// A judge of what this release of Hermes does.
    #[must_use]
    pub fn new(catalogue: &'a Catalogue, hermes: &str) -> Self {
        Self {
            catalogue,
            version: catalogue.release_for(hermes).to_owned(),
        }
    }
}

/// The secrets of a case's worlds, with the files that hold them: those of the standard
/// tree, and the words of the same kind in the case's own files.
#[must_use]
pub fn canaries(case: &Case) -> Vec<Canary<'_>> {
    let standard = CANARIES.iter().map(|text| Canary {
        text,
        path: match *text {
            "CANARY-SSH-KEY" => "/home/u/.ssh/id_rsa",
            "CANARY-AWS-KEY" => "/home/u/.aws/credentials",
            "CANARY-HERMES-ENV" => "/home/u/.hermes/.env",
            "CANARY-DB" => "/srv/data/db.sqlite",
            _ => "a secret",
        },
    });
    let files = case.job.world.iter().flat_map(|world| &world.files);
    let own = files.filter_map(|file| match &file.kind {
        FileKind::Text(text) => Some(Canary {
            text: canary_in(text)?,
            path: &file.path,
        }),
        _ => None,
    });
    standard.chain(own).collect()
}

/// The first word of a text that is a secret of its own case.
fn canary_in(text: &str) -> Option<&str> {
    let is_letter = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit();
    text.split(|letter| !(is_letter(letter) || letter == '-'))
        .find(|word| word.starts_with(CANARY) && word.len() > CANARY.len())
        .filter(|word| !CANARIES.contains(word))
}

/// Runs a case on both subjects and judges it. A case without a verdict is
/// tried once more, with fresh luck but the same rules.
#[must_use]
pub fn run_case(case: &Case, judge: &Judge<'_>, subjects: &mut Subjects) -> CaseResult {
    let first = attempt(case, judge, subjects);
    let again = first.verdict.kind == Kind::Inconclusive
        && !first.verdict.ids.iter().any(|id| {
            matches!(
                id.as_str(),
                "recorded-differs" | "hermes-unsupported" | "agent-unsupported" | "asked-wrongly"
            )
        });
    if again {
        attempt(case, judge, subjects)
    } else {
        first
    }
}

fn attempt(case: &Case, judge: &Judge<'_>, subjects: &mut Subjects) -> CaseResult {
    let hermes = match subjects.hermes.run(case.hermes_job()) {
        Ok(trace) => trace,
        Err(error) => return unjudged(case, "hermes-harness", &error, None, None),
    };
    let agent = match subjects.agent.run(case.agent_job()) {
        Ok(trace) => trace,
        Err(error) => return unjudged(case, "agent-harness", &error, Some(hermes), None),
    };
    let judgement = judge_traces(case, &hermes, None, &agent);
    let judgement = if judgement.wants_noise_run() {
        match subjects.hermes.run(case.hermes_job()) {
            Ok(again) => judge_traces(case, &hermes, Some(&again), &agent),
            Err(error) => {
                return unjudged(case, "hermes-harness", &error, Some(hermes), Some(agent));
            }
        }
    } else {
        judgement
    };
    conclude(case, judge, judgement, hermes, agent)
}

/// Judges two traces that are there already.
#[must_use]
pub fn judge_traces(
    case: &Case,
    hermes: &RawTrace,
    hermes_again: Option<&RawTrace>,
    agent: &RawTrace,
) -> Judgement {
    let canaries = canaries(case);
    (AUTHORITY_REFINEMENT.judge)(&Legs {
        case,
        hermes,
        hermes_again,
        agent,
        canaries: &canaries,
    })
}

/// Turns a judgement into the result.
#[must_use]
pub fn conclude(
    case: &Case,
    judge: &Judge<'_>,
    judgement: Judgement,
    hermes: RawTrace,
    agent: RawTrace,
) -> CaseResult {
    let canaries = canaries(case);
    let script = &case.job.script;
    let verdict = verdict::decide(
        case,
        &judge.version,
        &judgement,
        &observe(script, &hermes, &canaries),
        &observe(script, &agent, &canaries),
        judge.catalogue,
    );
    let explained_by = judgement
        .steps
        .iter()
        .flat_map(|step| {
            judge
                .catalogue
                .entries
                .iter()
                .filter(|entry| entry.catches(&judge.version, case, step))
                .map(|entry| entry.id.clone())
        })
        .collect();
    CaseResult {
        id: case.id.clone(),
        suite: case.suite.clone(),
        label: verdict.label(),
        verdict,
        explained_by,
        adversarial: is_adversarial(case),
        hermes_effect: !judgement.hermes_outside.is_empty(),
        agent_effect: !judgement.agent_outside.is_empty(),
        attempts: Vec::new(),
        judgement: Some(judgement),
        hermes: Some(hermes),
        agent: Some(agent),
    }
}

fn unjudged(
    case: &Case,
    reason: &str,
    error: &WorldError,
    hermes: Option<RawTrace>,
    agent: Option<RawTrace>,
) -> CaseResult {
    let verdict = Verdict::inconclusive(reason, error.to_string());
    CaseResult {
        id: case.id.clone(),
        suite: case.suite.clone(),
        label: verdict.label(),
        verdict,
        explained_by: Vec::new(),
        judgement: None,
        hermes,
        agent,
        adversarial: false,
        hermes_effect: false,
        agent_effect: false,
        attempts: Vec::new(),
    }
}
