//! An entry of `command_allowlist`: a class of Hermes' detector, or a command.
//!
//! A class is known by the words its description begins with. What is not known
//! gets no grant: its commands run on a copy like any other, and their changes
//! are asked about.

use bisim_world::protocol::Standing;

use super::{Proposal, ProposedGrant};

/// What the commands of a class are there to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Delete files.
    Deletes,
    /// Change the files of a working tree, in every way.
    Rewrites,
    /// Change bits or content of files that stay.
    Modifies,
    /// Change the repository's own files.
    Repository,
    /// Run something that is not what it looks like; running is no effect.
    Runs,
    /// Fetch something and run it.
    Fetches,
    /// Change a repository elsewhere.
    Pushes,
    /// End or restart what runs outside.
    Outside,
    /// Change the machine, credentials or Hermes itself.
    Machine,
    /// Change a database.
    Database,
}

/// The beginnings of descriptions, and what such commands are there to do.
const CLASSES: [(&str, Family); 47] = [
    ("delete in root path", Family::Machine),
    ("recursive delete", Family::Deletes),
    ("xargs with rm", Family::Deletes),
    ("find -exec", Family::Deletes),
    ("find -delete", Family::Deletes),
    ("git reset --hard", Family::Rewrites),
    ("git clean with force", Family::Deletes),
    ("git force push", Family::Pushes),
    ("git branch force delete", Family::Repository),
    ("world/other-writable permissions", Family::Modifies),
    ("recursive world/other-writable", Family::Modifies),
    ("chmod +x followed by", Family::Modifies),
    ("overwrite project env/config", Family::Modifies),
    ("recursive chown to root", Family::Machine),
    ("format filesystem", Family::Machine),
    ("disk copy", Family::Machine),
    ("write to block device", Family::Machine),
    ("overwrite system", Family::Machine),
    ("copy/move file into system", Family::Machine),
    ("copy/move file into sensitive", Family::Machine),
    ("in-place edit of", Family::Machine),
    ("sudo with", Family::Machine),
    ("windows", Family::Machine),
    ("stop/restart", Family::Outside),
    ("kill ", Family::Outside),
    ("force kill", Family::Outside),
    ("fork bomb", Family::Outside),
    ("hermes update", Family::Outside),
    ("docker ", Family::Outside),
    ("start gateway", Family::Outside),
    ("sql ", Family::Database),
    ("pipe remote content", Family::Fetches),
    ("execute remote", Family::Fetches),
    ("pipe decoded", Family::Runs),
    ("pipe xxd", Family::Runs),
    ("pipe tr-", Family::Runs),
    ("pipe openssl", Family::Runs),
    ("powershell encoded", Family::Runs),
    ("shell execution via", Family::Runs),
    ("shell command via", Family::Runs),
    ("script execution via", Family::Runs),
    ("inline ", Family::Runs),
    ("interpreter ", Family::Runs),
    ("python ", Family::Runs),
    ("perl ", Family::Runs),
    ("ruby ", Family::Runs),
    ("node ", Family::Runs),
];

pub(super) fn family(entry: &str) -> Option<Family> {
    let entry = entry.to_ascii_lowercase();
    CLASSES
        .iter()
        .find(|(start, _)| entry.starts_with(start))
        .map(|(_, family)| *family)
}

pub(super) fn proposal(number: usize, entry: &str) -> Proposal {
    let known = family(entry);
    let looks_like_command = known.is_none() && !entry.contains('(');
    let class = || Standing::Always(vec![entry.to_owned()]);
    let base = Proposal {
        id: format!("allow-{number}"),
        from: "command_allowlist".to_owned(),
        said: entry.to_owned(),
        in_hermes: format!(
            "every command whose spelling falls into the class \u{201c}{entry}\u{201d} runs unasked, on any file, in every session, for ever"
        ),
        ..Proposal::default()
    };
    let Some(family) = known else {
        let (in_hermes, standing) = if looks_like_command {
            (
                "every command with exactly this text (or of this shape) runs unasked, in every session, for ever".to_owned(),
                Standing::Commands(vec![entry.to_owned()]),
            )
        } else {
            (base.in_hermes.clone(), class())
        };
        return Proposal {
            in_hermes,
            here: "running needs no permission: it runs on a copy. What it changes there is kept only under a grant on the place, or after a yes".to_owned(),
            confirm: "whether such a command is meant to change anything; if so, the grant is for the place it changes, which a replay of the history names".to_owned(),
            standing: Some(standing),
            ..base
        };
    };
    let grant = |verbs: &[&str], on: &str| -> Vec<ProposedGrant> {
        verbs
            .iter()
            .map(|verb| ProposedGrant::new(verb, on))
            .collect()
    };
    let (here, confirm, grants) = match family {
        Family::Deletes => (
            "files of the workspace may be deleted unasked until the grant ends; nothing outside it, and nothing else about the files",
            "that whatever runs may delete any file of the workspace; a directory such as `./build` in place of `.` is safer",
            grant(&["fs.delete"], "."),
        ),
        Family::Rewrites => (
            "files of the workspace may be made, changed and deleted unasked until the grants end; nothing outside it",
            "that uncommitted work may be thrown away unasked; leave it out to be asked with the whole list of files",
            grant(&["fs.create", "fs.modify", "fs.delete"], "."),
        ),
        Family::Modifies => (
            "files of the workspace may be changed (content and permission bits) unasked until the grant ends; nothing outside it",
            "that any file of the workspace may be changed; name a directory in place of `.` if one is enough",
            grant(&["fs.modify"], "."),
        ),
        Family::Repository => (
            "the repository's own files below `.git` may be made, changed and deleted unasked until the grants end",
            "that branches and history may be changed unasked",
            grant(&["fs.create", "fs.modify", "fs.delete"], "./.git"),
        ),
        Family::Runs => (
            "nothing is needed: however a command hides what it is, it runs on a copy without a network, and what it did is what counts",
            "",
            Vec::new(),
        ),
        Family::Fetches => (
            "commands have no network. A peer can be granted by name (`net.connect` on `example.com:443`); running what was fetched needs nothing more",
            "which peers, if any: the class says nothing about them",
            Vec::new(),
        ),
        Family::Pushes => (
            "commands have no network. Granting the peer lets every push through, forced or not: the other side has to forbid forcing",
            "which peer, if any, such as `github.com:22`",
            Vec::new(),
        ),
        Family::Outside => (
            "commands see no process, service or container of yours, so there is nothing to allow",
            "",
            Vec::new(),
        ),
        Family::Machine => (
            "no grant is proposed: it is about the machine, credentials or Hermes itself, which no command here can reach",
            "",
            Vec::new(),
        ),
        Family::Database => (
            "a database that is a file of the workspace is changed like any file; one behind a network needs its peer granted",
            "which file or peer holds the data; none is proposed",
            Vec::new(),
        ),
    };
    Proposal {
        here: here.to_owned(),
        confirm: confirm.to_owned(),
        grants,
        standing: Some(class()),
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, family, proposal};
    use bisim_world::protocol::Standing;

    #[test]
    fn a_class_becomes_a_grant_on_the_workspace_that_ends_or_none() {
        let delete = proposal(1, "recursive delete");
        assert_eq!(delete.grants.len(), 1);
        assert_eq!(delete.grants[0].verb, "fs.delete");
        assert_eq!(delete.grants[0].on, ".");
        assert!(delete.grants[0].seconds > 0);
        assert!(!delete.confirm.is_empty());
        for none in [
            "format filesystem",
            "in-place edit of system config",
            "copy/move file into sensitive credential/SSH/shell-rc path",
            "delete in root path",
            "something nobody knows (yet)",
            "podman *",
        ] {
            assert!(proposal(1, none).grants.is_empty(), "{none}");
        }
    }

    #[test]
    fn classes_and_commands_are_told_apart() {
        assert_eq!(family("SQL DROP"), Some(Family::Database));
        assert_eq!(
            family("git branch force delete (long flags)"),
            Some(Family::Repository)
        );
        assert_eq!(
            proposal(1, "git status").standing,
            Some(Standing::Commands(vec!["git status".into()]))
        );
        assert_eq!(
            proposal(1, "recursive delete").standing,
            Some(Standing::Always(vec!["recursive delete".into()]))
        );
    }
}
