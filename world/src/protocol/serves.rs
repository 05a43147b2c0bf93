//! A server of tools on a world's loopback, as a case says it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the server is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Serves {
    /// Where it listens.
    pub port: u16,
    /// Who does not say this in `Authorization` is turned away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether answers come as events.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams: bool,
    /// Its tools as it lists them.
    #[serde(default)]
    pub tools: Vec<Value>,
    /// What each tool gives: `{"result": ...}`, `{"error": ...}`, or a number, the
    /// status it answers with. What it was asked stands for a text `$ASKED`.
    #[serde(default)]
    pub answers: BTreeMap<String, Value>,
    /// What it says it has; tools, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announces: Option<Value>,
    /// What each other method of the protocol gives, as `answers`; what it was asked
    /// are its parameters, without `_meta`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub methods: BTreeMap<String, Value>,
}
