//! The files of jobs: their list, their programs, and what came of them.
//!
//! A command may leave a link or a pipe under any name in a directory it may create
//! files in, and this program has more rights than it. So nothing here is opened
//! through a link below the directory of jobs, and nothing but a file is read.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use jiff::Zoned;
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
    io::Errno,
};
use serde_json::{Value, json};

use super::{Trouble, Where, outputs, say};
use crate::{
    ambient,
    digest::sha256,
    exit,
    given_file::{self, Pipes},
    jobs::{Script, content},
    runtime::Job,
    screen::{on_one_line, visible},
    state_dir::own_file,
    text::pyjson,
    tools::cronjob::{jobs, schedule},
};

/// The longest list of jobs, in bytes.
const LIST_BYTES_MAX: u64 = 16 << 20;
const LIST: &str = "jobs.json";
/// So much of Hermes' configuration is looked at.
const CONFIG_BYTES_MAX: u64 = 16 << 20;
/// How often it is changed again where somebody else was first.
const TRIES_MAX: u32 = 20;

/// Where jobs and their scripts are.
pub(super) struct Shelf {
    home: PathBuf,
    cron: PathBuf,
    scripts: PathBuf,
}

pub(super) fn shelf() -> Result<Shelf, Trouble> {
    let places = ambient::places().map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let hermes = places.home.join(".hermes");
    Ok(Shelf {
        home: places.home,
        cron: hermes.join("cron"),
        scripts: hermes.join("scripts"),
    })
}

impl Shelf {
    pub(super) fn trouble(&self, error: &io::Error) -> Trouble {
        (
            format!("cannot use the jobs in `{}`: {error}", self.cron.display()),
            exit::ENVIRONMENT,
        )
    }

    pub(super) fn read(&self) -> Result<Vec<Job>, Trouble> {
        self.understood(self.bytes()?.as_deref())
    }

    /// The jobs of a list; none where there is no list. What is wrong with it is told in words
    /// of this program, and not in those a model is told.
    fn understood(&self, bytes: Option<&[u8]>) -> Result<Vec<Job>, Trouble> {
        let Some(bytes) = bytes else {
            return Ok(Vec::new());
        };
        jobs::understood(bytes).map_err(|why| {
            let list = self.cron.join(LIST);
            let why = why.rsplit_once("corrupted and unrepairable: ");
            let why = why.map_or("it holds no list of jobs", |(_, why)| why);
            (
                format!(
                    "the list of jobs `{}` is broken: {}; mend it there, or move it away and have the jobs made anew",
                    list.display(),
                    on_one_line(why)
                ),
                exit::ENVIRONMENT,
            )
        })
    }

    /// The list as it lies there, if there is one.
    fn bytes(&self) -> Result<Option<Vec<u8>>, Trouble> {
        match content(&self.cron.join(LIST), LIST_BYTES_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.trouble(&about(LIST, error))),
        }
    }

    /// Whether the job's number is its own. Whoever writes the list by hand may have used one
    /// twice, and then a number says nothing.
    pub(super) fn told_apart(&self, all: &[Job], job: &Job) -> Result<(), String> {
        let id = jobs::text(job, "id");
        match all.iter().filter(|job| jobs::text(job, "id") == id).count() {
            0 | 1 => Ok(()),
            several => Err(format!(
                "{several} jobs have the number `{}`, which tells none of them apart; give each \
                 one of its own in `{}`",
                visible(id),
                self.cron.join(LIST).display()
            )),
        }
    }

    fn dir(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.cron, flags, Mode::empty())?)
    }

    pub(super) fn lock(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let path = self.cron.join(name);
        let file = rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, OWN)
            .map_err(|errno| about(name, errno.into()))?;
        Ok(File::from(file))
    }

    /// Changes one job; `None` takes it off the list. The lock is the one
    /// whoever else writes the file takes, but for the calls of a session, which write it as any
    /// file: where one was first, what it left is changed.
    pub(super) fn change(
        &self,
        id: &str,
        change: impl FnMut(Job) -> Option<Job>,
    ) -> Result<(), Trouble> {
        self.changed(id, change, "is done for good")
    }

    /// Takes a job off the list.
    pub(super) fn remove(&self, id: &str) -> Result<(), Trouble> {
        self.changed(id, |_| None, "is off the list")
    }

    fn changed(
        &self,
        id: &str,
        mut change: impl FnMut(Job) -> Option<Job>,
        gone: &str,
    ) -> Result<(), Trouble> {
        let lock = self
            .lock(".jobs.lock")
            .and_then(|file| {
                let held = own_file::lock(&file, own_file::Lock::Alone);
                held.map_err(|error| about(".jobs.lock", error))
                    .map(|()| file)
            })
            .map_err(|error| self.trouble(&error))?;
        for _ in 0..TRIES_MAX {
            let bytes = self.bytes()?;
            let mut all = self.understood(bytes.as_deref())?;
            let Some(at) = all.iter().position(|job| jobs::text(job, "id") == id) else {
                return Ok(());
            };
            let job = change(all.remove(at));
            let is_gone = job.is_none();
            if let Some(job) = job {
                all.insert(at, job);
            }
            let text = pyjson::ascii(&pyjson::indented(&json!({
                "jobs": all, "updated_at": schedule::iso(&ambient::now_here()),
            })));
            let dir = self.dir().map_err(|error| self.trouble(&error))?;
            let new = written(dir.as_fd(), LIST, &text).map_err(|error| self.trouble(&error))?;
            if self.bytes()? != bytes {
                continue;
            }
            put(dir.as_fd(), &new, LIST).map_err(|error| self.trouble(&error))?;
            drop(lock);
            if is_gone {
                say(&format!("job {} {gone}", on_one_line(id)));
            }
            return Ok(());
        }
        Err(self.trouble(&io::Error::other(
            "somebody else changes the list again and again; see who, and try again",
        )))
    }

    /// Keeps what came of a run, its owner's alone.
    pub(super) fn keep(&self, id: &str, document: &str, now: &Zoned) -> io::Result<()> {
        if !jobs::is_a_name(id) {
            return Ok(());
        }
        let output = below(self.dir()?.as_fd(), "output")?;
        let dir = below(output.as_fd(), id)?;
        let name = now.strftime("%Y-%m-%d_%H-%M-%S").to_string();
        let name = format!("{name}.md");
        let new = written(dir.as_fd(), &name, document)?;
        put(dir.as_fd(), &new, &name)?;
        // What came of this run is kept, whatever becomes of those before.
        if self.is_how_many_usual()
            && let Err(error) = outputs::keep_the_newest(&dir)
        {
            let cron = visible(&self.cron.display().to_string());
            say(&format!(
                "what earlier runs of {} left in `{cron}/output` is more than is kept and cannot be removed: {error}",
                on_one_line(id)
            ));
        }
        Ok(())
    }

    /// Whether nothing else was said about how much is kept of a job. Hermes' configuration may
    /// say it, which this program does not read; then it is for Hermes to remove what is more.
    fn is_how_many_usual(&self) -> bool {
        let said = self.cron.with_file_name("config.yaml");
        match given_file::beginning(&said, CONFIG_BYTES_MAX, Pipes::Refused) {
            Ok(text) => {
                let key = outputs::SAID_BY.as_bytes();
                !text.windows(key.len()).any(|part| part == key)
            }
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// The directory of jobs.
    pub(super) fn jobs(&self) -> &Path {
        &self.cron
    }

    /// The program of a job, if it has one.
    pub(super) fn script(&self, job: &Job) -> Option<Result<Script, String>> {
        let name = jobs::text(job, "script");
        (!name.is_empty()).then(|| Script::read(&self.scripts, &self.home, name))
    }

    /// The place of a job, with everything it is made of in its name, `script` as
    /// it was read, and by what if not by what its name says.
    pub(super) fn place(base: &Where, job: &Job, script: Option<&Script>) -> Where {
        let field = |name: &str| job.get(name).cloned().unwrap_or(Value::Null);
        let mut made_of = vec![
            field("id"),
            field("prompt"),
            skills_of(job).into(),
            field("workdir"),
            field("no_agent"),
            field("context_from"),
            field("script"),
            script.map(|script| script.text.as_str()).into(),
        ];
        let name = jobs::text(job, "script");
        let otherwise = script.and_then(|script| script.read_otherwise(name));
        made_of.extend(otherwise.map(Value::from));
        let workdir = jobs::text(job, "workdir");
        Where {
            workspace: if workdir.is_empty() {
                base.workspace.clone()
            } else {
                Some(PathBuf::from(workdir))
            },
            state_dir: base.state_dir.clone(),
            job: Some(sha256(Value::from(made_of).to_string().as_bytes()).to_string()),
        }
    }
}

/// The skills a job is worked on with, whichever way it names them.
pub(super) fn skills_of(job: &Job) -> Vec<String> {
    jobs::skills(job.get("skill"), job.get("skills"))
}

/// What is wrong with one file of them, in words where the system's are about none.
fn about(name: &str, error: io::Error) -> io::Error {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let what = match () {
        () if is(Errno::LOOP) => "it is a link, which is not followed; move it away".to_owned(),
        () if is(Errno::NXIO) => "it is a pipe or a socket; move it away".to_owned(),
        () if is(Errno::ISDIR) => "it is a directory; move it away".to_owned(),
        () => error.to_string(),
    };
    io::Error::new(error.kind(), format!("`{name}`: {what}"))
}

/// Files are their owner's alone, and so are directories with one bit more.
const OWN: Mode = Mode::RUSR.union(Mode::WUSR);

/// A directory in this one, made if it is not there.
fn below(dir: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(dir, name, OWN | Mode::XUSR) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Writes a file under a name of its own, its owner's alone; that name.
fn written(dir: BorrowedFd<'_>, name: &str, text: &str) -> io::Result<String> {
    let new = format!(".{name}.new");
    match rustix::fs::unlinkat(dir, &new, AtFlags::empty()) {
        // A crash left it there, or somebody else put it there.
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(dir, &new, flags, OWN)?);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(new)
}

/// It appears under its name whole or not at all.
fn put(dir: BorrowedFd<'_>, new: &str, name: &str) -> io::Result<()> {
    rustix::fs::renameat(dir, new, dir, name)?;
    // A job that ran once is not to run again after a loss of power.
    own_file::flush_dir(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sessions_call_made_of_the_list_meanwhile_stays() {
        let temp = tempfile::tempdir().unwrap();
        let shelf = Shelf {
            home: temp.path().to_owned(),
            cron: temp.path().to_owned(),
            scripts: temp.path().to_owned(),
        };
        let list = temp.path().join(LIST);
        let put = |state: &str| {
            let jobs = json!({"jobs": [{"id": "a"}, {"id": "b", "state": state}]});
            std::fs::write(&list, jobs.to_string()).unwrap();
        };
        put("scheduled");
        let mut tries = 0;
        shelf
            .change("a", |mut job| {
                tries += 1;
                if tries == 1 {
                    put("paused");
                }
                job.insert("last_status".to_owned(), "ok".into());
                Some(job)
            })
            .unwrap();
        let all = shelf.read().unwrap();
        let texts = [
            jobs::text(&all[0], "last_status"),
            jobs::text(&all[1], "state"),
        ];
        assert_eq!((texts, tries), (["ok", "paused"], 2));
        // Whoever never lets it be is told of, and nothing is written over.
        let mut number = 0;
        let (why, _) = shelf
            .change("a", |job| {
                number += 1;
                put(&number.to_string());
                Some(job)
            })
            .unwrap_err();
        assert!(why.contains("again and again"), "{why}");
        assert_eq!(
            jobs::text(&shelf.read().unwrap()[1], "state"),
            number.to_string()
        );
    }

    #[test]
    fn a_broken_list_is_named_in_this_programs_words_with_what_to_do() {
        let temp = tempfile::tempdir().unwrap();
        let shelf = Shelf {
            home: temp.path().to_owned(),
            cron: temp.path().to_owned(),
            scripts: temp.path().to_owned(),
        };
        let list = temp.path().join(LIST);
        for (text, why) in [
            ("{\"jobs\": [", "EOF while parsing a list"),
            ("3", "it holds no list of jobs"),
        ] {
            std::fs::write(&list, text).unwrap();
            let (told, code) = shelf.read().unwrap_err();
            let begin = format!("the list of jobs `{}` is broken: {why}", list.display());
            assert!(told.starts_with(&begin), "{told}");
            assert!(told.contains("; mend it there"), "{told}");
            assert_eq!(code, exit::ENVIRONMENT);
        }
    }

    #[test]
    fn of_each_job_so_many_runs_are_kept_as_hermes_keeps_unless_it_was_told_otherwise() {
        let temp = tempfile::tempdir().unwrap();
        let cron = temp.path().join("cron");
        std::fs::create_dir(&cron).unwrap();
        let shelf = Shelf {
            home: temp.path().to_owned(),
            cron: cron.clone(),
            scripts: temp.path().to_owned(),
        };
        let at = |minute: i64| {
            let first: Zoned = "2026-01-01T00:00[UTC]".parse().unwrap();
            &first + jiff::Span::new().minutes(minute)
        };
        let kept = || {
            let names = std::fs::read_dir(cron.join("output/a")).unwrap();
            let mut names: Vec<_> = names
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        for minute in 0..53 {
            shelf.keep("a", "x", &at(minute)).unwrap();
        }
        let (first, last) = ("2026-01-01_00-03-00.md", "2026-01-01_00-52-00.md");
        let names = kept();
        assert_eq!(names.len(), outputs::KEPT);
        assert_eq!((&*names[0], &*names[49]), (first, last));
        // What is not a run's stays, and no directory or link is touched.
        for name in ["0.md", "2025-01-01_00-00-00.txt", "notes"] {
            std::fs::write(cron.join("output/a").join(name), "mine").unwrap();
        }
        std::fs::create_dir(cron.join("output/a/2025-01-01_00-00-00.md")).unwrap();
        shelf.keep("a", "x", &at(53)).unwrap();
        assert_eq!(kept().len(), outputs::KEPT + 4);
        std::fs::write(
            temp.path().join("config.yaml"),
            "cron:\n  output_retention: 0\n",
        )
        .unwrap();
        shelf.keep("a", "x", &at(54)).unwrap();
        assert_eq!(kept().len(), outputs::KEPT + 5);
    }

    /// What a job was granted is for the job as it is: of each field it is said whether it is
    /// part of that, and none of the others loses a job its grants.
    #[test]
    fn a_job_is_another_one_where_anything_it_does_is() {
        let base = Where {
            workspace: None,
            state_dir: None,
            job: None,
        };
        let script = |text: &str| Script {
            program: "bash",
            text: text.to_owned(),
        };
        let job: Job = json!({
            "id": "a", "prompt": "tidy", "skill": null, "skills": ["s"], "workdir": "/w",
            "no_agent": false, "context_from": ["b"], "script": "x.sh", "name": "tidy",
            "schedule": {"kind": "interval"}, "repeat": {"times": 3}, "enabled": true,
            "state": "scheduled", "next_run_at": "t", "last_run_at": null, "last_status": null,
            "last_error": null, "created_at": "t", "deliver": "local", "model": null,
        })
        .as_object()
        .cloned()
        .unwrap();
        let place = |job: &Job, script: Option<&Script>| Shelf::place(&base, job, script).job;
        let as_it_is = place(&job, Some(&script("date")));
        assert_ne!(place(&job, Some(&script("env"))), as_it_is, "its program");
        assert_ne!(place(&job, None), as_it_is, "that it has one");
        for field in job.keys() {
            let mut other = job.clone();
            other.insert(field.clone(), json!("other"));
            let is_another = place(&other, Some(&script("date"))) != as_it_is;
            let does = [
                "id",
                "prompt",
                "skills",
                "workdir",
                "no_agent",
                "context_from",
            ];
            // The name of a program says who reads it, where nothing else does.
            let expected = does.contains(&field.as_str()) || field == "script";
            assert_eq!(is_another, expected, "{field}");
        }
    }
}
