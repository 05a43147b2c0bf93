//! What a configuration has already, so that a second migration proposes it no second time.
//!
//! Whoever took an earlier proposal over has its rules and, as comments or not, its blocks. A
//! rule is known by what it denies, however it is written; a block by its lines.

use std::collections::BTreeSet;

use super::{super::translate::ProposedDenial, MARK, key_of};

/// What is there.
#[derive(Debug, Default)]
pub(super) struct There {
    text: String,
    rules: Vec<toml::Table>,
    ids: BTreeSet<String>,
}

impl There {
    /// Of a configuration's text; nothing of one that is no TOML, which others refuse.
    pub(super) fn of(text: &str) -> Self {
        let read: toml::Table = toml::from_str(text).unwrap_or_default();
        let tables = |name: &str| -> Vec<toml::Table> {
            let list = read.get(name).and_then(toml::Value::as_array);
            let tables = list.into_iter().flatten();
            tables.filter_map(|one| one.as_table().cloned()).collect()
        };
        let rules = tables("rules");
        let id = |rule: &toml::Table| Some(rule.get("id")?.as_str()?.to_owned());
        Self {
            text: text.to_owned(),
            ids: rules.iter().filter_map(id).collect(),
            rules,
        }
    }

    /// Whether a rule denies just this.
    pub(super) fn denies(&self, denial: &ProposedDenial) -> bool {
        let (key, value) = key_of(&denial.about);
        let verbs: BTreeSet<&str> = denial.verbs.iter().map(String::as_str).collect();
        self.rules.iter().any(|rule| {
            let said = |key: &str| rule.get(key).and_then(toml::Value::as_str);
            let list = rule.get("verbs").and_then(toml::Value::as_array);
            let of_rule = list.into_iter().flatten();
            let of_rule: BTreeSet<&str> = of_rule.filter_map(toml::Value::as_str).collect();
            said("decision") == Some("deny") && said(key) == Some(value) && of_rule == verbs
        })
    }

    /// A name for a rule that no other has: this one, or with a figure behind it.
    pub(super) fn free(&mut self, id: &str) -> String {
        let mut name = id.to_owned();
        let mut figure = 2;
        while !self.ids.insert(name.clone()) {
            name = format!("{id}-{figure}");
            figure += 1;
        }
        name
    }

    /// Whether the lines of a block are there, as comments or taken.
    pub(super) fn holds(&self, block: &str) -> bool {
        let taken: String = block
            .lines()
            .map(|line| format!("{}\n", line.strip_prefix(MARK).unwrap_or(line)))
            .collect();
        let lines = format!("\n{}\n", self.text);
        let has = |block: &str| lines.contains(&format!("\n{}\n", block.trim_end()));
        has(block) || has(&taken)
    }
}
