//! Which file names are asked about each time.
//!
//! Names decide here only whether a person is asked once more; no name ever
//! makes an effect allowed. Case is ignored, because some file systems do.

use alloc::vec::Vec;

use super::names::{Names, same};
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
const SECRET_FILES: Names = Names::of(&[
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
]);

/// Endings of `.env.…` files that are made to be read by everybody.
const PUBLIC_ENV_ENDINGS: &[&str] = &["example", "sample", "template", "dist"];

/// Endings of files that hold private keys, alone or beside a certificate.
const KEY_ENDINGS: &[&str] = &[".pem", ".key", ".ppk", ".p12", ".pfx", ".jks", ".keystore"];

/// Names with such an ending that by custom hold certificates alone: those are public.
const PUBLIC_CERTIFICATES: &[&str] = &[
    "cacert.pem",
    "ca-bundle.pem",
    "ca.pem",
    "cert.pem",
    "chain.pem",
    "fullchain.pem",
];

/// Places below `/` where a change acts on the whole machine.
const SYSTEM_PLACES: &[&[&str]] = &[
    &["etc"],
    &["boot"],
    &["usr"],
    &["bin"],
    &["sbin"],
    &["lib"],
    &["lib64"],
    &["proc"],
    &["sys"],
    &["dev"],
    &["var", "spool"],
    &["var", "lib", "systemd"],
    &["var", "run"],
    &["run"],
    &["private", "etc"],
    &["private", "var"],
];

/// File names that are run, or steer what is run, when somebody logs in or works here.
const STARTUP_FILES: Names = Names::of(&[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".kshrc",
    ".mkshrc",
    ".login",
    ".logout",
    ".cshrc",
    ".tcshrc",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".gitconfig",
    ".gitmodules",
    ".hgrc",
    ".jjconfig.toml",
    ".cvsrc",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".emacs",
    ".gdbinit",
    ".lldbinit",
    ".pdbrc",
    ".ghci",
    ".ocamlinit",
    ".octaverc",
    ".iex.exs",
    ".inputrc",
    ".irbrc",
    ".pryrc",
    ".psqlrc",
    ".rprofile",
    ".sqliterc",
    ".tmux.conf",
    ".screenrc",
]);

const OTHER_AGENT: &str = "settings of another agent, which can name programs";
const MERCURIAL: &str = "settings of Mercurial, which can name programs";
const SAPLING: &str = "settings of Sapling, which can name programs";
const BREEZY: &str = "settings of Bazaar and Breezy, which can name programs";
const JUJUTSU: &str = "settings of Jujutsu, which can name programs";
const PIJUL: &str = "settings of Pijul, which can name programs";
const DARCS: &str = "settings of Darcs, which can name programs";

/// Directories whose files run by themselves later, and files in such a place.
const STARTUP_DIRS: &[(&[&str], &str)] = &[
    (&[".git", "hooks"], "programs git runs"),
    (&[".config", "autostart"], "programs run at login"),
    (&[".config", "systemd"], "programs run at login"),
    (&[".config", "environment.d"], "programs run at login"),
    (&[".config", "fish"], "programs a shell runs"),
    (
        &[".config", "git"],
        "settings of git, which can name programs",
    ),
    (&[".config", "nushell"], "programs a shell runs"),
    (&[".config", "nvim"], "programs an editor runs"),
    (&[".config", "vim"], "programs an editor runs"),
    (&[".config", "emacs"], "programs an editor runs"),
    (&[".vim"], "programs an editor runs"),
    (&[".emacs.d"], "programs an editor runs"),
    (&[".vscode", "tasks.json"], "programs an editor runs"),
    (&[".vscode", "mcp.json"], "programs an editor runs"),
    // What they name is started where they lie, and some of it asks nobody.
    (&[".mcp.json"], OTHER_AGENT),
    (&[".claude.json"], OTHER_AGENT),
    (&[".claude", "settings.json"], OTHER_AGENT),
    (&[".claude", "settings.local.json"], OTHER_AGENT),
    (&[".cursor", "hooks.json"], OTHER_AGENT),
    (&[".cursor", "mcp.json"], OTHER_AGENT),
    (&[".gemini", "settings.json"], OTHER_AGENT),
    (&[".codex", "config.toml"], OTHER_AGENT),
    (&[".husky"], "programs git runs"),
    // Hooks, editors, tools for merging and aliases of version control other than git: each
    // of these names programs, or leads to a store whose settings do. A working copy of
    // Subversion has no settings.
    (&[".hg", "hgrc"], MERCURIAL),
    (&[".hg", "hgrc-not-shared"], MERCURIAL),
    (&[".hg", "sharedpath"], MERCURIAL),
    (&[".config", "hg"], MERCURIAL),
    (&[".sl", "config"], SAPLING),
    (&[".sl", "sharedpath"], SAPLING),
    (&[".config", "sapling"], SAPLING),
    (&[".bzr", "branch", "branch.conf"], BREEZY),
    (&[".bzr", "branch", "location"], BREEZY),
    (&[".bzr", "branches"], BREEZY),
    (&[".bazaar"], BREEZY),
    (&[".config", "breezy"], BREEZY),
    (&[".jj", "repo", "config.toml"], JUJUTSU),
    (&[".jj", "workspace-config.toml"], JUJUTSU),
    (&[".config", "jj"], JUJUTSU),
    (&[".pijul", "config"], PIJUL),
    (&[".pijul", "config.toml"], PIJUL),
    (&[".config", "pijul"], PIJUL),
    (&["_darcs", "prefs", "defaults"], DARCS),
    (&[".darcs"], DARCS),
    (
        &[".subversion"],
        "settings of Subversion, which can name programs",
    ),
    (&[".hermes", "config.yaml"], OTHER_AGENT),
    (&[".hermes", "scripts"], "programs another agent runs"),
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
    // Nearly every place fails the first look at each of its names, and then
    // none of the chains of directories needs to be followed.
    let on_a_chain = location.components().any(may_begin_a_chain);
    if let Some(what) = secret(location, on_a_chain) {
        return of_secret(verb, what);
    }
    if !verb.changes_files() {
        return Sensitivity::Plain;
    }
    startup(tool, location, on_a_chain).map_or(Sensitivity::Plain, Sensitivity::Sensitive)
}

/// Judges a look at a file by its name, in a directory of which it is known what
/// secrets it lies in, and where no chain begins in its last name or in the file's.
pub(super) fn judge_name(verb: Verb, name: &[u8], dir: Option<&'static str>) -> Sensitivity {
    secret_name(name)
        .or(dir)
        .map_or(Sensitivity::Plain, |what| of_secret(verb, what))
}

/// What a directory lies in, itself included, where that is about keys and accounts.
pub(super) fn secret_dir(location: &RelPath) -> Option<&'static str> {
    within(location, SECRET_DIRS)
}

fn of_secret(verb: Verb, what: &'static str) -> Sensitivity {
    match verb {
        // A name and a size give nothing away.
        Verb::FsList => Sensitivity::Plain,
        _ => Sensitivity::Sensitive(what),
    }
}

fn secret(location: &RelPath, on_a_chain: bool) -> Option<&'static str> {
    secret_name(location.file_name()?).or_else(|| {
        if on_a_chain {
            within(location, SECRET_DIRS)
        } else {
            None
        }
    })
}

fn secret_name(name: &[u8]) -> Option<&'static str> {
    if SECRET_FILES.holds(name) {
        return Some("a file made to hold secrets");
    }
    if let Some((head, ending)) = name.split_at_checked(".env.".len())
        && same(head, ".env.")
        && !PUBLIC_ENV_ENDINGS.iter().any(|known| same(ending, known))
    {
        return Some("a file made to hold secrets");
    }
    is_key_file(name).then_some("a file made to hold a private key")
}

/// Judged by the ending, for which whoever made the file chose it.
fn is_key_file(name: &[u8]) -> bool {
    let Some(dot) = name.iter().rposition(|letter| *letter == b'.') else {
        return false;
    };
    let ending = name.get(dot..).unwrap_or_default();
    KEY_ENDINGS.iter().any(|known| same(ending, known))
        && !PUBLIC_CERTIFICATES.iter().any(|known| same(name, known))
}

/// Directories that are there for one tool, whose grants decide about it alone.
const OWN_DIRS: &[(Tool, &[&str])] = &[
    (Tool::Memory, &[".hermes", "memories"]),
    (Tool::SkillManage, &[".hermes", "skills"]),
    (Tool::Cronjob, &[".hermes", "cron"]),
];

fn is_own(tool: Tool, location: &RelPath) -> bool {
    OWN_DIRS
        .iter()
        .any(|(owner, dir)| *owner == tool && within(location, &[(dir, "")]).is_some())
}

fn startup(tool: Tool, location: &RelPath, on_a_chain: bool) -> Option<&'static str> {
    let in_system = location.components().next().is_some_and(|top| {
        SYSTEM_PLACES.iter().any(|place| {
            place.first().is_some_and(|first| first.as_bytes() == top)
                && lies_below(location, place)
        })
    });
    if in_system {
        return Some("a part of the operating system");
    }
    let name = location.file_name()?;
    if STARTUP_FILES.holds(name) {
        return Some("a file that is run at login");
    }
    if !on_a_chain {
        return steers_git(location, name);
    }
    if !is_own(tool, location)
        && let Some(what) = within(location, STARTUP_DIRS)
    {
        return Some(what);
    }
    if leads_to_a_store_of_jujutsu(location) {
        return Some(JUJUTSU);
    }
    let in_git = location.components().any(|name| same(name, ".git"));
    let steers = steers_git(location, name);
    match tool {
        // Git keeps its own store by way of the terminal, and what it did there is taken back
        // as it was made; only what steers later commands matters.
        Tool::Terminal | Tool::ExecuteCode | Tool::Undo => steers,
        Tool::ReadFile
        | Tool::WriteFile
        | Tool::Patch
        | Tool::SearchFiles
        | Tool::DelegateTask
        | Tool::Process
        | Tool::Clarify
        | Tool::Todo
        | Tool::Memory
        | Tool::SessionSearch
        | Tool::SkillsList
        | Tool::SkillView
        | Tool::SkillManage
        | Tool::Cronjob
        | Tool::External
        | Tool::Converse
        | Tool::Directory => in_git
            .then_some("the store of git, which only git should write")
            .or(steers),
    }
}

/// The store of a working copy, or, where a file has its name, the way to one that lies
/// anywhere, with settings of its own. What lies in a store is judged by its own name.
fn leads_to_a_store_of_jujutsu(location: &RelPath) -> bool {
    let mut names = location.components().rev();
    let mut is_next = |known: &str| names.next().is_some_and(|name| same(name, known));
    is_next("repo") && is_next(".jj")
}

/// Hooks and settings name programs; a `.git` that is a link or a file, and
/// `commondir`, lead to a store somewhere else that does. What lies in `remotes` and
/// `branches`, where git kept them before it had settings, says to this day where it
/// fetches from and sends to. A store without a tree has
/// any name, `.git` behind it by custom, and is one for git as soon as it has a `HEAD`:
/// whoever works in there has its programs run.
fn steers_git(location: &RelPath, name: &[u8]) -> Option<&'static str> {
    if same(name, ".git") {
        return Some("where the store of git lies, which can name programs");
    }
    let mut inside = location.components();
    if !inside.any(is_store) {
        return same(name, "HEAD")
            .then_some("what makes a directory a store of git, which can name programs");
    }
    // Branches, tags and objects may have any name; git reads none of them as settings.
    let mut below = inside.clone();
    let holds_names_of_users = below.next().is_some_and(|first| {
        ["refs", "logs", "objects"]
            .iter()
            .any(|known| same(first, known))
    });
    if holds_names_of_users && !below.clone().any(is_store) {
        // But any of their directories is a store of its own as soon as it has objects, or
        // says where they are.
        return below
            .any(|name| same(name, "objects") || same(name, "commondir"))
            .then_some("what makes a directory a store of git, which can name programs");
    }
    if inside.clone().any(|name| same(name, "hooks")) {
        return Some("programs git runs");
    }
    if says_where_to_fetch(inside.clone()) {
        return Some("where git fetches from and sends to");
    }
    ["config", "config.worktree", "commondir"]
        .iter()
        .any(|known| same(name, known))
        .then_some("settings of git, which can name programs")
}

/// Whether a way that begins in a store leads to what says which store is meant by a name, in
/// that one or in a submodule's. Below `refs` branches may have that name, and below
/// `worktrees` trees.
fn says_where_to_fetch<'l>(inside: impl Iterator<Item = &'l [u8]>) -> bool {
    let mut above: &[u8] = b"";
    for name in inside {
        let is_below = |known: &str| same(above, known);
        if same(name, "refs") && !is_below("modules") {
            return false;
        }
        let is_such = same(name, "remotes") || same(name, "branches");
        if is_such && !is_below("worktrees") {
            return true;
        }
        above = name;
    }
    false
}

fn is_store(name: &[u8]) -> bool {
    let ending = name.len().checked_sub(".git".len());
    ending
        .and_then(|at| name.get(at..))
        .is_some_and(|ending| same(ending, ".git"))
}

/// Do the names of one of `chains` occur next to each other on the way?
fn within(location: &RelPath, chains: &[(&[&str], &'static str)]) -> Option<&'static str> {
    let mut rest = location.components();
    while let Some(name) = rest.next() {
        if !may_begin_a_chain(name) {
            continue;
        }
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

/// What somebody finds behind a link of this name and would run: the first file or
/// directory of the tables that the name leads to and is not yet. A link makes all of
/// these at once, wherever they lie.
#[must_use]
pub fn behind_a_link(location: &RelPath) -> Option<RelPath> {
    let names: Vec<&[u8]> = location.components().collect();
    let chains = STARTUP_DIRS.iter().chain(SECRET_DIRS);
    chains.map(|(chain, _)| *chain).find_map(|chain| {
        // The link may stand for any beginning of the chain.
        (1..chain.len()).find_map(|length| {
            let (above, below) = chain.split_at_checked(length)?;
            let tail = names.get(names.len().checked_sub(length)?..)?;
            let leads_there = tail
                .iter()
                .zip(above)
                .all(|(name, known)| same(name, known));
            if !leads_there {
                return None;
            }
            below
                .iter()
                .try_fold(location.clone(), |place, name| place.child(name.as_bytes()))
                .ok()
        })
    })
}

fn lies_below(location: &RelPath, place: &[&str]) -> bool {
    let mut names = location.components();
    place
        .iter()
        .all(|wanted| names.next() == Some(wanted.as_bytes()))
}

/// Whether a chain of one of the tables may begin with this name: a look at its
/// first letter and its length, which nearly every directory on a way fails.
#[inline]
pub(super) fn may_begin_a_chain(name: &[u8]) -> bool {
    match name.first() {
        Some(b'.') => true,
        Some(b'm' | b'M') => name.len() == "mcp-tokens".len(),
        Some(b'_') => name.len() == "_darcs".len(),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        OWN_DIRS, SECRET_DIRS, SECRET_FILES, STARTUP_DIRS, STARTUP_FILES, is_key_file,
        may_begin_a_chain,
    };

    #[test]
    fn a_table_holds_each_of_its_names_in_any_case_and_no_other() {
        for table in [SECRET_FILES, STARTUP_FILES] {
            for name in table.names {
                assert!(table.holds(name.as_bytes()), "{name}");
                assert!(table.holds(name.to_ascii_uppercase().as_bytes()), "{name}");
                let (longer, other) = (["x", name].concat(), name.replace('.', "-"));
                assert!(!table.holds(longer.as_bytes()), "{longer}");
                assert!(
                    !name.contains('.') || !table.holds(other.as_bytes()),
                    "{other}"
                );
            }
            for name in [&b""[..], b"\xff", &[b'a'; 200]] {
                assert!(!table.holds(name));
            }
        }
    }

    #[test]
    fn the_first_look_at_a_name_misses_no_chain() {
        let tables = SECRET_DIRS.iter().chain(STARTUP_DIRS);
        let own = OWN_DIRS.iter().map(|(_, chain)| *chain);
        let mut count = 0;
        for chain in tables.map(|(chain, _)| *chain).chain(own) {
            let first = chain.first().copied().unwrap_or_default();
            assert!(may_begin_a_chain(first.as_bytes()), "{first}");
            assert!(
                may_begin_a_chain(first.to_ascii_uppercase().as_bytes()),
                "{first}"
            );
            count += 1;
        }
        assert!(count > 20, "{count}");
        // Looks at many files of a directory go by it.
        assert!(SECRET_DIRS.iter().all(|(chain, _)| chain.len() <= 2));
    }

    #[test]
    fn private_keys_are_known_by_their_ending_and_certificates_by_their_name() {
        for name in ["server.pem", "TLS.KEY", ".key", "a.b.pfx", "id.ppk"] {
            assert!(is_key_file(name.as_bytes()), "{name}");
        }
        for name in [
            "cacert.pem",
            "Cert.pem",
            "key",
            "keys.py",
            "a.keys",
            "pem",
            "a.key.pub",
            "",
        ] {
            assert!(!is_key_file(name.as_bytes()), "{name}");
        }
    }
}
