//! What is wrong with what a case's user does while a question waits for them: it would never
//! happen, and the case would show nothing.

use std::collections::BTreeSet;

use bisim_world::protocol::{Drive, Meanwhile, Step};

use crate::case::{BATCH_PROBE, Case};

/// Every problem of it.
pub(super) fn lint(case: &Case, wrong: &mut Vec<String>) {
    let job = &case.job;
    let added = job.script.iter().filter_map(Step::granted);
    let grants: BTreeSet<&str> = job
        .held
        .iter()
        .chain(added)
        .map(|held| held.id.as_str())
        .collect();
    let children: BTreeSet<&str> = job.script.iter().filter_map(Step::started).collect();
    let batches = job
        .script
        .iter()
        .any(|step| matches!(step, Step::Probe { name, .. } if name == BATCH_PROBE));
    let restarts = job
        .script
        .iter()
        .any(|step| matches!(step, Step::Restart(_)));
    for doing in job.user.doings() {
        match doing {
            Meanwhile::Revoke { grant } if !grants.contains(grant.as_str()) => {
                wrong.push(format!("the user revokes the unknown grant `{grant}`"));
            }
            Meanwhile::Withdraw {} if !restarts => wrong.push(
                "the user takes back answers that outlive a session in a case without a `restart`, \
                 which keeps none"
                    .to_owned(),
            ),
            Meanwhile::EndAgent { child } if !children.contains(child.as_str()) => {
                wrong.push(format!("the user ends the unknown agent `{child}`"));
            }
            Meanwhile::Others {} if !batches => wrong.push(format!(
                "the user waits for other calls in a case without `{BATCH_PROBE}`, \
                 which makes one at a time"
            )),
            Meanwhile::Revoke { .. }
            | Meanwhile::Advance { .. }
            | Meanwhile::EndSession {}
            | Meanwhile::Mode { .. }
            | Meanwhile::Withdraw {}
            | Meanwhile::EndAgent { .. }
            | Meanwhile::Others {} => {}
        }
    }
    if job.user.doings().next().is_some() {
        if job.drive == Drive::Wire {
            wrong.push(
                "an editor's client says its own answers; nothing happens before a user's"
                    .to_owned(),
            );
        }
        if !case.agent.world {
            wrong.push(
                "nothing happens before an answer where the agent's leg has no world".to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Defaults;

    fn said(case: &str) -> String {
        let file = serde_json::from_str(case).unwrap();
        let mut wrong = Vec::new();
        lint(&Case::resolve("s", &Defaults::default(), file), &mut wrong);
        wrong.join("; ")
    }

    #[test]
    fn what_could_never_happen_before_an_answer_is_found() {
        let case = |first: &str, more: &str| {
            let held = r#"[{"id": "g", "verb": "fs.*", "on": "/home/u/proj"}]"#;
            format!(
                r#"{{"id": "a", "held": {held}, "user": {{"words": ["once", {{"answer": "once",
                "first": [{first}]}}]}}, "script": [{{"end_session": {{}}}}{more}"#
            )
        };
        for (first, more, part) in [
            (r#"{"revoke": {"grant": "g"}}"#, "]}", ""),
            (r#"{"revoke": {"grant": "h"}}"#, "]}", "unknown grant `h`"),
            (r#"{"withdraw": {}}"#, "]}", "without a `restart`"),
            (r#"{"withdraw": {}}"#, r#", {"restart": {}}]}"#, ""),
            (
                r#"{"mode": {"to": "reject_all"}}"#,
                r#"], "drive": "wire"}"#,
                "its own answers",
            ),
            (
                r#"{"end_agent": {"child": "kid"}}"#,
                "]}",
                "unknown agent `kid`",
            ),
            (
                r#"{"end_agent": {"child": "kid"}}"#,
                r#", {"spawn": {"child": "kid"}}]}"#,
                "",
            ),
            (r#"{"others": {}}"#, "]}", "one at a time"),
            (
                r#"{"others": {}}"#,
                r#", {"probe": {"name": "tool_batch", "input": {}}}]}"#,
                "",
            ),
            (
                r#"{"advance": {"seconds": 1}}"#,
                r#"], "agent": {"world": false}}"#,
                "no world",
            ),
        ] {
            let said = said(&case(first, more));
            assert_eq!(said.is_empty(), part.is_empty(), "{first}: {said}");
            assert!(said.contains(part), "{first}: {said}");
        }
    }
}
