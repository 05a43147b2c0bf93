//! A glob of `approvals.deny`, which stops a command by its spelling.
//!
//! Another spelling gets past such a glob. What it is about is found from the
//! program and the places it names, and denied as an effect, however the command
//! is written. A denial is never narrower than the glob where it says anything.

use super::{About, Proposal, ProposedDenial};

/// Programs that reach the network.
const NETWORK: [&str; 20] = [
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "telnet", "ftp", "pip",
    "pip3", "npm", "npx", "yarn", "pnpm", "gh", "aws", "gcloud",
];
/// Programs that delete.
const DELETES: [&str; 5] = ["rm", "rmdir", "unlink", "shred", "del"];
/// Programs that could only do something outside of what a command sees.
const OUTSIDE: [&str; 22] = [
    "sudo",
    "su",
    "doas",
    "pkexec",
    "systemctl",
    "service",
    "launchctl",
    "docker",
    "podman",
    "kubectl",
    "kill",
    "pkill",
    "killall",
    "reboot",
    "shutdown",
    "halt",
    "poweroff",
    "mount",
    "umount",
    "mkfs",
    "crontab",
    "iptables",
];
/// What git does over the network.
const GIT_NETWORK: [&str; 6] = ["push", "fetch", "pull", "clone", "remote", "ls-remote"];

fn denial(verbs: &[&str], about: About) -> ProposedDenial {
    ProposedDenial {
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        about,
    }
}

pub(super) fn proposal(number: usize, glob: &str) -> Proposal {
    let words: Vec<&str> = glob
        .split(|letter: char| letter.is_whitespace() || matches!(letter, '|' | ';' | '&'))
        .map(|word| word.trim_matches(['*', '?', '"', '\'']))
        .filter(|word| !word.is_empty())
        .collect();
    let program = words
        .first()
        .map(|word| word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase())
        .unwrap_or_default();
    let mut denials: Vec<ProposedDenial> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    let mut confirm = "";
    for word in &words {
        if word.starts_with("~/") || (word.starts_with('/') && word.len() > 1) {
            let place = word.split(['*', '?', '[']).next().unwrap_or_default();
            let place = place.trim_end_matches('/');
            // `~` alone would take the workspace along.
            if place.len() > 2 {
                denials.push(denial(&["fs.*"], About::On(place.to_owned())));
            }
        } else if word.starts_with('.') && word.len() > 2 && !word.contains('/') {
            denials.push(denial(&["fs.*"], About::Named((*word).to_owned())));
        }
    }
    if !denials.is_empty() {
        told.push("nothing at that place is read, made, changed or deleted, by any command or tool, whatever is granted");
    }
    // The root or a home as such: `rm -rf /*`, `rm -rf ~`.
    let is_all = |word: &&str| matches!(*word, "/" | "~" | "~/" | "$HOME" | "$HOME/");
    let second = words.get(1).copied().unwrap_or_default();
    let networks = NETWORK.contains(&program.as_str())
        || (program == "git" && GIT_NETWORK.contains(&second))
        || words.iter().any(|word| NETWORK.contains(word));
    if networks {
        denials.push(denial(&["net.connect"], About::On("*".to_owned())));
        told.push("no command and no server of tools reaches any peer, however it is spelled, whatever is granted");
    } else if DELETES.contains(&program.as_str()) && words.iter().any(is_all) {
        told.push("a command sees a copy of the workspace and none of your other files, and what it deletes there is kept only under a grant or after a yes");
        confirm = "whether more should be denied: as Hermes reads it the glob stops every deletion by a whole path, too; a rule that denies `fs.delete` would stop them all";
    } else if DELETES.contains(&program.as_str()) && denials.is_empty() {
        denials.push(denial(&["fs.delete"], About::On("*".to_owned())));
        told.push("nothing is deleted, by any command or tool, whatever is granted");
    }
    if !denials.is_empty() {
        confirm = "whether so much should be denied: it is wider than the glob, which other spellings got past; take the rule out to be asked instead";
    } else if !confirm.is_empty() {
        // Said already.
    } else if OUTSIDE.contains(&program.as_str()) {
        told.push("nothing is needed: commands gain no rights and see no process, service, container or device of yours");
    } else {
        told.push("no rule here looks at spelling. Such a command runs on a copy, and what it changes is kept only under a grant or after a yes");
        confirm = "what the glob was meant to prevent; a rule can deny the place, the peer or the kind of change";
    }
    Proposal {
        id: format!("deny-{number}"),
        from: "approvals.deny".to_owned(),
        said: glob.to_owned(),
        in_hermes: "a command that matches this glob is blocked in every mode; one that is spelled differently (a full path, `env` before it, two blanks) is not".to_owned(),
        here: told.join("; "),
        confirm: confirm.to_owned(),
        denials,
        ..Proposal::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{About, proposal};

    #[test]
    fn globs_become_denials_of_effects() {
        for (glob, verb, about) in [
            ("curl *", "net.connect", About::On("*".into())),
            ("git push --force*", "net.connect", About::On("*".into())),
            ("*curl*|*sh*", "net.connect", About::On("*".into())),
            ("rm *", "fs.delete", About::On("*".into())),
            ("cat ~/.ssh/*", "fs.*", About::On("~/.ssh".into())),
            ("rm -rf /srv/data*", "fs.*", About::On("/srv/data".into())),
            ("* .env*", "fs.*", About::Named(".env".into())),
        ] {
            let made = proposal(1, glob);
            assert_eq!(made.denials.len(), 1, "{glob}: {made:?}");
            assert_eq!(made.denials[0].verbs, [verb], "{glob}");
            assert_eq!(made.denials[0].about, about, "{glob}");
            assert!(!made.confirm.is_empty(), "{glob}");
            assert!(made.grants.is_empty(), "{glob}");
        }
    }

    #[test]
    fn a_glob_about_the_root_or_a_home_as_such_stops_no_ordinary_deletion() {
        for glob in [
            "rm -rf /",
            "rm -rf /*",
            "rm -rf ~/*",
            "rm -rf $HOME",
            "*rm -rf ~*",
        ] {
            let made = proposal(1, glob);
            assert!(made.denials.is_empty(), "{glob}: {made:?}");
            assert!(made.here.contains("none of your other files"), "{glob}");
            assert!(made.confirm.contains("fs.delete"), "{glob}");
        }
        for glob in ["rm *", "rm -rf build"] {
            assert_eq!(proposal(1, glob).denials.len(), 1, "{glob}");
        }
    }

    #[test]
    fn what_cannot_be_reached_or_said_is_told() {
        let sudo = proposal(1, "sudo *");
        assert!(sudo.denials.is_empty() && sudo.here.contains("gain no rights"));
        let other = proposal(1, "frobnicate --hard*");
        assert!(other.denials.is_empty() && !other.confirm.is_empty());
        assert!(proposal(1, "*").denials.is_empty());
        assert!(proposal(1, "ls ~/*").denials.is_empty());
    }
}
