//! Jobs of a case: each is run as a session of its own, with what the case says that
//! jobs hold, as the program does with standing grants.

use std::path::{Path, PathBuf};

use bisim_world::protocol::{Job as CaseJob, Rule};
use hermitcrab::{
    cancel::Cancel,
    jobs::{Limit, Moment, RUN_MAX, Script, Work, work},
    model::ModelPort,
    person::NobodyThere,
    runtime::{GrantWords, Job, JobPort, JobRun, Lent, Runtime, RuntimeConfig},
    tools::cronjob::jobs::{is_a_name, text},
};
use hermitcrab_core::session::Asking;
use serde_json::{Map, Value};

use super::clock::CaseClock;
use super::{bounds, rules};

/// The setting that says what the jobs of a case hold.
const HELD: &str = "hermitcrab.jobs";
/// Where programs of jobs lie in a world.
const SCRIPTS: &str = "/home/u/.hermes/scripts";

/// Where jobs lie in a world.
const JOBS: &str = "/home/u/.hermes/cron";

/// Runs the jobs of a case.
pub struct CaseJobs {
    config: RuntimeConfig,
    settings: Map<String, Value>,
    rules: Vec<Rule>,
    clock: CaseClock,
    held: Vec<GrantWords>,
    model: Option<(String, Box<dyn ModelPort>)>,
}

impl CaseJobs {
    pub(super) fn new(
        config: RuntimeConfig,
        case: &CaseJob,
        clock: CaseClock,
        model: Option<(String, Box<dyn ModelPort>)>,
    ) -> Result<Self, String> {
        let listed = case.settings.get(HELD).and_then(Value::as_array);
        let held = listed.into_iter().flatten().map(|words| {
            let word = |name: &str| words.get(name).and_then(Value::as_str);
            match (word("verb"), word("on")) {
                (Some(verb), Some(on)) => Ok(GrantWords::new(verb, on)),
                _ => Err(format!("`{HELD}`: no verb and object in {words}")),
            }
        });
        Ok(Self {
            config,
            settings: case.settings.clone(),
            rules: case.rules.clone(),
            clock,
            held: held.collect::<Result<_, _>>()?,
            model,
        })
    }

    fn in_its_session(&mut self, job: &Job, now: &Moment, lent: &Lent) -> Result<JobRun, String> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let id = text(job, "id");
        if !is_a_name(id) {
            return Err(format!("`{id}` is no name of a directory"));
        }
        let mut config = self.config.clone();
        config.state_dir = config.state_dir.join("jobs").join(id);
        config.asking = Asking::Refuse;
        let workdir = text(job, "workdir");
        if !workdir.is_empty() {
            config.workspace = PathBuf::from(workdir);
        }
        let (home, workspace) = (config.home.clone(), config.workspace.clone());
        let clock = Box::new(self.clock.clone());
        let mut session =
            Runtime::open(config, Box::new(NobodyThere), clock).map_err(|error| words(&error))?;
        session.set_ceilings(bounds::of(&self.settings));
        rules::add(&mut session, &self.rules, &workspace)?;
        let agent = session.first_agent();
        session.grant_basics(agent).map_err(|error| words(&error))?;
        for held in &self.held {
            session.grant(agent, held).map_err(|error| words(&error))?;
        }
        if let Some((model, _)) = &self.model {
            let talk = GrantWords::new("model.send", model);
            session.grant(agent, &talk).map_err(|error| words(&error))?;
        }
        let name = text(job, "script");
        let script = (!name.is_empty()).then(|| Script::read(Path::new(SCRIPTS), &home, name));
        let model: Option<(&str, &mut dyn ModelPort)> = match &mut self.model {
            Some((name, port)) => Some((name, &mut **port)),
            None => None,
        };
        let limit =
            Limit::begin(Cancel::default(), RUN_MAX, None).map_err(|error| words(&error))?;
        Ok(work(
            &mut session,
            Work {
                job,
                script,
                model,
                cron: Path::new(JOBS),
                lent,
                limit: &limit,
                now,
            },
        ))
    }
}

impl JobPort for CaseJobs {
    fn run(&mut self, job: &Job, now: &Moment, lent: &Lent) -> JobRun {
        self.in_its_session(job, now, lent)
            .unwrap_or_else(|why| JobRun::failed(&why))
    }
}
