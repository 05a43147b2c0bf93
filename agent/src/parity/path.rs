//! May this name be read, written, followed?
//!
//! Two questions: [`judge`] asks the monitor about a name under grants that
//! are held, without touching anything; [`reach`] asks a directory capability
//! and the kernel where a name leads.

pub use self::reach::{Reached, Try, reach};

mod reach;

use hermitcrab_core::action::Action;
use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::{Authority, Cap, DirId, Object, Verb};
use hermitcrab_core::digest::{Digest, HashFn};
use hermitcrab_core::grant::{AgentId, Lifetime, Uses};
use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_core::path::{PathError, RelPath};
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Call, Event, GrantSpec, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;

/// The longest name of a skill, in characters.
const SKILL_NAME_CHARS_MAX: usize = 64;

/// What the monitor says about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may happen.
    Permit,
    /// The user is asked first.
    Ask(DenialCode),
    /// No.
    Deny(DenialCode),
}

/// A grant that stands while a question is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What may be done.
    pub verbs: Vec<Verb>,
    /// To this place and everything below it; absolute.
    pub on: String,
}

/// The surroundings of a question.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    /// What `~` stands for.
    pub home: &'a str,
    /// What a relative name is relative to.
    pub cwd: &'a str,
    /// The agent's own places.
    pub protected: &'a [String],
    /// What is held.
    pub held: &'a [Standing],
    /// Whether somebody is there to ask.
    pub asking: Asking,
    /// SHA-256.
    pub hash: HashFn,
}

/// A session with what the setting holds, and its one directory, `/`.
pub(crate) struct Held {
    pub(crate) session: Session,
    pub(crate) root: DirId,
}

/// What the monitor says about `verb` on `name`, for `tool`.
#[must_use]
pub fn judge(setting: &Setting<'_>, tool: Tool, verb: Verb, name: &str) -> Ruling {
    match judged(setting, tool, verb, name) {
        Ok(ruling) => ruling,
        Err(denial) => Ruling::Deny(denial.code()),
    }
}

fn judged(setting: &Setting<'_>, tool: Tool, verb: Verb, name: &str) -> Result<Ruling, Denial> {
    let below = place(setting, name).map_err(|error| Denial::new(error.code(), name))?;
    let mut held = hold(setting)?;
    let action = Action::on_path(verb, held.root, below, Digest::NONE)
        .map_err(|_| Denial::new(DenialCode::EffectNotCovered, name))?;
    let parts = held
        .session
        .step(
            Instant::BOOT,
            Event::Call(Call {
                by: AgentId::FIRST,
                tool,
                actions: vec![action],
            }),
        )
        .into_parts();
    Ok(
        match (
            parts.permits.is_empty(),
            parts.question,
            parts.denials.first(),
        ) {
            (false, _, _) => Ruling::Permit,
            (true, Some(question), _) => Ruling::Ask(question.because()),
            (true, None, Some((_, denial))) => {
                Ruling::Deny(denial.cause().unwrap_or(denial.code()))
            }
            // A turn that says nothing at all permits nothing.
            (true, None, None) => Ruling::Deny(DenialCode::NoCap),
        },
    )
}

/// Where a name lies, seen from `/`, without looking at any file.
///
/// # Errors
/// It climbs with `..`, holds a NUL, is empty or too long.
fn place(setting: &Setting<'_>, name: &str) -> Result<RelPath, PathError> {
    let full = match name.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", setting.home),
        _ if name.is_empty() => return Err(PathError::Empty),
        _ if name.starts_with('/') => name.to_owned(),
        _ => format!("{}/{name}", setting.cwd),
    };
    seen_from_root(&full)
}

fn seen_from_root(full: &str) -> Result<RelPath, PathError> {
    match full.trim_start_matches('/') {
        "" => Ok(RelPath::root()),
        below => RelPath::parse_dir(below.as_bytes()),
    }
}

/// Opens a session in which the setting's grants stand.
pub(crate) fn hold(setting: &Setting<'_>) -> Result<Held, Denial> {
    let absolute =
        |path: &str| seen_from_root(path).map_err(|error| Denial::new(error.code(), path));
    let protected = setting
        .protected
        .iter()
        .map(|path| absolute(path))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut session, _records) = Session::open(SessionConfig {
        id: 1,
        hash: setting.hash,
        isolation: Isolation::Isolated,
        protected,
        asking: setting.asking,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    let root = session.add_dir(RelPath::root())?;
    for standing in setting.held {
        let below = absolute(&standing.on)?;
        let mut caps = Vec::with_capacity(standing.verbs.len());
        for verb in &standing.verbs {
            let object = Object::tree(root, below.clone());
            let cap = Cap::new(*verb, object)
                .map_err(|_| Denial::new(DenialCode::EffectNotCovered, verb.as_str()))?;
            caps.push(cap);
        }
        let spec = GrantSpec {
            holder: AgentId::FIRST,
            authority: Authority::from_caps(caps)?,
            uses: Uses::Uncounted,
            lifetime: Lifetime::Session,
        };
        let parts = session.step(Instant::BOOT, Event::Grant(spec)).into_parts();
        if let Some((_, denial)) = parts.denials.into_iter().next() {
            return Err(denial);
        }
    }
    Ok(Held { session, root })
}

/// Is it a name a skill may have: short, plain letters, no place to hide a path in?
#[must_use]
pub fn is_skill_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= SKILL_NAME_CHARS_MAX
        && name.bytes().next().is_some_and(plain)
        && name
            .bytes()
            .all(|byte| plain(byte) || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(held: &[(&[Verb], &str)], asking: Asking, verb: Verb, name: &str) -> Ruling {
        let held: Vec<_> = held
            .iter()
            .map(|(verbs, on)| Standing {
                verbs: verbs.to_vec(),
                on: (*on).to_owned(),
            })
            .collect();
        let protected = ["/home/u/.crab".to_owned()];
        let setting = Setting {
            home: "/home/u",
            cwd: "/ws",
            protected: &protected,
            held: &held,
            asking,
            hash: |_| Digest::NONE,
        };
        judge(&setting, Tool::Directory, verb, name)
    }

    const ALL: &[Verb] = &[
        Verb::FsRead,
        Verb::FsList,
        Verb::FsCreate,
        Verb::FsModify,
        Verb::FsDelete,
    ];

    #[test]
    fn a_plain_name_below_a_grant_is_permitted_however_it_is_written() {
        for name in ["/ws/a", "a", "./a", "/ws//a", "~/x/../a"] {
            let expected = if name.contains("..") {
                Ruling::Deny(DenialCode::PathEscapes)
            } else {
                Ruling::Permit
            };
            assert_eq!(
                check(&[(ALL, "/ws")], Asking::Refuse, Verb::FsModify, name),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn nothing_held_means_asked_or_refused_never_permitted() {
        assert_eq!(
            check(&[], Asking::Prompt, Verb::FsRead, "a"),
            Ruling::Ask(DenialCode::NoCap)
        );
        assert_eq!(
            check(&[], Asking::Refuse, Verb::FsRead, "a"),
            Ruling::Deny(DenialCode::NoCap)
        );
        assert_eq!(
            check(
                &[(ALL, "/ws/sub")],
                Asking::Refuse,
                Verb::FsRead,
                "/ws/subway"
            ),
            Ruling::Deny(DenialCode::NoCap),
        );
        assert_eq!(
            check(
                &[(&[Verb::FsRead], "/ws")],
                Asking::Refuse,
                Verb::FsModify,
                "a"
            ),
            Ruling::Deny(DenialCode::NoCap),
        );
    }

    #[test]
    fn a_sensitive_name_is_asked_about_though_everything_is_held() {
        assert_eq!(
            check(&[(ALL, "/")], Asking::Prompt, Verb::FsRead, "~/.ssh/id_rsa"),
            Ruling::Ask(DenialCode::SensitivePath),
        );
        assert_eq!(
            check(&[(ALL, "/")], Asking::Refuse, Verb::FsModify, "/etc/passwd"),
            Ruling::Deny(DenialCode::SensitivePath),
        );
    }

    #[test]
    fn the_agents_own_places_are_out_of_reach_whatever_is_held_or_answered() {
        for asking in [Asking::Prompt, Asking::Refuse] {
            assert_eq!(
                check(&[(ALL, "/")], asking, Verb::FsRead, "~/.crab/ledger"),
                Ruling::Deny(DenialCode::Protected),
            );
        }
    }

    #[test]
    fn a_skill_name_is_short_and_plain() {
        for name in ["a", "test-skill", "a.b_c", "0x"] {
            assert!(is_skill_name(name), "{name}");
        }
        for name in [
            "",
            "skill name",
            "A",
            "-a",
            ".a",
            "a/b",
            "é",
            &"a".repeat(65),
        ] {
            assert!(!is_skill_name(name), "{name}");
        }
    }
}
