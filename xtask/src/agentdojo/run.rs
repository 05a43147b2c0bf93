//! One run: the real program, a plan, a person behind its pipe.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::round::Driver;
use super::{Job, Known, environment};
use crate::cmd;

/// Who answers.
#[derive(Clone, Debug)]
pub enum Person {
    /// There is nobody.
    Nobody,
    /// Somebody who says yes to everything.
    Yes,
    /// Somebody who knows what the request comes to, and says yes to exactly
    /// that: the calls, values and texts the same plan shows in a world without
    /// any attack. How a run ends plays no part.
    Attentive(Known),
}

/// What a person was asked about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    about: String,
    shown: String,
}

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The user has what they wanted.
    pub utility: bool,
    /// The attacker has what they wanted.
    pub attacked: bool,
    /// How often somebody was asked about data; plans are approved besides.
    pub questions: usize,
    /// About what.
    pub asked: Known,
    /// The language the plan needs.
    pub level: Level,
    /// Whether a model reads or plans anything in it.
    pub has_model: bool,
    /// What did not work, for whoever looks into it.
    pub trouble: String,
}

/// How much of the language a plan needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Calls with what is written, and whole results.
    #[default]
    Straight,
    /// Parts of results, and texts put together.
    Paths,
    /// Functions.
    Builtins,
    /// `for_each` and `if`.
    Blocks,
    /// `extract`.
    Extract,
    /// `delegate`.
    Delegate,
}

impl Level {
    /// Every one.
    pub const ALL: [Level; 6] = [
        Level::Straight,
        Level::Paths,
        Level::Builtins,
        Level::Blocks,
        Level::Extract,
        Level::Delegate,
    ];

    /// What it is called in the table.
    pub const fn words(self) -> &'static str {
        match self {
            Level::Straight => "straight line, whole results",
            Level::Paths => "typed paths, texts put together",
            Level::Builtins => "functions",
            Level::Blocks => "`for_each`, `if`",
            Level::Extract => "`extract` by a model without tools",
            Level::Delegate => "`delegate` of a text the user approves",
        }
    }

    /// What a part of a plan needs.
    fn of(value: &Value) -> Level {
        let inner = match value {
            Value::Array(items) => items.iter().map(Level::of).max(),
            Value::Object(fields) => fields.values().map(Level::of).max(),
            _ => None,
        };
        let own = match value {
            Value::Object(fields) => {
                let has = |key| fields.contains_key(key);
                if has("delegate") {
                    Level::Delegate
                } else if has("extract") {
                    Level::Extract
                } else if has("for_each") || has("if") {
                    Level::Blocks
                } else if has("fn") {
                    Level::Builtins
                } else if has("text") || is_path(fields.get("$")) {
                    Level::Paths
                } else {
                    Level::Straight
                }
            }
            _ => Level::Straight,
        };
        own.max(inner.unwrap_or_default())
    }
}

fn is_path(reference: Option<&Value>) -> bool {
    reference
        .and_then(Value::as_str)
        .is_some_and(|text| text.contains(['.', '[']))
}

/// Makes one run.
pub fn one(driver: &mut Driver, job: &Job) -> Result<Told> {
    let data = cmd::root().join("xtask/agentdojo");
    let read = |path: &Path| -> Result<Value> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))
    };
    let (suite, name) = (&job.task.suite, &job.task.name);
    let file = read(&data.join(format!("plans/{suite}/{name}.json")))?;
    let mut tools = read(&data.join(format!("tools/{suite}.json")))?;
    tools["server"]["port"] = driver.tools.into();
    driver.begin(job, &file)?;

    let home = tempfile::tempdir().context("cannot make a directory")?;
    let at = |name: &str| home.path().join(name);
    fs::create_dir_all(at("config/hermitcrab"))?;
    fs::create_dir_all(at("work"))?;
    fs::write(at("plan.json"), file["plan"].to_string())?;
    fs::write(at("tools.json"), tools.to_string())?;
    let models = format!("http://127.0.0.1:{}/v1", driver.models);
    fs::write(
        at("config/hermitcrab/config.toml"),
        format!(
            "[models.planner]\nmodel = \"planner\"\nbase_url = \"{models}\"\n\
             [models.quarantined]\nmodel = \"reader\"\nbase_url = \"{models}\"\n"
        ),
    )?;
    // In a session of its own it has no terminal: nobody but us can be asked.
    let mut command = Command::new("setsid");
    command
        .arg("--wait")
        .arg(environment::agent())
        .args(["run", "--json", "--plan"])
        .arg(at("plan.json"))
        .arg("--tools")
        .arg(at("tools.json"))
        .arg("--workspace")
        .arg(at("work"))
        .arg("--grant")
        .arg(format!("net.connect=127.0.0.1:{}", driver.tools))
        .arg(match job.person {
            Person::Nobody => "--yes-low",
            Person::Yes | Person::Attentive(_) => "--replies",
        })
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", at("config"))
        .env("XDG_STATE_HOME", at("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start the program")?;
    let mut seen = Seen::default();
    attend(&mut child, &job.person, &mut seen)?;
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut complaint)?;
    }
    let status = child.wait().context("waiting for the program")?;
    let score = driver.score(&seen.said.join("\n"))?;
    let level = Level::of(&file["plan"]);
    Ok(Told {
        utility: score.utility,
        attacked: score.attacked,
        questions: seen.questions,
        asked: seen.asked,
        level,
        has_model: level >= Level::Extract,
        trouble: format!("{status}\n{complaint}{}", seen.failures.join("\n")),
    })
}

/// What is seen of a run from outside.
#[derive(Default)]
struct Seen {
    said: Vec<String>,
    failures: Vec<String>,
    questions: usize,
    asked: Known,
    /// The call that was announced last.
    calling: Option<String>,
}

/// Reads what the program says and answers what it asks.
fn attend(child: &mut Child, person: &Person, seen: &mut Seen) -> Result<()> {
    let mut to = child.stdin.take().context("the program has no input")?;
    let from = child.stdout.take().context("the program has no output")?;
    for line in BufReader::new(from).lines() {
        let line = line.context("reading from the program")?;
        let event: Value =
            serde_json::from_str(&line).with_context(|| format!("no event: {line}"))?;
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str() {
            Some("say") => seen.said.push(text("text")),
            Some("calling") => {
                let call: BTreeMap<&str, &Value> =
                    [("tool", &event["tool"]), ("with", &event["with"])].into();
                seen.calling = Some(json!(call).to_string());
            }
            Some("call") if event["came"].get("failure").is_some() => {
                seen.failures.push(line.clone());
            }
            Some("question") => {
                let about = text("about");
                let shown = match (about.as_str(), &seen.calling) {
                    ("effect" | "step", Some(call)) => call.clone(),
                    _ => text("text"),
                };
                answer(&mut to, person, seen, &event["n"], Asked { about, shown })?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn answer(
    to: &mut ChildStdin,
    person: &Person,
    seen: &mut Seen,
    number: &Value,
    asked: Asked,
) -> Result<()> {
    // A plan holds nobody's data but the user's; it is approved as such.
    let is_plan = asked.about == "plan";
    let yes = is_plan
        || match person {
            Person::Nobody => false,
            Person::Yes => true,
            Person::Attentive(known) => known.contains(&asked),
        };
    let word = match (yes, asked.about.as_str()) {
        (false, _) => "deny",
        (true, "effect") => "once",
        (true, _) => "yes",
    };
    writeln!(to, "{}", json!({"n": number, "answer": word})).context("answering")?;
    to.flush().context("answering")?;
    if !is_plan {
        seen.questions += 1;
        seen.asked.insert(asked);
    }
    Ok(())
}
