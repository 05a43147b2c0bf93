//! Lists of background commands.

use serde_json::Value;

/// Rule `listed-once`: background commands without repetitions.
pub fn without_repetitions(tool: &str, value: &mut Value) {
    if let Some(listed) = commands(tool, value) {
        let mut seen = Vec::new();
        listed.retain(|one| {
            let new = !seen.contains(one);
            if new {
                seen.push(one.clone());
            }
            new
        });
    }
}

/// Rule `ended-in-any-order`: those that run as they are listed, then those that have ended
/// by what is said of them, so by their names, once these are numbers.
pub fn ended_in_any_order(tool: &str, value: &mut Value) {
    if let Some(listed) = commands(tool, value) {
        listed.sort_by_cached_key(|one| {
            let has_ended = one.get("status").and_then(Value::as_str) == Some("exited");
            has_ended.then(|| one.to_string())
        });
    }
}

fn commands<'v>(tool: &str, value: &'v mut Value) -> Option<&'v mut Vec<Value>> {
    match value.get_mut("processes") {
        Some(Value::Array(listed)) if tool == "process" => Some(listed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(value: &Value) -> Vec<&str> {
        let listed = value["processes"].as_array().unwrap().iter();
        listed
            .map(|one| one["session_id"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn only_a_command_listed_twice_with_the_same_facts_is_listed_once() {
        let mut value = json!({"processes": [
            {"session_id": "a", "exit_code": 0},
            {"session_id": "b", "exit_code": 0},
            {"session_id": "a", "exit_code": 0},
            {"session_id": "a", "exit_code": 1},
        ]});
        let before = value.clone();
        without_repetitions("terminal", &mut value);
        assert_eq!(value, before);
        without_repetitions("process", &mut value);
        assert_eq!(ids(&value), ["a", "b", "a"]);
    }

    #[test]
    fn those_that_run_stay_as_listed_and_those_that_have_ended_stand_behind_by_name() {
        let listed = |listed: &[(&str, &str)]| {
            let listed = listed.iter();
            let listed: Vec<Value> = listed
                .map(|(id, status)| json!({"session_id": id, "status": status}))
                .collect();
            json!({ "processes": listed })
        };
        let mut value = listed(&[
            ("c", "exited"),
            ("d", "running"),
            ("b", "running"),
            ("a", "exited"),
        ]);
        let before = value.clone();
        ended_in_any_order("terminal", &mut value);
        assert_eq!(value, before);
        ended_in_any_order("process", &mut value);
        assert_eq!(ids(&value), ["d", "b", "a", "c"]);
    }
}
