//! Canonicalisation: what is *not* compared, as few named rules as possible.
//!
//! Everything that differs and is not taken out here, masked by a noise run
//! or named in the catalogue, is a divergence. A rule never looks at which
//! subject a trace comes from.

mod asked;
mod complaints;
mod consent;
mod conversations;
mod forks;
mod index;
mod listed;
mod message_ids;
mod parsers;
mod servers;
mod siblings;
mod traceback;
mod unwritten;

use bisim_world::protocol::{EffectKind, FsEffect};
use serde_json::Value;

pub use self::asked::{without_own_marks, without_own_words};
pub use self::complaints::Greetings;
pub use self::conversations::{CONVERSATION, each_result, without_own};
pub use self::index::told;
pub use self::message_ids::MESSAGES_MAX;
pub use self::siblings::Siblings;

/// One rule, for the documents and the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it takes out, and why that is right.
    pub doc: &'static str,
}

/// All rules.
pub const RULES: [Rule; 26] = [
    Rule {
        name: "json-spacing",
        doc: "a text that is JSON is compared value by value and key by key in order; the blanks between tokens are not",
    },
    Rule {
        name: "refusal-prose",
        doc: "refusals and questions are compared by decision; their wording is each subject's own",
    },
    Rule {
        name: "tool-error-is-a-result",
        doc: "whether a tool that ran calls its own answer a failure is in the answer, which is compared; the harness' label for it is not",
    },
    Rule {
        name: "step-delta",
        doc: "a step is charged with what it changed, not with what earlier steps left behind",
    },
    Rule {
        name: "effect-order",
        doc: "effects are compared as a set sorted by path; the order of writing inside one step is not observable",
    },
    Rule {
        name: "made-up-names",
        doc: "a name a subject draws by chance (of a background command, of a job, of work handed out) is compared by the order in which names first appear, everywhere it appears",
    },
    Rule {
        name: "shell-complaints",
        doc: "what an interactive shell says on finding no terminal is taken from the beginning of a background command's output; Hermes does the same, unless it arrives in two pieces, and then counts it in every page of that log; and from the end what the shell says of it, with its process number, when it is ended",
    },
    Rule {
        name: "listed-once",
        doc: "a background command that is listed twice with the same facts is compared as listed once; Hermes 0.19.0 does so for good when a command ends before the call that started it has entered it as running",
    },
    Rule {
        name: "ended-in-any-order",
        doc: "of background commands that are listed, those that have ended are compared as a set; Hermes lists them in the order in which its threads come to know of it, which waiting for one does not settle",
    },
    Rule {
        name: "moment-in-a-name",
        doc: "the moment in a file's name, as in `config.yaml.corrupt.20260101-120000.bak` or `USER.md.bak.1795500000`, is compared by being there, not by value",
    },
    Rule {
        name: "own-count",
        doc: "process numbers and what each subject's own clock says of commands, jobs and work handed out (when it began, how long it ran, when it runs next) are compared by being there, not by value",
    },
    Rule {
        name: "unwritten-draft",
        doc: "Hermes writes a draft beside a file and says, when that fails, which line of its script and which drawn name it was; only what the system said is compared",
    },
    Rule {
        name: "draft-in-a-name",
        doc: "a draft that is left beside a file bears letters drawn by chance; that there is one, and in which directory, is compared",
    },
    Rule {
        name: "parser-words",
        doc: "why a YAML or TOML file is not written is told in the words of each subject's own parser; that it is not written, which kind of file it is and all the rest of the message are compared",
    },
    Rule {
        name: "own-copies",
        doc: "Hermes keeps copies of what a child does and says in files of its own cache, and names them in conversations; the agent has its ledger. Where such a copy lies is not compared, what is in the conversation itself is",
    },
    Rule {
        name: "tools-on-offer",
        doc: "the list of tools after `Available tools: ` is each subject's own: Hermes has tools that need services outside; that the named tool is none of them is compared",
    },
    Rule {
        name: "reason-asked",
        doc: "where the person was asked about a command and said yes, both say so in the same sentence; the reason in it is each subject's own: Hermes names the pattern it saw in the spelling, the agent what the command did",
    },
    Rule {
        name: "asked-by-own-rules",
        doc: "in a whole conversation it hangs on what entered it whether the agent asks before a change of a command counts, in Hermes on the spelling alone; that the person was asked and said yes is each subject's own there, and what the command came to is compared",
    },
    Rule {
        name: "own-traceback",
        doc: "where Hermes' terminal fails in its own code it adds which lines of its files it went through; the agent has no such lines. What failed is in the error, which is compared",
    },
    Rule {
        name: "may-not-fork",
        doc: "where shells say that they may not fork, how often that is heard, how their lines are cut and whether the command's time ran out over their waiting is chance; all else a command says, its code and its effects are compared",
    },
    Rule {
        name: "drawn-file-names",
        doc: "Hermes keeps the pictures, sounds and documents that a server of tools sends in files of its own cache, whose names it draws by chance; what is drawn is not compared, that it names a file, which kind and all the rest of the result are",
    },
    Rule {
        name: "siblings-by-name",
        doc: "the agent that wrote a file before another one did is named by each subject in its own way, with moments of its own clock; whether there is one, and which of those named so far, is compared",
    },
    Rule {
        name: "job-file",
        doc: "the file of jobs holds drawn names and clock times, so its bytes are not compared, only that it changed; what it says is compared by listing the jobs",
    },
    Rule {
        name: "git-index",
        doc: "the index of a git repository says when and where on the disk each file was last seen, and git writes it again when it only looks; that it is there is compared, its bytes and that it was written again are not; what it says is compared by asking git, and who may change it is judged as ever",
    },
    Rule {
        name: "message-ids",
        doc: "Hermes numbers the messages of all conversations together, the agent those of each from a number of millions of its own; in results of `session_search` a message is compared by its number within its conversation, which Hermes' numbers are entered to say",
    },
    Rule {
        name: "job-output",
        doc: "what is kept of a job's run is named after the moment of the run and says it; which job it is of is compared, the moment and the bytes are not",
    },
];

/// Rule `json-spacing`: the text as JSON, or as a JSON string.
#[must_use]
pub fn text_value(text: &str) -> Value {
    // Most texts are plain ones, and a parser says at length why they are no JSON.
    if !text.trim_ascii_start().starts_with(['{', '[']) {
        return Value::String(text.to_owned());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        Ok(_) | Err(_) => Value::String(text.to_owned()),
    }
}

/// Whether two values are equal, the order of keys included.
#[must_use]
pub fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((lk, lv), (rk, rv))| lk == rk && same_value(lv, rv))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same_value(l, r))
        }
        (left, right) => left == right,
    }
}

/// Rule `step-delta`: what changed between two cumulative lists of effects.
#[must_use]
pub fn delta(before: &[FsEffect], after: &[FsEffect]) -> Vec<FsEffect> {
    let mut changes = Vec::new();
    for now in after {
        let was = before.iter().find(|was| was.path == now.path);
        let kind = match was {
            None => now.kind,
            Some(was) if was == now => continue,
            Some(was) => match (was.kind, now.kind) {
                (_, EffectKind::Deleted) => EffectKind::Deleted,
                (EffectKind::Deleted, _) => EffectKind::Created,
                (EffectKind::Created | EffectKind::Modified, _) if was.digest == now.digest => {
                    EffectKind::Metadata
                }
                _ if was.digest == now.digest && was.size == now.size => EffectKind::Metadata,
                _ => EffectKind::Modified,
            },
        };
        changes.push(FsEffect {
            kind,
            ..now.clone()
        });
    }
    for was in before {
        if !after.iter().any(|now| now.path == was.path) {
            // Back to the template's state: undoing is a change as well.
            let kind = match was.kind {
                EffectKind::Created => EffectKind::Deleted,
                EffectKind::Deleted => EffectKind::Created,
                EffectKind::Modified => EffectKind::Modified,
                EffectKind::Metadata => EffectKind::Metadata,
            };
            changes.push(FsEffect {
                path: was.path.clone(),
                kind,
                digest: String::new(),
                size: 0,
                mode: 0,
            });
        }
    }
    changes.sort();
    changes
}

/// The fields that hold a name drawn by chance.
const NAMES: [&str; 2] = ["session_id", "job_id"];
/// The fields each subject counts by itself.
const COUNTS: [&str; 4] = ["pid", "started_at", "uptime_seconds", "duration_seconds"];
/// Moments by each subject's own clock; whether there is one is compared.
const MOMENTS: [&str; 3] = ["next_run_at", "paused_at", "last_run_at"];
/// Where Hermes keeps its jobs.
const JOB_FILE: &str = "/home/u/.hermes/cron/jobs.json";
/// The tools whose results hold such fields.
const COUNTING_TOOLS: [&str; 4] = ["terminal", "process", "execute_code", "cronjob"];

/// Rule `own-count`: what is there stays, its value does not.
fn without_counts(tool: &str, value: &mut Value) {
    if !COUNTING_TOOLS.contains(&tool) {
        return;
    }
    each_field(value, &mut |name, field| {
        if COUNTS.contains(&name) {
            *field = Value::String("<own>".to_owned());
        }
        if MOMENTS.contains(&name) && field.is_string() {
            *field = Value::String("<moment>".to_owned());
        }
    });
}

/// Rule `job-file`: that it changed stays, its bytes do not.
fn without_job_bytes(effects: &mut [FsEffect]) {
    for effect in effects
        .iter_mut()
        .filter(|effect| effect.path == JOB_FILE && effect.kind != EffectKind::Deleted)
    {
        effect.digest = "<own>".to_owned();
        effect.size = 0;
    }
}

/// Where Hermes keeps what came of the runs of its jobs.
const JOB_OUTPUT: &str = "/home/u/.hermes/cron/output/";

/// Rule `job-output`: of which job it is stays, the moment and the bytes do not.
fn without_job_output(effects: &mut [FsEffect]) {
    for effect in effects {
        let Some((job, name)) = effect
            .path
            .strip_prefix(JOB_OUTPUT)
            .and_then(|below| below.split_once('/'))
        else {
            continue;
        };
        let is_moment = name.strip_suffix(".md").is_some_and(|name| {
            name.len() == "2026-01-01_12-00-00".len()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_digit() || b"-_".contains(&b))
        });
        if is_moment {
            effect.path = format!("{JOB_OUTPUT}{job}/<moment>.md");
            effect.digest = "<own>".to_owned();
            effect.size = 0;
        }
    }
}

/// Rule `moment-in-a-name`: file names without the moment in them.
fn without_moments(effects: &mut [FsEffect]) {
    for effect in effects {
        if let Some(named) = without_moment(&effect.path) {
            effect.path = named;
        }
    }
}

/// The path with eight digits, a dash and six digits between dots taken out, or with the
/// seconds behind a copy's ending.
fn without_moment(path: &str) -> Option<String> {
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let is_moment = |part: &&str| {
        part.split_once('-')
            .is_some_and(|(day, time)| digits(day, 8) && digits(time, 6))
    };
    let (directory, name) = path.rsplit_once('/')?;
    // Names with so many digits are few, and most names are looked at no further.
    let of_name = name.bytes().filter(u8::is_ascii_digit).count();
    (of_name >= 10).then_some(())?;
    if let Some((copied, seconds)) = name.rsplit_once('.')
        && digits(seconds, 10)
        && copied.ends_with(".bak")
    {
        return Some(format!("{directory}/{copied}.<moment>"));
    }
    name.split('.')
        .find(is_moment)
        .map(|moment| format!("{directory}/{}", name.replacen(moment, "<moment>", 1)))
}

/// Rule `made-up-names`: the names a run has shown so far.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// Puts numbers in place of names, new ones included.
    pub fn numbered(&mut self, tool: &str, value: &mut Value) {
        if COUNTING_TOOLS.contains(&tool) {
            each_field(value, &mut |name, field| {
                if let (true, Value::String(text)) = (NAMES.contains(&name), &*field)
                    && text.len() >= 12
                    && !self.0.contains(text)
                {
                    self.0.push(text.clone());
                }
            });
        }
        if !self.0.is_empty() {
            self.put(value);
        }
    }

    /// The same for a field of any value.
    pub fn numbered_in(&mut self, field: &str, value: &mut Value) {
        each_field(value, &mut |name, held| {
            if let (true, Value::String(text)) = (name == field, &*held)
                && text.len() >= 12
                && !self.0.contains(text)
            {
                self.0.push(text.clone());
            }
        });
        self.put(value);
    }

    fn put(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for (index, name) in self.0.iter().enumerate() {
                    if text.contains(name.as_str()) {
                        *text = text.replace(name.as_str(), &format!("<name {}>", index + 1));
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.put(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.put(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn each_field(value: &mut Value, visit: &mut impl FnMut(&str, &mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_field(item, visit)),
        Value::Object(fields) => {
            for (name, field) in fields {
                visit(name, field);
                each_field(field, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn effect(path: &str, kind: EffectKind, digest: &str) -> FsEffect {
        FsEffect {
            path: path.into(),
            kind,
            digest: digest.into(),
            size: 1,
            mode: 0o644,
        }
    }

    #[test]
    fn json_spacing_is_not_compared_but_the_order_of_keys_is() {
        let same = |l: &str, r: &str| same_value(&text_value(l), &text_value(r));
        assert!(same(r#"{"a": 1, "b": [1,2]}"#, r#"{"a":1,"b":[1, 2]}"#));
        assert!(!same(r#"{"a": 1, "b": 2}"#, r#"{"b": 2, "a": 1}"#));
        assert!(!same("1", "1 "));
        assert!(same("plain", "plain"));
    }

    #[test]
    fn a_step_is_charged_only_with_what_it_changed() {
        let a = effect("/a", EffectKind::Created, "1");
        let check = |before: &[FsEffect], after: &[FsEffect], expected: &[(&str, EffectKind)]| {
            let got = delta(before, after);
            let got: Vec<_> = got.iter().map(|e| (e.path.as_str(), e.kind)).collect();
            assert_eq!(got, expected);
        };
        check(
            &[],
            std::slice::from_ref(&a),
            &[("/a", EffectKind::Created)],
        );
        check(std::slice::from_ref(&a), std::slice::from_ref(&a), &[]);
        check(
            std::slice::from_ref(&a),
            &[],
            &[("/a", EffectKind::Deleted)],
        );
        check(
            std::slice::from_ref(&a),
            &[effect("/a", EffectKind::Created, "2")],
            &[("/a", EffectKind::Modified)],
        );
        check(
            &[effect("/a", EffectKind::Deleted, "")],
            &[effect("/a", EffectKind::Modified, "2")],
            &[("/a", EffectKind::Created)],
        );
        check(
            &[effect("/a", EffectKind::Modified, "2")],
            &[effect("/a", EffectKind::Deleted, "")],
            &[("/a", EffectKind::Deleted)],
        );
    }

    #[test]
    fn a_name_drawn_by_chance_is_its_number_and_two_names_are_two() {
        let run = |one: &str, two: &str, last: &str| {
            let mut names = Names::default();
            let mut seen = Vec::new();
            for value in [
                json!({"session_id": one}),
                json!({"session_id": two}),
                json!({"error": format!("No process with ID {last}"), "l": [{"k": last}]}),
            ] {
                let mut value = value;
                names.numbered("process", &mut value);
                seen.push(value);
            }
            seen
        };
        let one = run(
            "proc_aaaaaaaaaaaa",
            "proc_bbbbbbbbbbbb",
            "proc_bbbbbbbbbbbb",
        );
        assert_eq!(
            one,
            run(
                "proc_111111111111",
                "proc_222222222222",
                "proc_222222222222"
            )
        );
        assert_ne!(
            one,
            run(
                "proc_111111111111",
                "proc_222222222222",
                "proc_111111111111"
            )
        );
        assert_ne!(
            one,
            run(
                "proc_111111111111",
                "proc_111111111111",
                "proc_111111111111"
            )
        );
        assert_ne!(
            one,
            run(
                "proc_111111111111",
                "proc_222222222222",
                "proc_333333333333"
            )
        );
        let mut other = json!({"session_id": "proc_aaaaaaaaaaaa"});
        Names::default().numbered("read_file", &mut other);
        assert_eq!(other, json!({"session_id": "proc_aaaaaaaaaaaa"}));
    }

    #[test]
    fn own_counts_are_compared_by_being_there() {
        let seen = |tool: &str, mut value: Value| {
            without_counts(tool, &mut value);
            value
        };
        let one = seen(
            "process",
            json!({"processes": [{"pid": 7, "exit_code": 1}]}),
        );
        assert_eq!(
            one,
            seen(
                "process",
                json!({"processes": [{"pid": null, "exit_code": 1}]})
            )
        );
        assert_ne!(
            one,
            seen("process", json!({"processes": [{"exit_code": 1}]}))
        );
        assert_ne!(
            one,
            seen(
                "process",
                json!({"processes": [{"pid": 7, "exit_code": 2}]})
            )
        );
        assert_eq!(seen("read_file", json!({"pid": 7})), json!({"pid": 7}));
    }

    #[test]
    fn a_moment_is_compared_by_being_there_and_by_nothing_else() {
        let seen = |tool: &str, value: Value| {
            let mut value = value;
            without_counts(tool, &mut value);
            value
        };
        let at = |when: &str| json!({"job": {"next_run_at": when, "paused_at": null}});
        assert_eq!(seen("cronjob", at("2026")), seen("cronjob", at("2027")));
        assert_ne!(
            seen("cronjob", at("2026")),
            seen(
                "cronjob",
                json!({"job": {"next_run_at": null, "paused_at": null}})
            )
        );
        assert_ne!(seen("todo", at("2026")), seen("todo", at("2027")));
    }

    #[test]
    fn of_the_file_of_jobs_only_the_bytes_are_left_out() {
        let seen = |path: &str, digest: &str, kind: EffectKind| {
            let mut effects = [effect(path, kind, digest)];
            without_job_bytes(&mut effects);
            effects
        };
        let made = EffectKind::Created;
        assert_eq!(seen(JOB_FILE, "1", made), seen(JOB_FILE, "2", made));
        assert_ne!(
            seen(JOB_FILE, "1", made),
            seen(JOB_FILE, "1", EffectKind::Modified)
        );
        assert_ne!(seen("/x", "1", made), seen("/x", "2", made));
    }

    #[test]
    fn a_moment_in_a_name_is_no_difference_but_any_other_number_is() {
        let named = |path: &str| without_moment(path);
        assert_eq!(
            named("/h/config.yaml.corrupt.20260101-120000.bak").as_deref(),
            Some("/h/config.yaml.corrupt.<moment>.bak")
        );
        for other in [
            "/h/a.2026-120000",
            "/h/a.20260101-12000x",
            "/20260101-120000/a",
            "a",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_and_a_sentence() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(rule.doc.len() > 20);
            assert!(
                RULES
                    .iter()
                    .skip(i + 1)
                    .all(|other| other.name != rule.name)
            );
        }
    }
}
