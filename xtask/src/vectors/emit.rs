//! A suite as text: a readable head, then one case a line.
//!
//! One line a case keeps a diff of a suite the list of the cases that changed.

use std::collections::BTreeSet;

use anyhow::ensure;
use serde_json::{Value, json};

use super::draft::Draft;

/// A converted suite.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Its name, also of its file.
    pub name: &'static str,
    /// What it is about, for its head.
    pub description: &'static str,
    /// Its flags: name, kind of defect, description, effect if the flag is failed.
    pub flags: Vec<Flag>,
    /// What its cases have in common.
    pub defaults: Value,
    /// Its cases, in the order of the rows.
    pub cases: Vec<Draft>,
    /// How many rows they are from.
    pub rows: usize,
    /// The rows that gave no case, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A word cases are marked with; it explains itself once.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The word.
    pub name: &'static str,
    /// The kind of defect.
    pub kind: &'static str,
    /// What the marked cases do.
    pub description: &'static str,
    /// What a subject that fails them lets happen.
    pub effect: &'static str,
}

impl Suite {
    /// `<name>.json`.
    pub fn file_name(&self) -> String {
        format!("{}.json", self.name)
    }

    /// The file's text.
    ///
    /// # Errors
    /// A case carries a flag the suite does not explain, or the suite explains an unused one.
    pub fn render(&self) -> anyhow::Result<String> {
        let known: BTreeSet<&str> = self.flags.iter().map(|flag| flag.name).collect();
        let used: BTreeSet<&str> = self
            .cases
            .iter()
            .flat_map(Draft::flags)
            .map(String::as_str)
            .collect();
        ensure!(
            known == used,
            "suite `{}`: flags explained {known:?}, flags used {used:?}",
            self.name,
        );
        let mut text = String::from("{\n");
        text.push_str(" \"schema\": 1,\n");
        text.push_str(&format!(" \"suite\": {},\n", json!(self.name)));
        text.push_str(&format!(" \"description\": {},\n", json!(self.description)));
        text.push_str(" \"flags\": {");
        for (index, flag) in self.flags.iter().enumerate() {
            let body =
                json!({"kind": flag.kind, "description": flag.description, "effect": flag.effect});
            let comma = if index == 0 { "" } else { "," };
            text.push_str(&format!("{comma}\n  {}: {body}", json!(flag.name)));
        }
        text.push_str("\n },\n");
        text.push_str(&format!(" \"defaults\": {},\n", self.defaults));
        text.push_str(" \"cases\": [\n");
        for (index, case) in self.cases.iter().enumerate() {
            let comma = if index + 1 == self.cases.len() {
                ""
            } else {
                ","
            };
            text.push_str(&format!("{}{comma}\n", case.value()));
        }
        text.push_str(" ]\n}\n");
        Ok(text)
    }
}
