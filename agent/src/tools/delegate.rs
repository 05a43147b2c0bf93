//! `delegate_task`: what a model may hand to another agent.
//!
//! Only the call is read here. Which capabilities go along is decided by the
//! chat loop, from what the call names and what the parent holds.

use serde_json::{Map, Value};

use crate::{
    runtime::{ToolResult, WorkLimits},
    text::{args, json, pytext},
};

/// Whether a child may hand out work itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It works alone.
    #[default]
    Leaf,
    /// It may start agents of its own, where the depth allows it.
    Orchestrator,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What is to be done.
    pub goal: String,
    /// What the child should know.
    pub context: Option<String>,
    /// What it may be.
    pub role: Role,
    /// Grants named to go along, as the parent knows them.
    pub grants: Vec<String>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOut {
    /// What is handed out, at least one task.
    pub tasks: Vec<Task>,
    /// What the call says of all of them, to be told again at the end.
    pub context: Option<String>,
    /// What the children may be unless their task says otherwise.
    pub role: Role,
}

const NOTHING: &str = "Provide either 'goal' (single task) or 'tasks' (batch).";

/// Reads a call by an agent `depth` below the first one.
///
/// # Errors
/// The result that says what is wrong with it.
pub fn read(given: &Value, depth: u32, limits: WorkLimits) -> Result<HandOut, ToolResult> {
    let WorkLimits {
        depth_max,
        tasks_max,
        rounds_max: _,
    } = limits;
    if depth >= depth_max {
        return Err(ToolResult::error(&format!(
            "Delegation depth limit reached (depth={depth}, max_spawn_depth={depth_max}). Raise \
             delegation.max_spawn_depth in config.yaml if deeper nesting is required (no hard ceiling, but each level \
             multiplies API cost)."
        )));
    }
    let none = Map::new();
    let given = given.as_object().unwrap_or(&none);
    let recovered;
    let tasks = match given.get("tasks") {
        Some(Value::String(text)) => {
            recovered = recovered_tasks(text)?;
            Some(&recovered)
        }
        other => other,
    };
    let role = role(given.get("role"), Role::Leaf);
    let tasks = match tasks {
        Some(Value::Array(tasks)) if !tasks.is_empty() => {
            if tasks.len() > tasks_max {
                return Err(ToolResult::error(&format!(
                    "Too many tasks: {} provided, but max_concurrent_children is {tasks_max}. Either reduce the task \
                     count, split into multiple delegate_task calls, or increase delegation.max_concurrent_children \
                     in config.yaml.",
                    tasks.len()
                )));
            }
            tasks.clone()
        }
        _ => match given.get("goal") {
            Some(Value::String(goal)) if !pytext::strip(goal).is_empty() => {
                vec![Value::Object(given.clone())]
            }
            _ => return Err(ToolResult::error(NOTHING)),
        },
    };
    let tasks: Vec<Task> = tasks
        .iter()
        .enumerate()
        .map(|(place, task)| one(place, task, role))
        .collect::<Result<_, _>>()?;
    Ok(HandOut {
        tasks,
        context: context(given),
        role,
    })
}

fn context(given: &Map<String, Value>) -> Option<String> {
    given
        .get("context")
        .and_then(Value::as_str)
        .filter(|context| !context.is_empty())
        .map(str::to_owned)
}

/// A list that came as text.
fn recovered_tasks(text: &str) -> Result<Value, ToolResult> {
    let text = pytext::strip(text);
    if text.is_empty() {
        return Err(ToolResult::error(NOTHING));
    }
    match serde_json::from_str(text) {
        Ok(list @ Value::Array(_)) => Ok(list),
        Ok(other) => Err(ToolResult::error(&format!(
            "tasks must be a JSON array of task objects; parsed {} instead.",
            args::type_name(Some(&other))
        ))),
        Err(_) => {
            let why = json::problem(text).unwrap_or_default();
            let why = why
                .strip_prefix("JSONDecodeError: ")
                .and_then(|why| why.rsplit_once(" (line"))
                .map_or(why.as_str(), |(why, _)| why);
            Err(ToolResult::error(&format!(
                "tasks must be a JSON array of task objects; received a string that could not be parsed as JSON \
                 ({why})."
            )))
        }
    }
}

fn one(place: usize, task: &Value, above: Role) -> Result<Task, ToolResult> {
    let Value::Object(fields) = task else {
        return Err(ToolResult::error(&format!(
            "Task {place} must be an object, got {}.",
            args::type_name(Some(task))
        )));
    };
    let goal = fields
        .get("goal")
        .and_then(Value::as_str)
        .filter(|goal| !pytext::strip(goal).is_empty())
        .ok_or_else(|| ToolResult::error(&format!("Task {place} is missing a 'goal'.")))?;
    let grants = match fields.get("grants") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Some(Value::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    };
    Ok(Task {
        goal: goal.to_owned(),
        context: context(fields),
        role: role(fields.get("role"), above),
        grants,
    })
}

/// Unknown words are the lesser role.
fn role(given: Option<&Value>, above: Role) -> Role {
    match given {
        Some(Value::String(word)) if !word.is_empty() => {
            if pytext::strip(word).to_lowercase() == "orchestrator" {
                Role::Orchestrator
            } else {
                Role::Leaf
            }
        }
        given if args::truthy(given) => Role::Leaf,
        _ => above,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Role, WorkLimits, read};

    fn goals(given: &Value) -> Vec<String> {
        let handed = read(given, 0, WorkLimits::default())
            .unwrap_or_else(|result| panic!("{}", result.text));
        handed.tasks.into_iter().map(|task| task.goal).collect()
    }

    #[test]
    fn a_goal_a_list_and_a_list_in_json_are_tasks() {
        assert_eq!(goals(&json!({"goal": "a"})), ["a"]);
        assert_eq!(
            goals(&json!({"tasks": [{"goal": "a"}, {"goal": "b"}]})),
            ["a", "b"]
        );
        assert_eq!(
            goals(&json!({"tasks": "[{\"goal\": \"a\"}]", "goal": "x"})),
            ["a"]
        );
        assert_eq!(goals(&json!({"tasks": [], "goal": "x"})), ["x"]);
    }

    #[test]
    fn what_cannot_be_read_is_said_in_words() {
        for (given, part) in [
            (json!({}), "Provide either"),
            (json!({"goal": " "}), "Provide either"),
            (json!({"goal": 5}), "Provide either"),
            (json!({"tasks": ""}), "Provide either"),
            (
                json!({"tasks": "{"}),
                "could not be parsed as JSON (Expecting property name",
            ),
            (json!({"tasks": "{}"}), "parsed dict instead"),
            (
                json!({"tasks": ["x"]}),
                "Task 0 must be an object, got str.",
            ),
            (
                json!({"tasks": [{"goal": "a"}, {}]}),
                "Task 1 is missing a 'goal'.",
            ),
            (json!({"tasks": [1, 2, 3, 4]}), "Too many tasks: 4 provided"),
            (Value::Null, "Provide either"),
        ] {
            let result = read(&given, 0, WorkLimits::default()).expect_err("refused");
            assert!(result.text.contains(part), "{given}: {}", result.text);
        }
        let result = read(&json!({"goal": "a"}), 1, WorkLimits::default()).expect_err("too deep");
        assert!(result.text.contains("depth limit reached"));
    }

    #[test]
    fn roles_are_inherited_and_unknown_ones_are_the_lesser() {
        let given = json!({"role": "Orchestrator", "tasks": [{"goal": "a"}, {"goal": "b", "role": "boss"}]});
        let tasks = read(&given, 0, WorkLimits::default()).expect("tasks").tasks;
        assert_eq!(
            (tasks[0].role, tasks[1].role),
            (Role::Orchestrator, Role::Leaf)
        );
    }
}
