//! Which file names are asked about each time.
//!
//! Names decide here only whether a person is asked once more; no name ever
//! makes an effect allowed. Case is ignored, because some file systems do.

use crate::authority::Verb;
use crate::path::RelPath;
use crate::tool::Tool;

/// Whether a place needs a yes for each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    /// Grants decide.
    Plain,
    /// The user is asked each time; the text says what it is.
    Sensitive(&'static str),
}

/// Directories (last components of a chain) whose content is about keys and accounts.
const SECRET_DIRS: &[(&[&str], &str)] = &[
    (&[".ssh"], "keys and hosts of secure shell"),
    (&[".gnupg"], "keys of GnuPG"),
    (&[".aws"], "cloud credentials"),
    (&[".azure"], "cloud credentials"),
    (&[".kube"], "cluster credentials"),
    (&[".docker"], "registry credentials"),
    (&[".password-store"], "a password store"),
    (&[".config", "gh"], "code host credentials"),
    (&[".config", "gcloud"], "cloud credentials"),
    (&["mcp-tokens"], "tokens of another agent"),
    (&[".hermes", "auth"], "accounts of another agent"),
    (&[".hermes", "pairing"], "accounts of another agent"),
];

/// File names that hold secrets wherever they lie.
const SECRET_FILES: &[&str] = &[
    ".env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".anthropic_oauth.json",
    "google_oauth.json",
    "auth.json",
    "auth.lock",
    "credentials",
    "credentials.json",
    "webhook_subscriptions.json",
    "bws_cache.json",
    "shadow",
    "gshadow",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "authorized_keys",
];

/// Endings of `.env.…` files that are made to be read by everybody.
const PUBLIC_ENV_ENDINGS: &[&str] = &["example", "sample", "template", "dist"];

/// Places below `/` where a change acts on the whole machine.
const SYSTEM_PLACES: &[&str] = &[
    "etc",
    "boot",
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib64",
    "proc",
    "sys",
    "dev",
    "var/spool",
    "var/lib/systemd",
    "var/run",
    "run",
    "private/etc",
    "private/var",
];

/// File names that are run, or steer what is run, when somebody logs in or works here.
const STARTUP_FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".gitconfig",
    ".gitmodules",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
];

/// Directories whose files run by themselves later.
const STARTUP_DIRS: &[(&[&str], &str)] = &[
    (&[".git", "hooks"], "programs git runs"),
    (&[".config", "autostart"], "programs run at login"),
    (&[".config", "systemd"], "programs run at login"),
    (&[".hermes", "hooks"], "programs another agent runs"),
    (&[".hermes", "plugins"], "programs another agent runs"),
    (&[".hermes", "cron"], "programs another agent runs"),
    (&[".hermes", "sessions"], "records of another agent"),
    (&[".hermes", "profiles"], "records of another agent"),
    (&[".hermes", "memories"], "records of another agent"),
    (&[".hermes", "skills"], "programs another agent runs"),
];

/// Judges one place, named from `/`.
pub(super) fn judge(tool: Tool, verb: Verb, location: &RelPath) -> Sensitivity {
    if let Some(what) = secret(location) {
        return match verb {
            // A name and a size give nothing away.
            Verb::FsList => Sensitivity::Plain,
            _ => Sensitivity::Sensitive(what),
        };
    }
    if !verb.changes_files() {
        return Sensitivity::Plain;
    }
    startup(tool, location).map_or(Sensitivity::Plain, Sensitivity::Sensitive)
}

fn secret(location: &RelPath) -> Option<&'static str> {
    let name = location.file_name()?;
    if SECRET_FILES.iter().any(|known| same(name, known)) {
        return Some("a file made to hold secrets");
    }
    if let Some((head, ending)) = name.split_at_checked(".env.".len())
        && same(head, ".env.")
        && !PUBLIC_ENV_ENDINGS.iter().any(|known| same(ending, known))
    {
        return Some("a file made to hold secrets");
    }
    within(location, SECRET_DIRS)
}

/// Directories that are there for one tool, whose grants decide about it alone.
const OWN_DIRS: &[(Tool, &[&str])] = &[
    (Tool::Memory, &[".hermes", "memories"]),
    (Tool::SkillManage, &[".hermes", "skills"]),
];

fn is_own(tool: Tool, location: &RelPath) -> bool {
    OWN_DIRS
        .iter()
        .any(|(owner, dir)| *owner == tool && within(location, &[(dir, "")]).is_some())
}

fn startup(tool: Tool, location: &RelPath) -> Option<&'static str> {
    if SYSTEM_PLACES
        .iter()
        .any(|place| lies_below_text(location, place))
    {
        return Some("a part of the operating system");
    }
    let name = location.file_name()?;
    if STARTUP_FILES.iter().any(|known| same(name, known)) {
        return Some("a file that is run at login");
    }
    if !is_own(tool, location)
        && let Some(what) = within(location, STARTUP_DIRS)
    {
        return Some(what);
    }
    let in_git = location.components().any(|name| same(name, ".git"));
    match tool {
        // Git keeps its own store by way of the terminal; only what steers later commands matters.
        Tool::Terminal | Tool::ExecuteCode => steers_git(location, name),
        Tool::ReadFile
        | Tool::WriteFile
        | Tool::Patch
        | Tool::SearchFiles
        | Tool::DelegateTask
        | Tool::Process
        | Tool::Clarify
        | Tool::Todo
        | Tool::Memory
        | Tool::SkillsList
        | Tool::SkillView
        | Tool::SkillManage
        | Tool::External
        | Tool::Converse
        | Tool::Directory => in_git.then_some("the store of git, which only git should write"),
    }
}

/// Hooks and settings name programs; a `.git` that is a link or a file, and
/// `commondir`, lead to a store somewhere else that does.
fn steers_git(location: &RelPath, name: &[u8]) -> Option<&'static str> {
    if same(name, ".git") {
        return Some("where the store of git lies, which can name programs");
    }
    let mut inside = location.components();
    if !inside.any(|name| same(name, ".git")) {
        return None;
    }
    if inside.any(|name| same(name, "hooks")) {
        return Some("programs git runs");
    }
    ["config", "config.worktree", "commondir"]
        .iter()
        .any(|known| same(name, known))
        .then_some("settings of git, which can name programs")
}

/// Do the names of one of `chains` occur next to each other on the way?
fn within(location: &RelPath, chains: &[(&[&str], &'static str)]) -> Option<&'static str> {
    let mut rest = location.components();
    while let Some(name) = rest.next() {
        let found = chains.iter().find(|(chain, _)| match chain.split_first() {
            Some((first, others)) if same(name, first) => {
                let mut further = rest.clone();
                others
                    .iter()
                    .all(|wanted| further.next().is_some_and(|name| same(name, wanted)))
            }
            Some(_) | None => false,
        });
        if let Some((_, what)) = found {
            return Some(what);
        }
    }
    None
}

fn lies_below_text(location: &RelPath, place: &str) -> bool {
    let mut names = location.components();
    place
        .split('/')
        .all(|wanted| names.next().is_some_and(|name| name == wanted.as_bytes()))
}

fn same(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}
