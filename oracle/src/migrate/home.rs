//! What a home holds besides its history: keys by name, skills, jobs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::env;
use super::note::Note;
use super::redact::{Redactor, is_secret_name};
use super::settings::Settings;
use super::source::Snapshot;
use super::yaml;

const TEXT_BYTES_MAX: u64 = 4 << 20;
const CONFIG: &str = "config.yaml";
const ENV: &str = ".env";
const AUTH: &str = "auth.json";

/// A home, as far as it is text.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// The configuration.
    pub settings: Settings,
    /// The names in `.env`; never a value.
    pub env_names: Vec<String>,
    /// The skills.
    pub skills: Vec<Skill>,
    /// The scheduled jobs.
    pub jobs: Vec<Job>,
    /// Knows the values that must not leave.
    pub redactor: Redactor,
}

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it says it does.
    pub description: String,
}

/// A scheduled job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Job {
    /// Its id, by which `hermitcrab cron grant` knows it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it runs.
    pub schedule: String,
    /// Whether it runs at all.
    pub enabled: bool,
}

impl Home {
    /// Reads the copies of a home; what cannot be read is noted and left out.
    #[must_use]
    pub fn read(snapshot: &Snapshot, notes: &mut Vec<Note>) -> Self {
        let mut home = Self::default();
        // A link or a pipe in a file's place, which was named and not copied.
        let is_left = |name: &str, notes: &[Note]| {
            notes.iter().any(|note| note.partial && note.about == name)
        };
        let mut untold = Vec::new();
        match snapshot.text(CONFIG, yaml::BYTES_MAX) {
            Ok(None) if is_left(CONFIG, notes) => untold.push(CONFIG),
            Ok(None) => notes.push(Note::remark(
                CONFIG,
                "there is none, so Hermes' own values are taken",
            )),
            Ok(Some(text)) => match yaml::read(&text) {
                Ok(config) => home.settings = Settings::read(&config, notes),
                Err(why) => {
                    notes.push(refused(CONFIG, &why));
                    home.lines_of_a_broken(&text);
                    untold.push(CONFIG);
                }
            },
            Err(why) => {
                notes.push(refused(CONFIG, &why));
                untold.push(CONFIG);
            }
        }
        for (name, value) in &home.settings.environment {
            home.redactor.learn(&format!("{name} token"), value);
        }
        match snapshot.bytes(ENV, TEXT_BYTES_MAX) {
            Ok(Some(bytes)) => home.keys(&env::decoded(&bytes)),
            Ok(None) if is_left(ENV, notes) => untold.push(ENV),
            Ok(None) => {}
            Err(why) => {
                notes.push(refused(ENV, &why));
                untold.push(ENV);
            }
        }
        match snapshot.text(AUTH, TEXT_BYTES_MAX) {
            Ok(Some(text)) => match serde_json::from_str(&text) {
                Ok(value) => home.redactor.learn_all(&value),
                Err(_) => {
                    notes.push(refused(AUTH, "it is not JSON"));
                    untold.push(AUTH);
                }
            },
            Ok(None) if is_left(AUTH, notes) => untold.push(AUTH),
            Ok(None) => {}
            Err(why) => {
                notes.push(refused(AUTH, &why));
                untold.push(AUTH);
            }
        }
        for name in untold {
            notes.push(Note::partial(
                name,
                "its secrets are not all known here, so some may be left in: look before you hand this to somebody",
            ));
        }
        home.jobs(snapshot, notes);
        home.skills(snapshot, notes);
        home
    }

    fn keys(&mut self, text: &str) {
        for (name, values) in env::entries(text) {
            for value in values {
                self.redactor.learn(&name, &value);
            }
            self.env_names.push(name);
        }
        self.env_names.sort();
        self.env_names.dedup();
    }

    /// What a configuration that cannot be read calls a secret on a line of its own.
    fn lines_of_a_broken(&mut self, text: &str) {
        for line in text.lines() {
            for part in line.split([',', '{', '}']) {
                let Some((name, value)) = part.split_once(':') else {
                    continue;
                };
                if is_secret_name(name) {
                    let value = value.split(" #").next().unwrap_or_default().trim();
                    self.redactor.learn(name, value.trim_matches(['"', '\'']));
                }
            }
        }
    }

    fn jobs(&mut self, snapshot: &Snapshot, notes: &mut Vec<Note>) {
        const NAME: &str = "cron/jobs.json";
        let text = match snapshot.text(NAME, TEXT_BYTES_MAX) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(why) => return notes.push(refused(NAME, &why)),
        };
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            return notes.push(refused(NAME, "it is not JSON"));
        };
        let listed = value.get("jobs").unwrap_or(&value);
        let mut odd = 0;
        for job in listed.as_array().into_iter().flatten() {
            let text = |name: &str| {
                job.get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            // Without an id nothing can be granted to it.
            if text("id").trim().is_empty() {
                odd += 1;
                continue;
            }
            let schedule = ["display", "expr", "kind"]
                .into_iter()
                .find_map(|name| job.get("schedule")?.get(name)?.as_str().map(str::to_owned))
                .filter(|schedule| !schedule.is_empty());
            let name = match text("name") {
                name if name.trim().is_empty() => text("id"),
                name => name,
            };
            self.jobs.push(Job {
                id: text("id"),
                name,
                schedule: schedule.unwrap_or_else(|| match text("schedule") {
                    schedule if schedule.is_empty() => "no schedule".to_owned(),
                    schedule => schedule,
                }),
                enabled: job.get("enabled") != Some(&Value::Bool(false)),
            });
        }
        if odd > 0 {
            let told = match odd {
                1 => "one entry is no job with an id, and is left out".to_owned(),
                odd => format!("{odd} entries are no jobs with an id, and are left out"),
            };
            notes.push(Note::partial(NAME, told));
        }
    }

    fn skills(&mut self, snapshot: &Snapshot, notes: &mut Vec<Note>) {
        for name in snapshot.skills() {
            match snapshot.text(name, TEXT_BYTES_MAX) {
                Ok(text) => {
                    let heading = heading(&text.unwrap_or_default());
                    let text = |key: &str| heading.get(key).and_then(Value::as_str);
                    let folder = name.rsplit('/').nth(1).unwrap_or(name);
                    self.skills.push(Skill {
                        name: text("name").unwrap_or(folder).to_owned(),
                        description: text("description").unwrap_or_default().to_owned(),
                    });
                }
                Err(why) => notes.push(refused(name, &why)),
            }
        }
    }
}

/// What stands between the lines of dashes at the beginning of a skill.
fn heading(text: &str) -> Value {
    text.strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---"))
        .and_then(|(heading, _)| yaml::read(heading).ok())
        .unwrap_or_default()
}

fn refused(name: &str, why: &str) -> Note {
    Note::partial(name, format!("{why}; nothing was taken from it"))
}
