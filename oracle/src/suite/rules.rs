//! What is wrong with the rules of a case: each would mean nothing to the agent, or
//! something else than it says.

use std::collections::BTreeSet;

use bisim_world::protocol::{Decision, Drive, Rule};

use super::VERBS;
use crate::case::Case;

/// Every problem of a case's rules.
pub(super) fn lint(case: &Case, wrong: &mut Vec<String>) {
    let rules = &case.job.rules;
    if rules.is_empty() {
        return;
    }
    if case.job.drive == Drive::Wire {
        wrong.push(
            "rules are not given to the program that `wire` starts; drive the case otherwise"
                .to_owned(),
        );
    }
    if !case.agent.world {
        wrong.push("rules count in a world, and the agent's leg has none".to_owned());
    }
    let mut ids = BTreeSet::new();
    for rule in rules {
        if rule.id.is_empty() || !ids.insert(&rule.id) {
            wrong.push(format!("rule `{}` has no name of its own", rule.id));
        }
        wrong.extend(problems(rule).map(|what| format!("rule `{}` {what}", rule.id)));
    }
}

fn problems(rule: &Rule) -> impl Iterator<Item = String> {
    let verbs = || rule.verbs.iter().map(String::as_str);
    let unknown = verbs().find(|verb| !VERBS.contains(verb));
    let all_begin = |start: &str| verbs().all(|verb| verb.starts_with(start));
    let about = match (&rule.on, &rule.named, &rule.host) {
        (Some(on), None, None) if on == "*" => (rule.decision == Decision::Allow)
            .then(|| "allows everything; name a place or a peer".to_owned()),
        (Some(on), None, None) => match () {
            () if !all_begin("fs.") => Some("has verbs that act on no place".to_owned()),
            () if !is_plain(on) => Some(format!(
                "must be on `*` or an absolute path without `.`, `..` and `//`, not `{on}`"
            )),
            () => None,
        },
        (None, Some(named), None) => match () {
            () if !all_begin("fs.") => Some("has verbs that act on no name".to_owned()),
            () if rule.decision == Decision::Allow => {
                Some("allows by a name, which no grant can say".to_owned())
            }
            () if named.is_empty() || named.contains('/') => {
                Some(format!("has `{named}` for a name"))
            }
            () => None,
        },
        (None, None, Some(host)) => match host.rsplit_once(':') {
            _ if !all_begin("net.") => Some("has verbs that act on no peer".to_owned()),
            Some((name, port))
                if !name.is_empty() && (port == "*" || port.parse::<u16>().is_ok()) =>
            {
                None
            }
            _ => Some(format!("has `{host}` for a peer, not `name:port`")),
        },
        _ => Some("must name exactly one of `on`, `named` and `host`".to_owned()),
    };
    let none = rule.verbs.is_empty().then(|| "has no verb".to_owned());
    let unknown = unknown.map(|verb| format!("has the unknown verb `{verb}`"));
    none.into_iter().chain(unknown).chain(about)
}

/// Whether a path says where it is by itself.
fn is_plain(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| {
        rest.is_empty() || rest.split('/').all(|name| !matches!(name, "" | "." | ".."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(rule: &str) -> Vec<String> {
        problems(&serde_json::from_str(rule).unwrap()).collect()
    }

    #[test]
    fn a_rule_that_means_something_has_no_problems() {
        for rule in [
            r#"{"id": "a", "decision": "deny", "verbs": ["fs.read", "fs.list"], "on": "/w/a"}"#,
            r#"{"id": "a", "decision": "ask", "verbs": ["fs.*"], "on": "/"}"#,
            r#"{"id": "a", "decision": "deny", "verbs": ["fs.*"], "named": "*.pem"}"#,
            r#"{"id": "a", "decision": "ask", "verbs": ["proc.exec"], "on": "*"}"#,
            r#"{"id": "a", "decision": "allow", "verbs": ["fs.modify"], "on": "/w"}"#,
            r#"{"id": "a", "decision": "deny", "verbs": ["net.connect"], "host": "*.example:443"}"#,
        ] {
            assert_eq!(problems_of(rule), Vec::<String>::new(), "{rule}");
        }
    }

    #[test]
    fn what_means_nothing_or_something_else_is_told() {
        for (rule, what) in [
            (r#""decision": "deny", "verbs": [], "on": "/w""#, "no verb"),
            (
                r#""decision": "deny", "verbs": ["fs.fly"], "on": "/w""#,
                "`fs.fly`",
            ),
            (r#""decision": "deny", "verbs": ["fs.read"]"#, "exactly one"),
            (
                r#""decision": "deny", "verbs": ["fs.read"], "on": "/w", "named": "x""#,
                "exactly one",
            ),
            (
                r#""decision": "deny", "verbs": ["fs.read"], "on": "w""#,
                "absolute",
            ),
            (
                r#""decision": "deny", "verbs": ["fs.read"], "on": "/w/../x""#,
                "absolute",
            ),
            (
                r#""decision": "deny", "verbs": ["proc.exec"], "on": "/w""#,
                "no place",
            ),
            (
                r#""decision": "deny", "verbs": ["net.connect"], "named": "x""#,
                "no name",
            ),
            (
                r#""decision": "deny", "verbs": ["fs.read"], "named": "a/b""#,
                "for a name",
            ),
            (
                r#""decision": "allow", "verbs": ["fs.read"], "named": "x""#,
                "no grant",
            ),
            (
                r#""decision": "allow", "verbs": ["fs.read"], "on": "*""#,
                "everything",
            ),
            (
                r#""decision": "deny", "verbs": ["fs.read"], "host": "a:1""#,
                "no peer",
            ),
            (
                r#""decision": "deny", "verbs": ["net.connect"], "host": "a""#,
                "`name:port`",
            ),
        ] {
            let problems = problems_of(&format!(r#"{{"id": "a", {rule}}}"#));
            assert!(
                problems.iter().any(|one| one.contains(what)),
                "{rule}: {problems:?}"
            );
        }
    }
}
