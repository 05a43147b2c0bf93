//! What the rules of a case take away from its grants.
//!
//! Like the rest of the yardstick this is not the agent's own code: it reads the case's
//! words by itself, and knows of links only those that the case makes.

use bisim_world::protocol::{Decision, FileKind, FileSpec, NetAttempt, Rule};

use super::below;
use crate::case::Case;

/// Links followed on the way to a rule's place.
const LINKS_MAX: usize = 40;

/// What the strictest rule says of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Says {
    /// Nothing that takes anything away: the grants count.
    Nothing,
    /// The user is asked each time, whatever is held.
    Asks,
    /// No, whatever is held and whoever says yes.
    Denies,
}

/// The rules of a case that take something away.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules<'c> {
    rules: Vec<Placed<'c>>,
}

/// A rule, and where what it is on lies once links are followed.
#[derive(Clone, Debug)]
struct Placed<'c> {
    rule: &'c Rule,
    on: Option<String>,
}

impl<'c> Rules<'c> {
    pub(super) fn of(case: &'c Case) -> Self {
        let takes_away = |rule: &&Rule| rule.decision != Decision::Allow;
        let rules = case.job.rules.iter().filter(takes_away);
        let files = || case.job.world.iter().flat_map(|world| &world.files);
        let placed = |rule: &'c Rule| Placed {
            rule,
            on: rule.on.as_deref().map(|on| real(on, files)),
        };
        Self {
            rules: rules.map(placed).collect(),
        }
    }

    /// What is said of doing this to a file.
    pub(super) fn say(&self, verb: &str, path: &str) -> Says {
        self.strictest(|placed| {
            is_about_verb(placed.rule, verb) && is_about_path(placed, verb, path)
        })
    }

    /// What is said of reaching this peer; its name is not seen.
    pub(super) fn say_of_peer(&self, attempt: &NetAttempt) -> Says {
        self.strictest(|Placed { rule, on }| {
            let is_port = |host: &str| {
                let port = host.rsplit_once(':').map_or("", |(_, port)| port);
                port == "*" || port.parse() == Ok(attempt.port)
            };
            is_about_verb(rule, "net.connect")
                && (on.as_deref() == Some("*") || rule.host.as_deref().is_some_and(is_port))
        })
    }

    fn strictest(&self, is_about: impl Fn(&Placed<'_>) -> bool) -> Says {
        let about = self.rules.iter().filter(|placed| is_about(placed));
        let says = about.map(|placed| match placed.rule.decision {
            Decision::Deny => Says::Denies,
            Decision::Ask => Says::Asks,
            Decision::Allow => Says::Nothing,
        });
        says.max().unwrap_or(Says::Nothing)
    }
}

fn is_about_verb(rule: &Rule, verb: &str) -> bool {
    let verbs = &mut rule.verbs.iter();
    verbs.any(|named| named == verb || (named == "fs.*" && verb.starts_with("fs.")))
}

fn is_about_path(placed: &Placed<'_>, verb: &str, path: &str) -> bool {
    let at = |on: &str| {
        // What takes a directory away takes along what lies in it.
        on == "*" || below(path, on) || (verb == "fs.delete" && below(on, path))
    };
    let is_called = |named: &str| path.split('/').any(|name| fits(named, name));
    placed.on.as_deref().is_some_and(at) || placed.rule.named.as_deref().is_some_and(is_called)
}

/// Whether a name fits a pattern in which `*` stands for any letters; case is ignored.
fn fits(pattern: &str, name: &str) -> bool {
    crate::glob::glob(&pattern.to_ascii_lowercase(), &name.to_ascii_lowercase())
}

/// Where a place lies once the links that the case makes are followed.
fn real<'c, F: Iterator<Item = &'c FileSpec>>(place: &str, files: impl Fn() -> F) -> String {
    let mut place = place.to_owned();
    for _ in 0..LINKS_MAX {
        let led = files().find_map(|file| match &file.kind {
            FileKind::Symlink(target) if below(&place, &file.path) => {
                let rest = place.strip_prefix(file.path.as_str()).unwrap_or_default();
                let from = file.path.rsplit_once('/').map_or("", |(above, _)| above);
                let from = if target.starts_with('/') { "" } else { from };
                Some(plain(&format!("{from}/{target}{rest}")))
            }
            _ => None,
        });
        match led {
            Some(led) if led != place => place = led,
            Some(_) | None => return place,
        }
    }
    place
}

/// The same without `.` and `..`.
fn plain(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(list: &[Rule]) -> Rules<'_> {
        let placed = list.iter().map(|rule| Placed {
            rule,
            on: rule.on.clone(),
        });
        Rules {
            rules: placed.collect(),
        }
    }

    fn read(list: &str) -> Vec<Rule> {
        serde_json::from_str(list).unwrap()
    }

    #[test]
    fn the_strictest_rule_about_a_verb_and_a_place_or_a_name_counts() {
        let list = read(
            r#"[{"id": "a", "decision": "ask", "verbs": ["fs.*"], "on": "/w/a"},
                {"id": "b", "decision": "deny", "verbs": ["fs.read"], "on": "/w/a/b"},
                {"id": "c", "decision": "deny", "verbs": ["fs.read"], "named": "*.Key"},
                {"id": "d", "decision": "deny", "verbs": ["fs.list"], "on": "*"}]"#,
        );
        let rules = rules(&list);
        let check = |verb: &str, path: &str, expected: Says| {
            assert_eq!(rules.say(verb, path), expected, "{verb} {path}");
        };
        check("fs.read", "/w/x", Says::Nothing);
        check("fs.read", "/w/ab", Says::Nothing);
        check("fs.read", "/w/a/x", Says::Asks);
        check("fs.read", "/w/a/b/x", Says::Denies);
        check("fs.modify", "/w/a/b/x", Says::Asks);
        check("fs.read", "/w/one.KEY/x", Says::Denies);
        check("fs.modify", "/w/one.key", Says::Nothing);
        check("fs.read", "/w/one.keys", Says::Nothing);
        check("fs.list", "/anything", Says::Denies);
        // Only what takes a directory away takes along what lies in it.
        check("fs.delete", "/w", Says::Asks);
        check("fs.create", "/w", Says::Nothing);
    }

    #[test]
    fn a_rule_about_a_link_is_about_what_the_case_has_it_lead_to() {
        let link = |path: &str, target: &str| FileSpec {
            path: path.to_owned(),
            kind: FileKind::Symlink(target.to_owned()),
            mode: None,
        };
        let links = [
            link("/w/in", "a/./b"),
            link("/w/up", "../x"),
            link("/w/out", "/srv"),
            link("/w/loop", "loop"),
            link("/w/chain", "in/c"),
        ];
        for (place, expected) in [
            ("/w/plain", "/w/plain"),
            ("/w/in", "/w/a/b"),
            ("/w/in/c", "/w/a/b/c"),
            ("/w/inside", "/w/inside"),
            ("/w/up", "/x"),
            ("/w/out/data", "/srv/data"),
            ("/w/loop", "/w/loop"),
            ("/w/chain/d", "/w/a/b/c/d"),
        ] {
            assert_eq!(real(place, || links.iter()), expected);
        }
    }

    #[test]
    fn a_peer_is_told_by_its_port() {
        let attempt = |port| NetAttempt {
            protocol: "tcp".to_owned(),
            port,
            head: String::new(),
        };
        let list = read(
            r#"[{"id": "a", "decision": "deny", "verbs": ["net.connect"], "host": "a.example:80"},
                {"id": "b", "decision": "ask", "verbs": ["fs.read"], "on": "*"}]"#,
        );
        let rules = rules(&list);
        assert_eq!(rules.say_of_peer(&attempt(80)), Says::Denies);
        assert_eq!(rules.say_of_peer(&attempt(443)), Says::Nothing);
    }
}
