//! Reads and lints the vectors.
//!
//! Every problem is reported with file and place, all of them at once; a
//! vector that is malformed is never skipped, it fails the run (exit code 5).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use bisim_world::protocol::{Held, Step};
use hermitcrab::given_file::{self, Pipes};
use sha2::{Digest as _, Sha256};

use crate::case::{Case, Must, SCHEMA_VERSION, SuiteFile};

mod conversations;
mod doings;
mod names;
mod rules;
mod stated;

/// The file verbs, and the others of the agent's taxonomy.
pub const VERBS: [&str; 16] = [
    "fs.*",
    "fs.list",
    "fs.read",
    "fs.create",
    "fs.modify",
    "fs.delete",
    "fs.mount",
    "proc.exec",
    "net.connect",
    "net.listen",
    "secret.use",
    "model.send",
    "session.read",
    "user.ask",
    "agent.spawn",
    "config.change",
];

/// Where the suites are, below the vectors.
pub(crate) const FOLDER: &str = "suites";
/// The catalogue's file, below the vectors.
pub(crate) const CATALOGUE: &str = "known-divergences.toml";

/// All cases, in the order of the files' names.
#[derive(Debug, Default)]
pub struct Suites {
    /// The cases.
    pub cases: Vec<Case>,
    /// The suites' descriptions, by name.
    pub descriptions: BTreeMap<String, String>,
    /// A digest of all that was read and of the catalogue beside it: what a verdict is of.
    pub digest: String,
}

impl Suites {
    /// Whether there are suites of all these names.
    ///
    /// # Errors
    /// The first there is none of, and those there are.
    pub fn named(&self, names: &[String]) -> Result<(), String> {
        let unknown = |name: &&String| !self.descriptions.contains_key(*name);
        let Some(name) = names.iter().find(unknown) else {
            return Ok(());
        };
        let known: Vec<_> = self.descriptions.keys().map(String::as_str).collect();
        let meant = match hermitcrab::config::keys::nearest(name, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`? There"),
            None => "there".to_owned(),
        };
        Err(format!(
            "no suite `{name}`; {meant} are {}",
            known.join(", ")
        ))
    }
}

/// One thing wrong with the vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// `line:column`, a case id, or empty.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if !self.place.is_empty() {
            f.write_str(":")?;
            one_line(f, &self.place)?;
        }
        f.write_str(": ")?;
        one_line(f, &self.what)
    }
}

/// What a file says may hold line breaks and escapes; a message must not.
fn one_line(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(char::is_control) {
        let (plain, from) = rest.split_at(at);
        f.write_str(plain)?;
        let mut letters = from.chars();
        if let Some(control) = letters.next() {
            write!(f, "{}", control.escape_default())?;
        }
        rest = letters.as_str();
    }
    f.write_str(rest)
}

/// More than any file of cases holds.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

/// Reads a file of the vectors; a pipe would be waited at for ever.
///
/// # Errors
/// It is no file, or cannot be read.
pub(crate) fn bytes_of(file: &Path) -> std::io::Result<Vec<u8>> {
    given_file::bytes(file, BYTES_MAX, Pipes::Refused)
}

/// Loads `suites/*.json` and `regressions/*.json` under `vectors`.
///
/// # Errors
/// Every problem found, in the order of the files.
pub fn load(vectors: &Path) -> Result<Suites, Vec<Problem>> {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for (folder, required) in [(FOLDER, true), ("regressions", false)] {
        let folder = vectors.join(folder);
        match fs::read_dir(&folder) {
            Ok(entries) => files.extend(
                entries
                    .flatten()
                    .map(|entry| entry.path())
                    .filter(|path| path.extension().is_some_and(|ending| ending == "json")),
            ),
            Err(error) if required => problems.push(Problem {
                file: folder,
                place: String::new(),
                what: format!("cannot list the suites: {error}"),
            }),
            Err(_) => {}
        }
    }
    files.sort();
    let mut suites = Suites::default();
    let mut ids = BTreeMap::new();
    let mut hash = Sha256::new();
    let mut count = |name: &Path, bytes: &[u8]| {
        let name = name.file_name().unwrap_or_default().as_encoded_bytes();
        for part in [name, bytes] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    };
    for file in files {
        let wrong = match bytes_of(&file).map(String::from_utf8) {
            Ok(Ok(text)) => {
                count(&file, text.as_bytes());
                parse(&file, &text, &mut suites, &mut ids, &mut problems);
                continue;
            }
            Ok(Err(error)) => (
                end_of(error.as_bytes().get(..error.utf8_error().valid_up_to())),
                "is not text: a byte that is no UTF-8".to_owned(),
            ),
            Err(error) => (String::new(), format!("cannot read: {error}")),
        };
        problems.push(Problem {
            file,
            place: wrong.0,
            what: wrong.1,
        });
    }
    // One that cannot be read is told by whoever reads it.
    let catalogue = vectors.join(CATALOGUE);
    count(&catalogue, &bytes_of(&catalogue).unwrap_or_default());
    suites.digest = data_encoding::HEXLOWER.encode(&hash.finalize());
    for case in &suites.cases {
        let file = ids.get(&case.id).cloned().unwrap_or_default();
        problems.extend(names::lint(case).into_iter().map(|what| Problem {
            file: file.clone(),
            place: case.id.clone(),
            what,
        }));
    }
    if problems.is_empty() {
        Ok(suites)
    } else {
        Err(problems)
    }
}

/// Line and column of what follows these bytes, both counted from 1.
fn end_of(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let last = lines.clone().next_back().unwrap_or_default();
    format!("{}:{}", lines.count(), last.len() + 1)
}

/// Parses and lints one file.
pub fn parse(
    file: &Path,
    text: &str,
    suites: &mut Suites,
    ids: &mut BTreeMap<String, PathBuf>,
    problems: &mut Vec<Problem>,
) {
    let suite = match read(text) {
        Ok(suite) => suite,
        Err((place, what)) => {
            problems.push(Problem {
                file: file.to_owned(),
                place,
                what,
            });
            return;
        }
    };
    let stem = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    if suite.suite != stem {
        problems.push(Problem {
            file: file.to_owned(),
            place: String::new(),
            what: format!("suite `{}` must be named after its file", suite.suite),
        });
    }
    take(file, suite, suites, ids, problems);
}

/// The cases of one file, wherever it is and whatever it is called.
///
/// # Errors
/// Every problem found in it.
pub fn alone(file: &Path, text: &str) -> Result<Vec<Case>, Vec<Problem>> {
    let (mut suites, mut problems) = (Suites::default(), Vec::new());
    let of_file = |place: String, what: String| Problem {
        file: file.to_owned(),
        place,
        what,
    };
    match read(text) {
        Ok(suite) => take(
            file,
            suite,
            &mut suites,
            &mut BTreeMap::new(),
            &mut problems,
        ),
        Err((place, what)) => problems.push(of_file(place, what)),
    }
    for case in &suites.cases {
        let wrong = names::lint(case).into_iter();
        problems.extend(wrong.map(|what| of_file(case.id.clone(), what)));
    }
    match problems.is_empty() {
        true => Ok(suites.cases),
        false => Err(problems),
    }
}

/// A file's suite; or where in it what is wrong.
fn read(text: &str) -> Result<SuiteFile, (String, String)> {
    let read = serde_json::from_str::<SuiteFile>(text);
    // The version comes first: another version may have other fields, or means something
    // else by the same. A file that was read says its own, and need not be read twice.
    let version = match &read {
        Ok(suite) => Some(u64::from(suite.schema)),
        Err(_) => serde_json::from_str::<serde_json::Value>(text)
            .ok()
            .and_then(|value| value.get("schema")?.as_u64()),
    };
    if let Some(version) = version.filter(|version| *version != u64::from(SCHEMA_VERSION)) {
        let what = format!("schema version {version}; this build reads {SCHEMA_VERSION}");
        return Err((String::new(), what));
    }
    read.map_err(|error| {
        let place = format!("{}:{}", error.line(), error.column());
        (place, names::told(&error))
    })
}

/// Resolves and lints the cases of one suite.
fn take(
    file: &Path,
    suite: SuiteFile,
    suites: &mut Suites,
    ids: &mut BTreeMap<String, PathBuf>,
    problems: &mut Vec<Problem>,
) {
    let mut problem = |place: String, what: String| {
        problems.push(Problem {
            file: file.to_owned(),
            place,
            what,
        });
    };
    suites
        .descriptions
        .insert(suite.suite.clone(), suite.description.clone());
    for case in suite.cases {
        let case = Case::resolve(&suite.suite, &suite.defaults, case);
        if let Some(other) = ids.insert(case.id.clone(), file.to_owned()) {
            problem(
                case.id.clone(),
                format!("duplicate id, first used in {}", other.display()),
            );
        }
        for flag in &case.flags {
            if !suite.flags.contains_key(flag) {
                problem(
                    case.id.clone(),
                    format!("flag `{flag}` is not in the flag table"),
                );
            }
        }
        for what in lint(&case) {
            problem(case.id.clone(), what);
        }
        suites.cases.push(case);
    }
}

/// What is wrong with one case.
fn lint(case: &Case) -> Vec<String> {
    let mut wrong = Vec::new();
    if case.id.is_empty()
        || !case
            .id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    {
        wrong.push("an id is letters, digits, `-`, `_` and `.`".to_owned());
    }
    if case.job.script.is_empty() {
        wrong.push("the script is empty".to_owned());
    }
    if case.job.deadline_ms == 0 {
        wrong.push("a deadline of 0 ms is over before anything ran".to_owned());
    }
    if case.expect.agent == Must::Either && case.expect.reason.is_empty() {
        wrong.push("`either` needs a reason".to_owned());
    }
    stated::lint(case, &mut wrong);
    if !case.cwd().starts_with('/') {
        wrong.push("the world's cwd must be absolute".to_owned());
    }
    if let Some(world) = &case.job.world {
        for file in &world.files {
            if !file.path.starts_with('/') {
                wrong.push(format!("file `{}` must be absolute", file.path));
            }
        }
    }
    let mut grants = BTreeSet::new();
    let mut children = BTreeSet::new();
    for held in &case.job.held {
        lint_held(held, &mut grants, &mut wrong);
    }
    conversations::lint(case, &mut wrong);
    doings::lint(case, &mut wrong);
    rules::lint(case, &mut wrong);
    for (earlier, step) in (0_u64..).zip(&case.job.script) {
        if let Step::Call { args, .. } = step
            && bisim_world::script::sources(args)
                .iter()
                .any(|from| *from == 0 || *from > earlier)
        {
            wrong.push("takes something from a step that is no earlier one".to_owned());
        }
        match step {
            Step::Grant(held) => lint_held(held, &mut grants, &mut wrong),
            Step::Revoke { grant } => {
                if !grants.contains(grant) {
                    wrong.push(format!("revokes the unknown grant `{grant}`"));
                }
            }
            Step::Spawn { child, forward } => {
                for grant in forward {
                    if !grants.contains(grant) {
                        wrong.push(format!("forwards the unknown grant `{grant}`"));
                    }
                }
                if !children.insert(child.clone()) {
                    wrong.push(format!("child `{child}` is spawned twice"));
                }
            }
            Step::Call { by: Some(by), .. } if !children.contains(by) => {
                wrong.push(format!("a call by the unknown child `{by}`"));
            }
            Step::Call { .. }
            | Step::Probe { .. }
            | Step::Advance { .. }
            | Step::EndSession {}
            | Step::Restart(_) => {}
        }
        for leg in [case.hermes, case.agent] {
            if !leg.world && !matches!(step, Step::Probe { .. }) {
                wrong.push("a leg without a world may hold only probes".to_owned());
            }
        }
    }
    wrong
}

fn lint_held(held: &Held, grants: &mut BTreeSet<String>, wrong: &mut Vec<String>) {
    if !VERBS.contains(&held.verb.as_str()) {
        wrong.push(format!(
            "grant `{}` has the unknown verb `{}`; there are {}",
            held.id,
            held.verb,
            VERBS.join(", ")
        ));
    }
    if held.verb.starts_with("fs.") && !held.on.starts_with('/') {
        wrong.push(format!("grant `{}` must be on an absolute path", held.id));
    }
    if !grants.insert(held.id.clone()) {
        wrong.push(format!("grant `{}` is named twice", held.id));
    }
}

#[cfg(test)]
mod tests;
