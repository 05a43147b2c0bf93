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

use super::{Trouble, Where, say};
use crate::{
    ambient,
    digest::sha256,
    exit,
    jobs::{Script, content},
    runtime::Job,
    screen::{on_one_line, visible},
    text::pyjson,
    tools::cronjob::{jobs, schedule},
};

/// The longest list of jobs, in bytes.
const LIST_BYTES_MAX: u64 = 16 << 20;
const LIST: &str = "jobs.json";

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
        match content(&self.cron.join(LIST), LIST_BYTES_MAX) {
            Ok(bytes) => jobs::understood(&bytes).map_err(|why| (why, exit::ENVIRONMENT)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.trouble(&error)),
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
        let file = rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, OWN)?;
        Ok(File::from(file))
    }

    /// Changes one job; `None` takes it off the list. The lock is the one
    /// whoever else writes the file takes.
    pub(super) fn change(
        &self,
        id: &str,
        change: impl FnOnce(Job) -> Option<Job>,
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
        change: impl FnOnce(Job) -> Option<Job>,
        gone: &str,
    ) -> Result<(), Trouble> {
        let lock = self
            .lock(".jobs.lock")
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| self.trouble(&error))?;
        let mut all = self.read()?;
        if let Some(at) = all.iter().position(|job| jobs::text(job, "id") == id) {
            match change(all.remove(at)) {
                Some(job) => all.insert(at, job),
                None => say(&format!("job {} {gone}", on_one_line(id))),
            }
            let text = pyjson::ascii(&pyjson::indented(&json!({
                "jobs": all, "updated_at": schedule::iso(&ambient::now_here()),
            })));
            self.dir()
                .and_then(|dir| put(dir.as_fd(), LIST, &text))
                .map_err(|error| self.trouble(&error))?;
        }
        drop(lock);
        Ok(())
    }

    /// Keeps what came of a run, its owner's alone.
    pub(super) fn keep(&self, id: &str, document: &str, now: &Zoned) -> io::Result<()> {
        if !jobs::is_a_name(id) {
            return Ok(());
        }
        let output = below(self.dir()?.as_fd(), "output")?;
        let dir = below(output.as_fd(), id)?;
        let name = now.strftime("%Y-%m-%d_%H-%M-%S").to_string();
        put(dir.as_fd(), &format!("{name}.md"), document)
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

/// The file appears whole or not at all, and is its owner's alone.
fn put(dir: BorrowedFd<'_>, name: &str, text: &str) -> io::Result<()> {
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
    Ok(rustix::fs::renameat(dir, &new, dir, name)?)
}
