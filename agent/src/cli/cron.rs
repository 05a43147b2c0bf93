//! `cron`: the jobs, what each may do, and running those that are due.
//!
//! A job is run as a session of its own in which nobody is asked. Beside what
//! every session of its directory has, it holds what the person granted that
//! job, until that grant ends. The grant is for the job as it was: one whose
//! words, script or place changed afterwards has lost it.

mod agreed;
mod outputs;
mod shelf;

use std::{fs::TryLockError, io};

use clap::{Args, Subcommand};
use hermitcrab_core::session::Asking;
use jiff::Zoned;
use serde_json::{Value, json};

use self::shelf::{Shelf, shelf, skills_of};
use super::{Setting, Trouble, Where, as_json::print_json, caps, choice, open, say, tell};
use crate::{
    ambient::{self, Interruptible},
    audit::beside,
    cancel::Cancel,
    exit,
    jobs::{Limit, Script, Work, sources_of},
    model::ModelPort,
    person::NobodyThere,
    runtime::{Job, JobPort, JobRun, Lent},
    screen::{on_one_line, visible},
    text::visible::escaped,
    tools::cronjob::{
        jobs, schedule,
        turns::{self, Claim, RUN_MAX, claimant},
    },
};

/// Work that is to be done later.
#[derive(Debug, Args)]
pub struct Cron {
    #[command(flatten)]
    place: Where,
    /// As `list` takes it, which is what is done without a command
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    what: Option<CronWhat>,
}

#[derive(Debug, Subcommand)]
enum CronWhat {
    /// Show the jobs, and what each holds
    List {
        /// As JSON, one for each line
        #[arg(long)]
        json: bool,
    },
    /// Keep a grant for one job as it is now; it ends as standing grants do
    Grant {
        /// As listed, or the beginning of its number
        job: String,
        /// Such as fs.modify=./notes
        #[arg(required = true, value_name = "VERB=OBJECT")]
        grants: Vec<String>,
    },
    /// Take jobs off the list for good, and end what they hold
    Remove {
        /// As listed, or the beginning of its number
        #[arg(required = true, value_name = "JOB")]
        jobs: Vec<String>,
    },
    /// Run the jobs that are due, one after the other, with nobody to ask
    Tick {
        #[command(flatten)]
        choice: choice::Choice,
    },
}

pub fn cron(cron: &Cron) -> u8 {
    let done = match cron
        .what
        .as_ref()
        .unwrap_or(&CronWhat::List { json: false })
    {
        CronWhat::List { json } => list(&cron.place, *json || cron.json),
        _ if cron.json => Err(caps::of_the_list("`--json` is")),
        CronWhat::Grant { job, grants } => grant(&cron.place, job, grants),
        CronWhat::Remove { jobs } => remove(&cron.place, jobs),
        CronWhat::Tick { choice } => tick(&cron.place, choice),
    };
    done.unwrap_or_else(|(message, code)| {
        say(&message);
        code
    })
}

fn list(base: &Where, json: bool) -> Result<u8, Trouble> {
    let shelf = shelf()?;
    let all = shelf.read()?;
    if all.is_empty() && !json {
        tell(
            "there are no jobs; a model makes them with `cronjob`, once `hermitcrab config add-directory ~/.hermes/cron` \
             lets it see the list",
        );
    }
    for job in &all {
        let recovered = turns::recovered(job, &ambient::now_here());
        let next = match jobs::text(job, "next_run_at") {
            _ if !jobs::enabled(job) => "paused",
            "" => recovered.as_deref().unwrap_or("never"),
            next => next,
        };
        if json {
            print_json(&as_json(base, &shelf, job, next)?);
            continue;
        }
        tell(&format!(
            "{}  {}  {}\n    next: {}",
            on_one_line(jobs::text(job, "id")),
            on_one_line(&jobs::in_words(job)),
            on_one_line(&jobs::name(job)),
            on_one_line(&by_the_clock(next))
        ));
        let last = jobs::text(job, "last_run_at");
        if !last.is_empty() {
            let error = match jobs::text(job, "last_error") {
                "" => String::new(),
                error => format!(": {error}"),
            };
            let status = jobs::text(job, "last_status");
            tell(&format!(
                "    last: {}",
                on_one_line(&format!("{}, {status}{error}", by_the_clock(last)))
            ));
        }
        if ran_in_time_to_come(job) {
            tell(
                "    waits long: the clock was ahead when it ran last; `pause` and then `resume` by `cronjob` give it a time by \
                 the clock as it is",
            );
        }
        let script = readable(shelf.script(job));
        let (holds, cannot) = held(&Shelf::place(base, job, script.as_ref()))?;
        for line in holds {
            tell(&format!("    holds {line}"));
        }
        if let Some(why) = cannot {
            tell(&format!("    cannot work: {}", on_one_line(&why)));
        }
    }
    Ok(exit::OK)
}

/// A moment as whoever looks has it on the clock; words that are none as they are.
fn by_the_clock(kept: &str) -> String {
    let now = ambient::now_here();
    schedule::kept(kept, &now).map_or_else(
        || kept.to_owned(),
        |at| {
            let at = at.with_time_zone(now.time_zone().clone());
            at.strftime("%Y-%m-%d %H:%M").to_string()
        },
    )
}

/// What a job holds, and why it cannot be told: of a directory that is gone nobody can say
/// whose it was, and what is kept for it counts nowhere.
fn held(place: &Where) -> Result<(Vec<String>, Option<String>), Trouble> {
    match caps::held_at(place) {
        Ok(lines) => Ok((lines, None)),
        Err((why, _)) if is_gone(place) => Ok((Vec::new(), Some(why))),
        Err(trouble) => Err(trouble),
    }
}

/// Whether there is no such directory.
fn is_gone(place: &Where) -> bool {
    place.workspace.as_ref().is_some_and(|dir| {
        std::fs::metadata(dir).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    })
}

/// A job for programs; what it holds in the words of `caps`.
fn as_json(base: &Where, shelf: &Shelf, job: &Job, next: &str) -> Result<Value, Trouble> {
    let script = readable(shelf.script(job));
    let said = |name| Some(jobs::text(job, name)).filter(|text| !text.is_empty());
    let (holds, cannot) = held(&Shelf::place(base, job, script.as_ref()))?;
    Ok(json!({
        "id": jobs::text(job, "id"),
        "name": jobs::name(job),
        "schedule": jobs::in_words(job),
        "enabled": jobs::enabled(job),
        "next": next,
        "last": said("last_run_at"),
        "last_status": said("last_status"),
        "last_error": said("last_error"),
        "holds": holds,
        "cannot_work": cannot,
    }))
}

fn grant(base: &Where, word: &str, grants: &[String]) -> Result<u8, Trouble> {
    let shelf = shelf()?;
    let all = shelf.read()?;
    let job = named(&shelf, &all, word).map_err(|why| (why, exit::USAGE))?;
    let script = readable(shelf.script(job));
    let place = Shelf::place(base, job, script.as_ref());
    // Nobody has to read what a job does for words that grant nothing.
    caps::read(&place, grants)?;
    println!("{}", in_full(job, script.as_ref()));
    caps::grant(&place, grants)
}

fn remove(base: &Where, words: &[String]) -> Result<u8, Trouble> {
    let shelf = shelf()?;
    let all = shelf.read()?;
    // All of them are known before the first is gone.
    let chosen: Vec<&Job> = words
        .iter()
        .map(|word| named(&shelf, &all, word).map_err(|why| (why, exit::USAGE)))
        .collect::<Result<_, _>>()?;
    for job in chosen {
        let script = readable(shelf.script(job));
        // What it holds ends first: a job that is cut off from its grants does no harm.
        let place = Shelf::place(base, job, script.as_ref());
        match caps::end_at(&place) {
            // With its directory all is gone that anything kept for it could count in.
            Err(_) if is_gone(&place) => {}
            ended => ended?,
        }
        shelf.remove(jobs::text(job, "id"))?;
    }
    Ok(exit::OK)
}

/// The job of this number, or the only one whose number begins so.
fn named<'j>(shelf: &Shelf, all: &'j [Job], word: &str) -> Result<&'j Job, String> {
    if let Some(job) = all.iter().find(|job| jobs::text(job, "id") == word) {
        return shelf.told_apart(all, job).map(|()| job);
    }
    let those: Vec<&Job> = all
        .iter()
        .filter(|job| !word.is_empty() && jobs::text(job, "id").starts_with(word))
        .collect();
    match those.as_slice() {
        [job] => Ok(job),
        [] => Err(format!(
            "there is no job `{}`; `hermitcrab cron list` names them",
            visible(word)
        )),
        several => Err(format!(
            "`{}` may be any of {} jobs; `hermitcrab cron list` names them",
            visible(word),
            several.len()
        )),
    }
}

/// A program, if it can be read.
fn readable(script: Option<Result<Script, String>>) -> Option<Script> {
    script.and_then(Result::ok)
}

/// Everything that makes a job do what it does, for whoever grants it something. Whoever
/// wrote the list may have written anything: each line says by its beginning what it is of.
fn in_full(job: &Job, script: Option<&Script>) -> String {
    // Each letter counts, also one that ends a line for who reads it and for no terminal.
    let below = |text: &str| -> Vec<String> {
        let lines = text.split_terminator('\n');
        lines.map(|line| format!("    {}", escaped(line))).collect()
    };
    let mut lines = vec!["prompt:".to_owned()];
    lines.extend(below(jobs::text(job, "prompt")));
    let workdir = jobs::text(job, "workdir");
    if !workdir.is_empty() {
        lines.push(format!("in: {}", on_one_line(workdir)));
    }
    let sources = sources_of(job).join(", ");
    if !sources.is_empty() {
        lines.push(format!(
            "is told what came last of: {}",
            on_one_line(&sources)
        ));
    }
    let skills = skills_of(job).join(", ");
    if !skills.is_empty() {
        lines.push(format!("skills: {}", on_one_line(&skills)));
    }
    if let Some(script) = script {
        lines.push(format!(
            "script: {} (read by {})",
            on_one_line(jobs::text(job, "script")),
            script.program
        ));
        lines.extend(below(&script.text));
        if !crate::jobs::needs_model(job) {
            lines.push("the script is all that runs: no model reads the prompt".to_owned());
        }
    }
    lines.join("\n")
}

fn tick(base: &Where, choice: &choice::Choice) -> Result<u8, Trouble> {
    let shelf = shelf()?;
    if shelf.read()?.is_empty() {
        return Ok(exit::OK);
    }
    let lock = shelf
        .lock(".tick.lock")
        .map_err(|error| shelf.trouble(&error))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say("somebody else runs the jobs at the moment");
            return Ok(exit::OK);
        }
        Err(TryLockError::Error(error)) => return Err(shelf.trouble(&error)),
    }
    let mut worst = exit::OK;
    let mut runner = Runner::new(base, choice);
    let all = shelf.read()?;
    for job in &all {
        if is_due(job)
            && let Err(why) = shelf.told_apart(&all, job)
        {
            // Its next time would be noted in the other one, and it be run again and again.
            say(&format!(
                "job {} does not run: {why}",
                on_one_line(jobs::text(job, "id"))
            ));
            worst = worst.max(exit::TOOL_FAILED);
            continue;
        }
        if turns::recovered(job, &ambient::now_here()).is_some() {
            shelf.change(jobs::text(job, "id"), |mut job| {
                if let Some(next) = turns::recovered(&job, &ambient::now_here()) {
                    job.insert("next_run_at".to_owned(), next.into());
                }
                Some(job)
            })?;
            // It is due at its time, at the earliest the next time somebody looks.
            continue;
        }
        if runner.was_interrupted() {
            say("the other jobs wait for the next time");
            break;
        }
        if is_due(job) {
            let code = one(&shelf, &mut runner, job)?;
            worst = worst.max(code);
        }
    }
    drop(lock);
    Ok(worst)
}

/// Whether its next time was counted from one that is yet to come: a clock that was ahead
/// was set back since.
fn ran_in_time_to_come(job: &Job) -> bool {
    let now = ambient::now_here();
    let at = |key| schedule::kept(jobs::text(job, key), &now);
    let (last, next) = (at("last_run_at"), at("next_run_at"));
    jobs::enabled(job)
        && last.is_some_and(|last| last > now && next.is_some_and(|next| next > last))
}

fn is_due(job: &Job) -> bool {
    let now = ambient::now_here();
    let waits = matches!(jobs::text(job, "state"), "" | "scheduled");
    jobs::enabled(job)
        && waits
        && schedule::kept(jobs::text(job, "next_run_at"), &now).is_some_and(|at| at <= now)
}

/// Runs one job that was due when the list was read, if it is still. Its next time is on the
/// disk before it begins, so that no crash makes it run twice.
fn one(shelf: &Shelf, runner: &mut Runner, job: &Job) -> Result<u8, Trouble> {
    let id = jobs::text(job, "id").to_owned();
    let now = ambient::now_here();
    // Those before it took their time. What is run is what is on the list by now.
    let (mut claim, mut current) = (Claim::Taken, None);
    shelf.change(&id, |mut job| {
        (claim, current) = (Claim::Taken, None);
        if !is_due(&job) {
            return Some(job);
        }
        current = Some(job.clone());
        claim = turns::claim(&mut job, &claimant(), &now);
        (claim != Claim::Spent).then_some(job)
    })?;
    let Some(job) = current.filter(|_| claim == Claim::Won) else {
        return Ok(exit::OK);
    };
    say(&format!(
        "job {} ({})",
        on_one_line(&id),
        on_one_line(&jobs::name(&job))
    ));
    let run = runner.run(&job, &now, &Lent::default());
    let code = match &run.became.error {
        None if run.was_refused => exit::REFUSED,
        None => exit::OK,
        Some(_) if run.was_refused => exit::REFUSED,
        Some(_) => runner.trouble.take().unwrap_or(exit::TOOL_FAILED),
    };
    match &run.became.error {
        Some(why) => {
            // What is told of it begins at the margin, what it says itself does not.
            let why = visible(why).replace('\n', "\n    ");
            say(&format!("job {}: {why}", on_one_line(&id)));
        }
        None => println!("{}", visible(&run.said)),
    }
    for line in &run.refused.lines {
        say(&format!("job {}: {}", on_one_line(&id), on_one_line(line)));
    }
    let kept = run.document.as_ref().map_or(Ok(()), |document| {
        let kept = shelf.keep(&id, document, &now);
        kept.map(drop).map_err(|error| shelf.trouble(&error))
    });
    let mut stays = None;
    let noted = kept.and_then(|()| {
        shelf.change(&id, |mut job| {
            let goes_on = turns::note(&mut job, &run.became, &ambient::now_here());
            stays = Some(goes_on);
            goes_on.then_some(job)
        })
    });
    if run.refused.lacks_grants {
        let id = on_one_line(&id);
        // One that is on the list no more was taken off it meanwhile.
        say(&match stays.unwrap_or(noted.is_err()) {
            true => format!(
                "nobody could be asked; `hermitcrab cron grant {id} VERB=PLACE` grants the job what is wanted"
            ),
            // Whoever grants it something now is told that there is no such job.
            false => "nobody could be asked, and the job is off the list; have it made again, and let \
                      `hermitcrab cron grant ID VERB=PLACE` grant the new one what is wanted before it is due"
                .to_owned(),
        });
    }
    noted.map(|()| code)
}

/// Runs jobs in sessions of their own, each with a ledger apart from whoever asks.
pub struct Runner {
    base: Where,
    choice: choice::Choice,
    /// The switch that ends what the caller does; without one ^C ends a run.
    caller: Option<Cancel>,
    /// Thrown when ^C ended a run.
    interrupted: Cancel,
    /// Why the last run did not begin, as a program's status.
    trouble: Option<u8>,
}

impl Runner {
    /// Runs them from here, with this model.
    pub fn new(base: &Where, choice: &choice::Choice) -> Self {
        Self {
            base: base.clone(),
            choice: choice.clone(),
            caller: None,
            interrupted: Cancel::default(),
            trouble: None,
        }
    }

    /// A run ends when the caller's turn is called off by this switch.
    #[must_use]
    pub fn ended_by(mut self, caller: Cancel) -> Self {
        self.caller = Some(caller);
        self
    }

    /// A run ends at ^C, which throws this switch as well.
    #[must_use]
    pub fn ending(mut self, caller: Cancel) -> Self {
        self.interrupted = caller;
        self
    }

    fn was_interrupted(&self) -> bool {
        self.interrupted.is_thrown()
    }

    fn in_its_session(&self, job: &Job, now: &Zoned, lent: &Lent) -> Result<JobRun, Trouble> {
        let unusable = |error: io::Error| (error.to_string(), exit::ENVIRONMENT);
        let (caller, _in_hand) = match &self.caller {
            Some(caller) => (caller.clone(), None),
            None => {
                let in_hand = Interruptible::begin().map_err(unusable)?;
                (in_hand.cancel(), Some(in_hand))
            }
        };
        let shelf = shelf()?;
        // Read once: what runs is what the grants were given to.
        let script = shelf.script(job);
        let place = Shelf::place(&self.base, job, readable(script.clone()).as_ref());
        let setting = Setting {
            mode: Some(Asking::Refuse),
            ..Setting::at(place)
        };
        let ground = open::ground(&setting.place)?;
        agreed::look(&self.base, job, &ground)?;
        let cancel = Cancel::default();
        let limit = Limit::begin(cancel.clone(), RUN_MAX, Some(caller)).map_err(unusable)?;
        let mut backend = match crate::jobs::needs_model(job) {
            true => {
                let backend = choice::backend(&ground, &self.choice, &cancel)?;
                Some(backend.ok_or_else(|| (choice::NO_MODEL.to_owned(), exit::USAGE))?)
            }
            false => None,
        };
        let id = jobs::text(job, "id");
        if !jobs::is_a_name(id) {
            let message = format!("`{}` is no name of a directory", on_one_line(id));
            return Err((message, exit::USAGE));
        }
        let apart = ground.state_dir.join(beside::JOBS_DIR_NAME).join(id);
        let isolation = ground.isolation()?;
        let asking = ground.asking(setting.mode, false);
        let nobody = Box::new(NobodyThere);
        let mut session = ground.open_apart(&setting, &apart, nobody, isolation, asking)?;
        session.end_with_its_turn();
        if let Some(backend) = &backend {
            choice::let_talk(&mut session, backend)?;
        }
        let model: Option<(&str, &mut dyn ModelPort)> = match &mut backend {
            Some(backend) => Some((&backend.model, &mut *backend.port)),
            None => None,
        };
        let run = crate::jobs::work(
            &mut session,
            Work {
                job,
                script,
                model,
                cron: shelf.jobs(),
                lent,
                limit: &limit,
                now,
            },
        );
        if limit.is_interrupted() && self.caller.is_none() {
            self.interrupted.throw();
        }
        for line in session.take_told() {
            say(&visible(&line));
        }
        Ok(run)
    }
}

impl JobPort for Runner {
    fn run(&mut self, job: &Job, now: &Zoned, lent: &Lent) -> JobRun {
        self.in_its_session(job, now, lent)
            .unwrap_or_else(|(message, code)| {
                self.trouble = Some(code);
                JobRun::failed(&message)
            })
    }
}
