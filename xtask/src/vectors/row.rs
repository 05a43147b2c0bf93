//! One recorded row, and the names its paths stand for.
//!
//! The recorders replaced the folders of the test run by `$TMP`, `$HOME` and
//! `$REPO`; worlds have fixed folders instead. Only rows that come from a test
//! run carry such names: in generated rows a `$HOME` is five literal letters.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// Where `$TMP` lies in a world.
pub const TMP: &str = "/tmp/t";
/// Where `$HOME` lies in a world.
pub const HOME: &str = "/home/u";
/// Where `$REPO`, the working directory of the upstream tests, lies in a world.
pub const REPO: &str = "/ws";

/// One line of a row file.
#[derive(Clone, Debug)]
pub struct Row {
    /// The file it is from, below the folder of the rows' parent, e.g. `cases/bypass.jsonl`.
    pub from: String,
    /// Its `id`.
    pub id: String,
    /// The whole object.
    pub body: Value,
}

/// Where a row's fact was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A call seen while the upstream tests of the release passed.
    UpstreamTest,
    /// An expectation of a later upstream test.
    LaterUpstream,
    /// An input made up by the recorder.
    Generated,
}

impl Row {
    /// The row's `kind`; empty in files that have none.
    pub fn kind(&self) -> &str {
        self.body["kind"].as_str().unwrap_or_default()
    }

    /// Its `source`, as a closed word.
    pub fn origin(&self) -> anyhow::Result<Origin> {
        match self.body["source"].as_str() {
            Some("upstream test suite at the 0.19.0 release") => Ok(Origin::UpstreamTest),
            Some("later upstream expectation (after 0.19.0)") => Ok(Origin::LaterUpstream),
            Some("generated; result of the real 0.19.0") => Ok(Origin::Generated),
            other => anyhow::bail!("{}: unknown source {other:?}", self.id),
        }
    }

    /// Its input with the recorder's names replaced, where it has them.
    pub fn input(&self) -> anyhow::Result<Value> {
        Ok(match self.origin()? {
            Origin::UpstreamTest | Origin::LaterUpstream => placed(&self.body["input"]),
            Origin::Generated => self.body["input"].clone(),
        })
    }

    /// What the real package answered: alone where that was tried, else in the passing test.
    pub fn actual(&self) -> anyhow::Result<Value> {
        let fact = match &self.body["actual_0_19_0"] {
            Value::Object(_) => &self.body["actual_0_19_0"],
            _ => &self.body["expect"],
        };
        Ok(match self.origin()? {
            Origin::UpstreamTest | Origin::LaterUpstream => placed(fact),
            Origin::Generated => fact.clone(),
        })
    }

    /// Whether upstream's own expectation differs from what 0.19.0 answered alone.
    pub fn disagrees(&self) -> bool {
        self.body["agree"] == Value::Bool(false)
    }

    /// Whether the recorder warns that the row leans on the context of its test.
    pub fn leans_on_its_test(&self) -> bool {
        self.body["standalone"] == Value::Bool(false)
    }

    /// Where the fact is from and what to know about it, in one sentence or two.
    pub fn note(&self) -> anyhow::Result<String> {
        let mut note = match self.origin()? {
            Origin::UpstreamTest => match self.body["tests"].get(0).and_then(Value::as_str) {
                Some(test) => format!("seen while {test} passed"),
                None => "seen while the upstream tests passed".to_owned(),
            },
            Origin::LaterUpstream => "expectation of a later upstream test".to_owned(),
            Origin::Generated => "made-up input, answer of the real 0.19.0".to_owned(),
        };
        if self.leans_on_its_test() {
            note.push_str("; leans on the context of that test, so the fact kept is what 0.19.0 answers alone");
        } else if self.disagrees() {
            note.push_str(&format!(
                "; upstream came to expect {}",
                self.body["expect"]
            ));
        } else if self.body["agree"].is_null() {
            note.push_str("; not re-run alone by the recorder");
        }
        Ok(note)
    }
}

/// Reads one file of rows.
pub fn read(folder: &Path, name: &str) -> anyhow::Result<Vec<Row>> {
    let path = folder.join(name);
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let mut rows = Vec::new();
    for (number, line) in (1_u32..).zip(text.lines()) {
        let body: Value = serde_json::from_str(line)
            .with_context(|| format!("{}:{number}: not JSON", path.display()))?;
        let id = body["id"]
            .as_str()
            .with_context(|| format!("{}:{number}: no id", path.display()))?
            .to_owned();
        rows.push(Row {
            from: format!("cases/{name}"),
            id,
            body,
        });
    }
    Ok(rows)
}

/// Replaces the recorder's names in every string below `value`.
pub fn placed(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(placed_text(text)),
        Value::Array(items) => items.iter().map(placed).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (placed_text(name), placed(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn placed_text(text: &str) -> String {
    text.replace("$TMP", TMP)
        .replace("$HOME", HOME)
        .replace("$REPO", REPO)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::placed;

    #[test]
    fn the_recorders_names_become_folders_of_the_world_at_any_depth() {
        assert_eq!(
            placed(&json!({"$TMP/a": ["$HOME/x", {"p": "*** Add File: $TMP/b\n"}], "n": 1})),
            json!({"/tmp/t/a": ["/home/u/x", {"p": "*** Add File: /tmp/t/b\n"}], "n": 1}),
        );
    }
}
