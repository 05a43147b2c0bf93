//! A case while it is being written.
//!
//! The fields appear in the file in the order of this struct; empty ones are
//! left out, so that a line of a suite holds only what the case is about.

use serde_json::{Map, Value, json};

use super::row::Row;

/// What the agent has to do, whatever Hermes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// It serves the call.
    MustPermit,
    /// It lets no effect through that the case does not grant.
    MustDeny,
    /// Both are sound; the reason says why.
    Either,
}

impl Agent {
    fn as_str(self) -> &'static str {
        match self {
            Self::MustPermit => "must-permit",
            Self::MustDeny => "must-deny",
            Self::Either => "either",
        }
    }
}

/// One case.
#[derive(Clone, Debug)]
pub struct Draft {
    id: String,
    flags: Vec<String>,
    source: Value,
    fields: Map<String, Value>,
    script: Vec<Value>,
    hermes_world: bool,
    expect: Value,
    recorded: Value,
}

impl Draft {
    /// A case for `row`, whose script and expectation are still to be said.
    pub fn new(row: &Row, note: String) -> Self {
        Self {
            id: row.id.clone(),
            flags: Vec::new(),
            source: json!({"from": row.from, "row": row.id, "note": note}),
            fields: Map::new(),
            script: Vec::new(),
            hermes_world: true,
            expect: Value::Null,
            recorded: Value::Null,
        }
    }

    /// A case that is from no row; the suite's defaults say where it is from.
    pub fn made() -> Self {
        Self {
            id: String::new(),
            flags: Vec::new(),
            source: Value::Null,
            fields: Map::new(),
            script: Vec::new(),
            hermes_world: true,
            expect: Value::Null,
            recorded: Value::Null,
        }
    }

    /// Another id than the row's, for rows that give more than one case.
    pub fn id(mut self, id: String) -> Self {
        self.id = id;
        self
    }

    /// One of the suite's flags.
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Something that differs from the suite's defaults: `world`, `context`, `held`, ...
    pub fn field(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// A step that calls a tool.
    pub fn call(mut self, tool: &str, args: &Value) -> Self {
        self.script
            .push(json!({"call": {"tool": tool, "args": args}}));
        self
    }

    /// A step of any other kind.
    pub fn step(mut self, step: Value) -> Self {
        self.script.push(step);
        self
    }

    /// The whole expectation, where it says more than what and why.
    pub fn expecting(mut self, expect: Value) -> Self {
        self.expect = expect;
        self
    }

    /// A step that asks one decision function.
    pub fn probe(mut self, name: &str, input: &Value) -> Self {
        self.script
            .push(json!({"probe": {"name": name, "input": input}}));
        self
    }

    /// Hermes' leg needs no world: its answer is a pure function of the input.
    pub fn hermes_without_world(mut self) -> Self {
        self.hermes_world = false;
        self
    }

    /// What the agent has to do and why.
    pub fn expect(mut self, agent: Agent, reason: &str) -> Self {
        self.expect = json!({"agent": agent.as_str(), "reason": reason});
        self
    }

    /// What was recorded of 0.19.0.
    pub fn recorded(mut self, facts: Value) -> Self {
        self.recorded = json!({"0.19.0": facts});
        self
    }

    /// The flags it carries.
    pub fn flags(&self) -> &[String] {
        &self.flags
    }

    /// The object of the suite file.
    pub fn value(&self) -> Value {
        let mut case = Map::new();
        case.insert("id".into(), json!(self.id));
        if !self.flags.is_empty() {
            case.insert("flags".into(), json!(self.flags));
        }
        if !self.source.is_null() {
            case.insert("source".into(), self.source.clone());
        }
        for (name, value) in &self.fields {
            case.insert(name.clone(), value.clone());
        }
        case.insert("script".into(), json!(self.script));
        if !self.hermes_world {
            case.insert("hermes".into(), json!({"world": false}));
        }
        if !self.expect.is_null() {
            case.insert("expect".into(), self.expect.clone());
        }
        if !self.recorded.is_null() {
            case.insert("recorded".into(), self.recorded.clone());
        }
        Value::Object(case)
    }
}
