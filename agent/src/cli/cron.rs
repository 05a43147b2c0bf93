//! `cron`: the jobs, what each may do, and running those that are due.
//!
//! A job is run as a session of its own in which nobody is asked. Beside what
//! every session of its directory has, it holds what the person granted that
//! job, until that grant ends. The grant is for the job as it was: one whose
//! words, script or place changed afterwards has lost it.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use hermitcrab_core::session::Asking;
use serde_json::{Value, json};

use super::{Setting, Trouble, Where, caps, chat, run, say};
use crate::{
    ambient,
    digest::sha256,
    exit, pyjson,
    screen::visible,
    tools::{
        args,
        cronjob::{
            jobs::{self, Job},
            schedule, wording,
        },
    },
};

/// Work that is to be done later.
#[derive(Debug, Args)]
pub struct Cron {
    #[command(flatten)]
    place: Where,
    #[command(subcommand)]
    what: Option<CronWhat>,
}

#[derive(Debug, Subcommand)]
enum CronWhat {
    /// Show the jobs, and what each holds
    List,
    /// Keep a grant for one job as it is now; it ends as standing grants do
    Grant {
        /// As listed
        job: String,
        /// Such as fs.modify=./notes
        #[arg(required = true, value_name = "VERB=OBJECT")]
        grants: Vec<String>,
    },
    /// Run the jobs that are due, one after the other, with nobody to ask
    Tick {
        #[command(flatten)]
        choice: chat::Choice,
    },
}

pub fn cron(cron: &Cron) -> u8 {
    let done = match cron.what.as_ref().unwrap_or(&CronWhat::List) {
        CronWhat::List => list(&cron.place),
        CronWhat::Grant { job, grants } => grant(&cron.place, job, grants),
        CronWhat::Tick { choice } => tick(&cron.place, choice),
    };
    done.unwrap_or_else(|(message, code)| {
        say(&message);
        code
    })
}

/// Where jobs and their scripts are.
struct Shelf {
    cron: PathBuf,
    scripts: PathBuf,
}

fn shelf() -> Result<Shelf, Trouble> {
    let places = ambient::places().map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let hermes = places.home.join(".hermes");
    Ok(Shelf {
        cron: hermes.join("cron"),
        scripts: hermes.join("scripts"),
    })
}

impl Shelf {
    fn trouble(&self, error: &io::Error) -> Trouble {
        (
            format!("cannot use the jobs in `{}`: {error}", self.cron.display()),
            exit::ENVIRONMENT,
        )
    }

    fn read(&self) -> Result<Vec<Job>, Trouble> {
        match fs::read(self.cron.join("jobs.json")) {
            Ok(bytes) => jobs::understood(&bytes).map_err(|why| (why, exit::ENVIRONMENT)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.trouble(&error)),
        }
    }

    fn lock(&self, name: &str) -> io::Result<File> {
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(self.cron.join(name))
    }

    /// Changes one job; `None` takes it off the list. The lock is the one
    /// whoever else writes the file takes.
    fn change(&self, id: &str, change: impl FnOnce(Job) -> Option<Job>) -> Result<(), Trouble> {
        let lock = self
            .lock(".jobs.lock")
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| self.trouble(&error))?;
        let mut all = self.read()?;
        if let Some(at) = all.iter().position(|job| jobs::text(job, "id") == id) {
            match change(all.remove(at)) {
                Some(job) => all.insert(at, job),
                None => say(&format!("job {} is done for good", visible(id))),
            }
            let text = pyjson::ascii(&pyjson::indented(&json!({
                "jobs": all, "updated_at": schedule::iso(&ambient::now_here()),
            })));
            put(&self.cron, &text).map_err(|error| self.trouble(&error))?;
        }
        drop(lock);
        Ok(())
    }

    /// The text of a job's script, which lies below the scripts' directory.
    fn script(&self, job: &Job) -> Result<Option<String>, Trouble> {
        let name = jobs::text(job, "script");
        if name.is_empty() {
            return Ok(None);
        }
        let read = || {
            let root = self.scripts.canonicalize()?;
            let file = root.join(name).canonicalize()?;
            if !file.starts_with(&root) {
                return Err(io::Error::other("it lies outside the scripts' directory"));
            }
            fs::read_to_string(file)
        };
        read().map(Some).map_err(|error| {
            (
                format!("cannot read the script `{}`: {error}", visible(name)),
                exit::ENVIRONMENT,
            )
        })
    }

    /// The place of a job, with everything it is made of in its name.
    fn place(&self, base: &Where, job: &Job) -> Result<Where, Trouble> {
        let script = self.script(job)?;
        let field = |name: &str| job.get(name).cloned().unwrap_or(Value::Null);
        let made_of = json!([
            field("id"),
            field("prompt"),
            field("skills"),
            field("workdir"),
            field("no_agent"),
            field("context_from"),
            field("script"),
            script,
        ]);
        let workdir = jobs::text(job, "workdir");
        Ok(Where {
            workspace: if workdir.is_empty() {
                base.workspace.clone()
            } else {
                Some(PathBuf::from(workdir))
            },
            state_dir: base.state_dir.clone(),
            job: Some(sha256(made_of.to_string().as_bytes()).to_string()),
        })
    }
}

/// The file appears whole or not at all, and is its owner's alone.
fn put(dir: &Path, text: &str) -> io::Result<()> {
    let new = dir.join(".jobs.json.new");
    let mut file = fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, dir.join("jobs.json"))
}

fn list(base: &Where) -> Result<u8, Trouble> {
    let shelf = shelf()?;
    let all = shelf.read()?;
    if all.is_empty() {
        println!("there are no jobs");
    }
    for job in &all {
        let next = match jobs::text(job, "next_run_at") {
            _ if !jobs::enabled(job) => "paused",
            "" => "never",
            next => next,
        };
        println!(
            "{}  {}  {}\n    next: {}",
            visible(jobs::text(job, "id")),
            visible(&jobs::display(job)),
            visible(&jobs::name(job)),
            visible(next)
        );
        for line in caps::held_at(&shelf.place(base, job)?)? {
            println!("    holds {line}");
        }
    }
    Ok(exit::OK)
}

fn grant(base: &Where, word: &str, grants: &[String]) -> Result<u8, Trouble> {
    let shelf = shelf()?;
    let all = shelf.read()?;
    let job = all
        .iter()
        .find(|job| jobs::text(job, "id") == word)
        .ok_or_else(|| {
            (
                format!(
                    "there is no job `{}`; `hermitcrab cron list` names them",
                    visible(word)
                ),
                exit::USAGE,
            )
        })?;
    println!("{}", visible(jobs::text(job, "prompt")));
    caps::grant(&shelf.place(base, job)?, grants)
}

fn tick(base: &Where, choice: &chat::Choice) -> Result<u8, Trouble> {
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
    for job in shelf.read()? {
        if is_due(&job) {
            let code = one(&shelf, base, choice, &job)?;
            worst = worst.max(code);
        }
    }
    drop(lock);
    Ok(worst)
}

fn is_due(job: &Job) -> bool {
    let now = ambient::now_here();
    let waits = matches!(jobs::text(job, "state"), "" | "scheduled");
    jobs::enabled(job)
        && waits
        && schedule::kept(jobs::text(job, "next_run_at"), &now).is_some_and(|at| at <= now)
}

/// Runs one job. Its next time is on the disk before it begins, so that no
/// crash makes it run twice.
fn one(shelf: &Shelf, base: &Where, choice: &chat::Choice, job: &Job) -> Result<u8, Trouble> {
    let id = jobs::text(job, "id").to_owned();
    let began = schedule::iso(&ambient::now_here());
    let plan = job.get("schedule").cloned().unwrap_or(Value::Null);
    let next = schedule::next(&plan, Some(&began), &ambient::now_here());
    let repeat = |name: &str| job.get("repeat").and_then(|repeat| repeat.get(name));
    let done = repeat("completed").and_then(Value::as_i64).unwrap_or(0);
    let done = done.saturating_add(1);
    let times = repeat("times").filter(|times| times.is_number()).cloned();
    // A job says how often in a number of any kind; part of a time is one more.
    let left_after = |times: &Value| times.as_f64().map(|times| times - done as f64);
    let is_last = times
        .as_ref()
        .and_then(left_after)
        .is_some_and(|left| left <= 0.0);
    let is_over = is_last || next.is_none();
    shelf.change(&id, |mut job| {
        job.insert("next_run_at".to_owned(), next.into());
        job.insert(
            "repeat".to_owned(),
            json!({"times": times, "completed": done}),
        );
        Some(job)
    })?;
    let code = run_it(shelf, base, choice, job).unwrap_or_else(|(message, code)| {
        say(&format!("job {}: {message}", visible(&id)));
        code
    });
    shelf.change(&id, |mut job| {
        if is_over {
            return None;
        }
        let (status, error) = match code {
            exit::OK => ("ok", Value::Null),
            code => ("error", format!("it ended with status {code}").into()),
        };
        job.insert("last_run_at".to_owned(), began.into());
        job.insert("last_status".to_owned(), status.into());
        job.insert("last_error".to_owned(), error);
        Some(job)
    })?;
    Ok(code)
}

fn run_it(shelf: &Shelf, base: &Where, choice: &chat::Choice, job: &Job) -> Result<u8, Trouble> {
    let setting = Setting {
        mode: Some(Asking::Refuse),
        ..Setting::at(shelf.place(base, job)?)
    };
    say(&format!(
        "job {} ({})",
        visible(jobs::text(job, "id")),
        visible(&jobs::name(job))
    ));
    let script = shelf.script(job)?;
    if args::truthy(job.get("no_agent")) {
        let text = script.ok_or_else(|| ("it has no script".to_owned(), exit::USAGE))?;
        let name = jobs::text(job, "script");
        let program = if name.ends_with(".sh") || name.ends_with(".bash") {
            "bash"
        } else {
            "python3"
        };
        let words = [program.to_owned(), "-c".to_owned(), text];
        return Ok(run::exec(&setting, &words));
    }
    if script.is_some() {
        return Err((
            "a script beside a prompt is not run; let the prompt say what to run".to_owned(),
            exit::USAGE,
        ));
    }
    let mut words = jobs::text(job, "prompt").to_owned();
    if let Some(problem) = wording::problem(&words) {
        return Err((problem, exit::REFUSED));
    }
    let skills = jobs::skills(job.get("skill"), job.get("skills"));
    if !skills.is_empty() {
        words = format!("First read the skills {}.\n\n{words}", skills.join(", "));
    }
    Ok(chat::chat(&setting, choice, Some(&words)))
}
