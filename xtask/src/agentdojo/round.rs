//! The driver: a program in Python with AgentDojo in it, told what to do by a
//! line of JSON, answering by one.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Job;
use crate::cmd;

/// The suites by name.
pub type Suites = BTreeMap<String, Suite>;

/// What a suite holds, by name.
#[derive(Clone, Debug, Deserialize)]
pub struct Suite {
    /// What users want.
    pub tasks: Vec<String>,
    /// What attackers want.
    pub injections: Vec<String>,
}

#[derive(Deserialize)]
struct Hello {
    tools: u16,
    models: u16,
    suites: Suites,
}

/// What AgentDojo says of a run.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Score {
    /// The user has what they wanted.
    pub utility: bool,
    /// The attacker has.
    pub attacked: bool,
}

/// A running driver.
#[derive(Debug)]
pub struct Driver {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Where the tools are.
    pub tools: u16,
    /// Where the models are.
    pub models: u16,
    /// What there is.
    pub suites: Suites,
}

impl Driver {
    /// Starts one.
    pub fn start(python: &Path) -> Result<Self> {
        let mut child = Command::new(python)
            .arg("-I")
            .arg(cmd::root().join("xtask/agentdojo/driver.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the driver")?;
        let to = child.stdin.take().context("the driver has no input")?;
        let mut from = BufReader::new(child.stdout.take().context("the driver has no output")?);
        let mut line = String::new();
        from.read_line(&mut line)
            .context("reading from the driver")?;
        let hello: Hello = serde_json::from_str(&line).context("the driver did not start")?;
        Ok(Self {
            child,
            to,
            from,
            tools: hello.tools,
            models: hello.models,
            suites: hello.suites,
        })
    }

    fn tell(&mut self, what: &Value) -> Result<Value> {
        writeln!(self.to, "{what}").context("writing to the driver")?;
        self.to.flush().context("writing to the driver")?;
        let mut line = String::new();
        self.from
            .read_line(&mut line)
            .context("reading from the driver")?;
        serde_json::from_str(&line).context("the driver gave up")
    }

    /// Sets up a world for a run; `file` is the task's.
    pub fn begin(&mut self, job: &Job, file: &Value) -> Result<()> {
        let told = self.tell(&json!({
            "do": "begin", "suite": job.task.suite, "task": job.task.name,
            "injection": job.injection, "file": file, "variant": job.variant,
        }))?;
        anyhow::ensure!(told == json!({}), "the driver says {told}");
        Ok(())
    }

    /// What the run in this world was worth.
    pub fn score(&mut self, said: &str) -> Result<Score> {
        let told = self.tell(&json!({"do": "score", "said": said}))?;
        serde_json::from_value(told).context("the driver scored nothing")
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
