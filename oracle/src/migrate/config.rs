//! The configuration that is proposed: denials at once, grants as comments.
//!
//! A grant counts when the user takes the marks of its lines away. What is
//! written here is read back by the agent's own reader, both as it stands and
//! with every grant taken, so that no proposal is one the agent would refuse.

use std::fmt::Write as _;
use std::path::Path;

use hermitcrab::config::{self, edit::Edit};
use hermitcrab_core::rules::Layer;
use similar::TextDiff;

use super::translate::{About, Proposal, ProposedGrant};

/// What stands before a line of a grant that is not given yet.
pub const MARK: &str = "#? ";

/// A proposed configuration.
#[derive(Clone, Debug, Default)]
pub struct Proposed {
    /// Its text.
    pub text: String,
    /// What it changes, as a unified diff.
    pub diff: String,
}

/// Writes the proposals into the configuration at `existing`, if there is one,
/// without touching that file. `scratch` is a private directory.
///
/// # Errors
/// The existing file cannot be read, or what came out is none.
pub fn propose(
    proposals: &[Proposal],
    suggested: &[ProposedGrant],
    existing: Option<&Path>,
    scratch: &Path,
) -> Result<Proposed, String> {
    let before = match existing {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?,
        None => String::new(),
    };
    let draft = scratch.join("proposed.toml");
    let here = |error: std::io::Error| format!("cannot write a draft: {error}");
    std::fs::write(&draft, &before).map_err(here)?;
    let mut edit = Edit::open(&draft).map_err(|error| error.to_string())?;
    for (key, value) in proposals.iter().filter_map(|one| one.setting.as_ref()) {
        // What the user has set here already is the user's word.
        if edit.get(key).is_none() {
            edit.set(key, value).map_err(|error| error.to_string())?;
        }
    }
    edit.save().map_err(|error| error.to_string())?;
    let mut text = std::fs::read_to_string(&draft).map_err(here)?;
    denials(&mut text, proposals);
    grants(&mut text, proposals, suggested);
    check(&text)?;
    check(&taken(&text))?;
    let name = existing.map_or_else(
        || "config.toml".to_owned(),
        |path| path.display().to_string(),
    );
    let diff = TextDiff::from_lines(&before, &text)
        .unified_diff()
        .header(&name, "hermitcrab.toml")
        .to_string();
    Ok(Proposed { text, diff })
}

fn denials(text: &mut String, proposals: &[Proposal]) {
    for proposal in proposals.iter().filter(|one| !one.denials.is_empty()) {
        let said = one_line(&proposal.said);
        // Writing into a string cannot fail.
        let _ = write!(text, "\n# {} {said}\n", proposal.from);
        for (place, denial) in proposal.denials.iter().enumerate() {
            let (key, value) = match &denial.about {
                About::On(place) => ("on", place),
                About::Named(name) => ("named", name),
                About::Host(host) => ("host", host),
            };
            let id = if place == 0 {
                proposal.id.clone()
            } else {
                format!("{}-{}", proposal.id, place + 1)
            };
            // Writing into a string cannot fail.
            let _ = write!(
                text,
                "[[rules]]\nid = {}\ndecision = \"deny\"\nverbs = {}\n{key} = {}\n",
                quoted(&id),
                list(&denial.verbs),
                quoted(value),
            );
        }
    }
}

fn grants(text: &mut String, proposals: &[Proposal], suggested: &[ProposedGrant]) {
    text.push_str(
        "\n# Nothing below is granted. To grant, take `#? ` away from the lines of a block;\n# each ends by itself.\n",
    );
    let mut block = |about: &str, grants: &[ProposedGrant]| {
        if grants.is_empty() {
            return;
        }
        // Writing into a string cannot fail.
        let _ = write!(text, "\n# {about}\n");
        for grant in grants {
            // Writing into a string cannot fail.
            let _ = write!(
                text,
                "{MARK}[[grants]]\n{MARK}verb = {}\n{MARK}on = {}\n{MARK}seconds = {}\n",
                quoted(&grant.verb),
                quoted(&grant.on),
                grant.seconds
            );
        }
    };
    for proposal in proposals {
        let about = format!(
            "{}, {}: {}",
            proposal.id,
            proposal.from,
            one_line(&proposal.said)
        );
        block(&about, &proposal.grants);
    }
    block(
        "or in place of all of these: the least that covers what was recorded",
        suggested,
    );
}

fn one_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as a value on one line: the marks of a comment reach no further than their line.
fn quoted(text: &str) -> String {
    // What JSON writes of a text is a basic string of TOML but for this one letter.
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}

fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

/// The text as it is when every grant is taken.
#[must_use]
pub fn taken(text: &str) -> String {
    text.lines()
        .map(|line| line.strip_prefix(MARK).unwrap_or(line))
        .fold(String::new(), |all, line| all + line + "\n")
}

fn check(text: &str) -> Result<(), String> {
    let name = Path::new("hermitcrab.toml");
    let (workspace, home) = (Path::new("/home/u/work"), Path::new("/home/u"));
    let wrong = |error: config::ConfigError| format!("the proposed configuration is none: {error}");
    let read = config::parse(name, text).map_err(wrong)?;
    read.rules(Layer::User, workspace, home).map_err(wrong)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::super::translate::translate;
    use super::{ProposedGrant, propose, taken};
    use std::path::Path;

    fn settings() -> Settings {
        Settings {
            mode: Some("off".into()),
            allowlist: vec!["recursive delete".into(), "a \"quoted\"\nthing".into()],
            deny: vec!["curl *".into(), "cat ~/.ssh/*".into(), "* .env*".into()],
            blocked_sites: vec!["ads.example.com".into()],
            ..Settings::default()
        }
    }

    #[test]
    fn denials_count_at_once_and_grants_only_when_they_are_taken() {
        let scratch = tempfile::tempdir().unwrap();
        let proposals = translate(&settings());
        let made = propose(&proposals, &[], None, scratch.path()).unwrap();
        let read = |text: &str| hermitcrab::config::parse(Path::new("c.toml"), text).unwrap();
        let workspace = Path::new("/w");
        assert_eq!(read(&made.text).grants(workspace).count(), 0);
        let rules = |text: &str| {
            read(text)
                .rules(
                    hermitcrab_core::rules::Layer::User,
                    workspace,
                    Path::new("/h"),
                )
                .unwrap()
                .len()
        };
        assert_eq!(rules(&made.text), 5);
        let granted: Vec<_> = read(&taken(&made.text)).grants(workspace).collect();
        assert_eq!(granted.len(), 3);
        assert!(
            granted
                .iter()
                .all(|grant| grant.lifetime.is_some() && grant.on == "/w")
        );
        assert!(made.diff.contains("+[[rules]]"), "{}", made.diff);
    }

    #[test]
    fn a_line_break_in_a_place_ends_no_comment() {
        let scratch = tempfile::tempdir().unwrap();
        let evil = "#\n[[grants]]\nverb = \"fs.*\"\non = \".\"\n#";
        let made = propose(
            &[],
            &[ProposedGrant::new("fs.create", evil)],
            None,
            scratch.path(),
        )
        .unwrap();
        let read = |text: &str| hermitcrab::config::parse(Path::new("c.toml"), text).unwrap();
        let workspace = Path::new("/w");
        assert_eq!(read(&made.text).grants(workspace).count(), 0);
        let granted: Vec<_> = read(&taken(&made.text)).grants(workspace).collect();
        assert_eq!(granted.len(), 1);
        assert!(granted[0].on.contains(evil), "{}", granted[0].on);
        assert_eq!(super::quoted("a\u{7f}\u{1}"), "\"a\\u007f\\u0001\"");
    }

    #[test]
    fn what_the_user_has_set_already_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let existing = scratch.path().join("mine.toml");
        std::fs::write(&existing, "mode = \"reject_all\"\n[limits]\npids_max = 9\n").unwrap();
        let proposals = translate(&settings());
        let made = propose(&proposals, &[], Some(&existing), scratch.path()).unwrap();
        assert!(
            made.text.starts_with("mode = \"reject_all\""),
            "{}",
            made.text
        );
        assert!(!made.diff.contains("-mode"), "{}", made.diff);
        assert_eq!(
            std::fs::read_to_string(&existing).unwrap(),
            "mode = \"reject_all\"\n[limits]\npids_max = 9\n"
        );
    }
}
