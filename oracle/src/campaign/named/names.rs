//! Differences in what a name means, where the agent did no more than Hermes.

use bisim_world::protocol::{FileKind, Step};

use crate::case::Case;
use crate::holdings::below;
use crate::relation::StepJudgement;

/// As many links as the kernel follows on the way to one file.
const LINKS_MAX: usize = 40;
/// As long as a name can be, and as a path can be.
const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4095;
/// What the agent reads of one file at most.
const READ_BYTES_MAX: u64 = 64 << 20;

/// The rule that names a difference about names.
pub(super) fn rule(case: &Case, step: &StepJudgement) -> Option<&'static str> {
    let Some(Step::Call { tool, args, .. }) = case.job.script.get(step.step) else {
        return None;
    };
    let acted = [":inside", ":outside"]
        .iter()
        .any(|reach| step.agent.contains(reach));
    let path = args.get("path").and_then(serde_json::Value::as_str);
    let names = || {
        let one = path.map(str::to_owned).into_iter();
        one.chain(patched(args))
    };
    // Hermes waits at a pipe until somebody writes to it; nobody does.
    let is_pipe = |path: String| {
        is_below(case, &path, |kind| match kind {
            FileKind::Fifo(_) => true,
            FileKind::Symlink(target) => is_below(case, target, |k| matches!(k, FileKind::Fifo(_))),
            _ => false,
        })
    };
    if step.hermes.starts_with("hung:none") && !acted && names().any(is_pipe) {
        return Some("waits-at-a-pipe");
    }
    // Hermes reads the lines a search or a listing prints, and a name with a line break
    // is two of them.
    let nothing_there =
        step.hermes.starts_with("tool-error:none") && step.agent.starts_with("tool-error:none");
    if (tool == "search_files" || (tool == "read_file" && nothing_there))
        && files(case).any(|(path, _)| path.contains('\n'))
    {
        return Some("a-name-of-two-lines");
    }
    // To Hermes `..` is the parent of where a link leads, to the agent of the
    // link: `what/../x` is `x` by its name, and leads nowhere by way of outside.
    if !acted && names().any(|path| goes_up_after_a_link(case, &path)) {
        return Some("up-from-a-link");
    }
    // The same for what is no directory, where Hermes finds nothing.
    if !acted && names().any(|path| goes_up_from_nothing(case, &path)) {
        return Some("up-from-no-directory");
    }
    // What only git should write, whatever its letters; the agent asks about each change.
    let is_change = !matches!(tool.as_str(), "read_file" | "search_files");
    if is_change && !acted && names().any(|path| is_in_a_store_of_git(&path)) {
        return Some("store-of-git");
    }
    // Hermes asks the system where the home of a named user is; to the agent it is a name.
    if !acted && names().any(|path| is_in_the_home_of_a_named_user(&path)) {
        return Some("home-of-a-named-user");
    }
    // No file can have such a name, so nothing is held on it either.
    let is_not_held = step.agent.starts_with("refused:none:no-cap");
    if is_not_held && names().any(|path| is_too_long(&path)) {
        return Some("longer-than-names-are");
    }
    // Hermes puts a file of its own into the directory and says that it has written.
    let is_directory = |path: String| {
        let directory = absolute(case, &path);
        is_directory(case, &directory)
    };
    if step.agent.starts_with("refused:none:not-regular-file") && names().any(is_directory) {
        return Some("written-into-a-directory");
    }
    // Both make the file; Hermes says that it could not.
    if step.hermes.starts_with("tool-error:inside")
        && step.agent.starts_with("ran:inside")
        && names().any(|path| path.ends_with('/'))
    {
        return Some("a-new-file-with-a-slash-at-the-end");
    }
    // The agent says of a file that it is too large to be held whole, and does nothing.
    let is_large = |path: String| {
        let of = |kind: &FileKind| matches!(kind, FileKind::Sparse(size) if *size > READ_BYTES_MAX);
        is_below(case, &path, of)
    };
    if step.agent.starts_with("tool-error:none") && names().any(is_large) {
        return Some("more-than-is-read-at-once");
    }
    // Hermes counts links by itself, in words and numbers of its own; the kernel
    // follows no more, and then nothing was done.
    let goes_round = |path: String| links_on_the_way(case, &path) > LINKS_MAX;
    if step.agent.starts_with("tool-error:none") && names().any(goes_round) {
        return Some("more-links-than-are-followed");
    }
    // Of what is not there Hermes tells the name that links lead to.
    if nothing_there && names().any(|path| links_on_the_way(case, &path) > 0) {
        return Some("told-by-where-links-lead");
    }
    None
}

/// Whether a name on the way is `.git`, whatever the case of its letters.
fn is_in_a_store_of_git(path: &str) -> bool {
    path.split('/')
        .any(|name| name.eq_ignore_ascii_case(".git"))
}

/// `~name`, and what is below it.
fn is_in_the_home_of_a_named_user(path: &str) -> bool {
    path.strip_prefix('~')
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

fn is_too_long(path: &str) -> bool {
    path.len() > PATH_BYTES_MAX || path.split('/').any(|name| name.len() > NAME_BYTES_MAX)
}

/// The path from the root, as it is spelled.
pub(super) fn absolute(case: &Case, path: &str) -> String {
    let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let names = names.collect::<Vec<_>>().join("/");
    let start = if path.starts_with('/') {
        ""
    } else {
        case.cwd()
    };
    format!("{start}/{names}")
}

/// Whether a directory was prepared there, or is on the way to something that was.
pub(super) fn is_directory(case: &Case, path: &str) -> bool {
    below(case.cwd(), path)
        || files(case).any(|(file, kind)| {
            below(file, path) && (file != path || matches!(kind, FileKind::Dir(_)))
        })
}

/// Whether a `..` of the path comes after what is no directory of the workspace.
fn goes_up_from_nothing(case: &Case, path: &str) -> bool {
    let mut so_far = case.cwd().to_owned();
    if path.starts_with('/') {
        return false;
    }
    let mut names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    names.any(|name| {
        if name != ".." {
            so_far.push('/');
            so_far.push_str(name);
            return false;
        }
        let is_nothing = below(&so_far, case.cwd()) && !is_directory(case, &so_far);
        so_far.truncate(so_far.rfind('/').unwrap_or(0));
        is_nothing
    })
}

/// The names in the text of a patch.
fn patched(args: &serde_json::Value) -> Vec<String> {
    let text = args.get("patch").and_then(serde_json::Value::as_str);
    let heads = text.unwrap_or_default().lines().filter_map(|line| {
        let (_, names) = line.strip_prefix("*** ")?.split_once(": ")?;
        Some(names.split(" -> ").map(str::to_owned).collect::<Vec<_>>())
    });
    heads.flatten().collect()
}

/// Whether the path names a prepared file of this kind.
fn is_below(case: &Case, path: &str, is_kind: impl Fn(&FileKind) -> bool) -> bool {
    let steps = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let path = steps.collect::<Vec<_>>().join("/");
    files(case).any(|(file, kind)| is_kind(kind) && file.ends_with(&format!("/{path}")))
}

/// How many prepared links lie on the way; one more than are followed where
/// there is no end.
fn links_on_the_way(case: &Case, path: &str) -> usize {
    let mut left: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
    let mut so_far = if path.starts_with('/') {
        String::new()
    } else {
        case.cwd().to_owned()
    };
    let mut count = 0;
    while let Some(name) = left.pop() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                so_far.truncate(so_far.rfind('/').unwrap_or(0));
                continue;
            }
            _ => {}
        }
        let whole = format!("{so_far}/{name}");
        let target = files(case).find_map(|(path, kind)| match kind {
            FileKind::Symlink(target) if path == whole => Some(target),
            _ => None,
        });
        let Some(target) = target else {
            so_far = whole;
            continue;
        };
        count += 1;
        if count > LINKS_MAX {
            break;
        }
        if target.starts_with('/') {
            so_far.clear();
        }
        left.extend(target.rsplit('/').map(str::to_owned));
    }
    count
}

pub(super) fn files(case: &Case) -> impl Iterator<Item = (&str, &FileKind)> {
    let world = case.job.world.iter();
    world
        .flat_map(|world| &world.files)
        .map(|file| (file.path.as_str(), &file.kind))
}

/// Whether a `..` of the path comes after a link that was prepared.
fn goes_up_after_a_link(case: &Case, path: &str) -> bool {
    let mut so_far = if path.starts_with('/') {
        String::new()
    } else {
        case.cwd().to_owned()
    };
    let mut names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    names.any(|name| {
        if name == ".." {
            let is_link = files(case)
                .any(|(link, kind)| matches!(kind, FileKind::Symlink(_)) && below(&so_far, link));
            if is_link {
                return true;
            }
            so_far.truncate(so_far.rfind('/').unwrap_or(0));
        } else {
            so_far.push('/');
            so_far.push_str(name);
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Defaults;
    use crate::generate::Specimen;
    use crate::relation::Finding;

    #[test]
    fn links_are_counted_on_the_whole_way() {
        for (name, path, expected) in [
            ("path:read+plain+all", "pz/plain.txt", 0),
            ("path:read+link-inside+all", "pz/link", 1),
            (
                "path:read+link-to-directory-outside+all",
                "pz/dir/db.sqlite",
                1,
            ),
            ("path:read+chain-of-40-inside+all", "pz/c0", 40),
            ("path:read+chain-of-41-inside+all", "./pz//c0", 41),
            ("path:read+loop-of-one+all", "pz/l", 41),
            ("path:read+loop-of-two+all", "/home/u/proj/pz/l/x", 41),
            (
                "path:read+loop-of-directories+all",
                "pz/sub/again/again/deep.txt",
                2,
            ),
        ] {
            let file = Specimen::named(name).unwrap().case_file().unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            assert_eq!(links_on_the_way(&case, path), expected, "{path}");
        }
    }

    /// What names the difference of a call of this file tool.
    fn named(name: &str, path: &str, hermes: &str, agent: &str) -> Option<&'static str> {
        let call = Step::Call {
            tool: "read_file".to_owned(),
            args: serde_json::json!({ "path": path }),
            by: None,
        };
        named_of(call, name, hermes, agent)
    }

    fn named_of(call: Step, name: &str, hermes: &str, agent: &str) -> Option<&'static str> {
        let mut file = Specimen::named(name).unwrap().case_file().unwrap();
        file.script = vec![call];
        let case = Case::resolve("generated", &Defaults::default(), file);
        let step = StepJudgement {
            step: 0,
            finding: Finding::Different,
            what: "call:read_file".to_owned(),
            hermes: hermes.to_owned(),
            agent: agent.to_owned(),
            why: String::new(),
        };
        rule(&case, &step)
    }

    #[test]
    fn only_a_large_file_is_more_than_is_read() {
        let large = Some("more-than-is-read-at-once");
        for (name, path, expected) in [
            ("path:read+huge-file+all", "pz//huge.bin", large),
            ("path:read+huge-file+all", "/home/u/proj/pz/huge.bin", large),
            ("path:read+huge-file+all", "pz/plain.txt", None),
            ("path:read+sparse-file+all", "pz/sparse.bin", None),
        ] {
            let found = named(name, path, "ran:inside", "tool-error:none");
            assert_eq!(found, expected, "{name} {path}");
        }
    }

    #[test]
    fn what_a_name_means_is_named_only_where_the_agent_did_no_more() {
        let (read, nothing, error) = ("path:read+plain+all", "ran:none", "tool-error:none");
        let link = "path:read+loop-of-directories+all";
        let lines = "path:read+newline-in-name+all";
        let long = format!("pz/{}", "n".repeat(256));
        let fits = format!("pz/{}", "n".repeat(255));
        let deep = "d/".repeat(2100);
        let no_cap = "refused:none:no-cap";
        for (name, path, hermes, agent, expected) in [
            (read, "~u/x", nothing, error, Some("home-of-a-named-user")),
            (read, "~/x", nothing, error, None),
            (read, "~", nothing, error, None),
            (read, "~u/x", nothing, "ran:inside", None),
            (read, &long, error, no_cap, Some("longer-than-names-are")),
            (read, &deep, error, no_cap, Some("longer-than-names-are")),
            (read, &fits, error, no_cap, None),
            (read, &long, error, "ran:none", None),
            (
                read,
                "no/../pz",
                error,
                nothing,
                Some("up-from-no-directory"),
            ),
            (
                read,
                "pz/plain.txt/../x",
                error,
                nothing,
                Some("up-from-no-directory"),
            ),
            (read, "pz/sub/../x", error, nothing, None),
            (read, "../proj/x", error, nothing, None),
            (read, "no/../pz", error, "ran:inside", None),
            (
                link,
                "pz/sub/again/x",
                error,
                error,
                Some("told-by-where-links-lead"),
            ),
            (link, "pz/sub/x", error, error, None),
            (link, "pz/sub/again/x", error, nothing, None),
            (lines, "pz/x", error, error, Some("a-name-of-two-lines")),
            (lines, "pz/x", nothing, nothing, None),
            (read, "pz/x", error, error, None),
            // Only a change of a store is asked about.
            (read, ".git/config", nothing, "asked-refused", None),
        ] {
            let found = named(name, path, hermes, agent);
            assert_eq!(found, expected, "{name} {path} {hermes} {agent}");
        }
    }

    #[test]
    fn what_only_changes_do_is_named_for_changes_only() {
        let refused = "refused:none:not-regular-file";
        let (git, into) = (Some("store-of-git"), Some("written-into-a-directory"));
        let slash = Some("a-new-file-with-a-slash-at-the-end");
        let (ran, failed, asked) = (
            "ran:inside",
            "tool-error:inside",
            "asked-refused+asked:none:rejected-by-user",
        );
        for (path, hermes, agent, expected) in [
            (".git/config", ran, asked, git),
            ("pz/.GIT/config", ran, asked, git),
            ("pz/git/config", ran, asked, None),
            (".git/config", ran, ran, None),
            ("pz/sub", ran, refused, into),
            ("/home/u/proj//pz/sub", ran, refused, into),
            ("pz/plain.txt", ran, refused, None),
            ("pz/sub", ran, asked, None),
            ("pz/new/", failed, ran, slash),
            ("pz/new", failed, ran, None),
            ("pz/new/", failed, "ran:outside", None),
        ] {
            let call = Step::Call {
                tool: "write_file".to_owned(),
                args: serde_json::json!({ "path": path, "content": "x" }),
                by: None,
            };
            let found = named_of(call, "path:write+plain+all", hermes, agent);
            assert_eq!(found, expected, "{path} {hermes} {agent}");
        }
    }

    #[test]
    fn only_hermes_waits_at_a_pipe_and_the_agent_does_nothing_there() {
        let waits = Some("waits-at-a-pipe");
        let pipe = "path:read+pipe+all";
        for (name, path, hermes, agent, expected) in [
            (pipe, "./pz/pipe", "hung:none", "tool-error:none", waits),
            (
                "path:read+link-to-pipe+all",
                "pz/link",
                "hung:none",
                "tool-error:none",
                waits,
            ),
            (pipe, "pz/pipe", "hung:none", "ran:inside", None),
            (pipe, "pz/pipe", "ran:none", "tool-error:none", None),
            (pipe, "pz/other", "hung:none", "tool-error:none", None),
            (
                "path:read+plain+all",
                "pz/pipe",
                "hung:none",
                "ran:none",
                None,
            ),
        ] {
            let found = named(name, path, hermes, agent);
            assert_eq!(found, expected, "{path} {hermes} {agent}");
        }
    }

    #[test]
    fn only_a_step_up_after_a_link_is_one() {
        for (name, path, expected) in [
            ("path:read+out-and-in-again+all", "pz/dir/../../x", true),
            ("path:read+out-and-in-again+all", "pz/dir/sub/../x", true),
            ("path:read+out-and-in-again+all", "pz/sub/../dir/x", false),
            ("path:read+out-and-in-again+all", "pz/sub/../dir/../x", true),
            (
                "path:read+out-and-in-again+all",
                "../proj/pz/plain.txt",
                false,
            ),
            ("path:read+plain+all", "pz/sub/../plain.txt", false),
        ] {
            let file = Specimen::named(name).unwrap().case_file().unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            assert_eq!(goes_up_after_a_link(&case, path), expected, "{path}");
        }
    }
}
