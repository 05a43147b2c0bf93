//! Files with two names, of which one is changed.

use bisim_world::protocol::{EffectKind, FileKind, FsEffect, Step};

use crate::case::Case;

/// Whether all that Hermes' command changed besides are other names of files that the
/// agent's command changed as well, linked together by a command before this one. In the
/// view of a command a file that was there has one name, whatever other names it has, and
/// what is carried over is a file of its own: its other names may lie where nothing is held.
pub(super) fn is_another_name(
    case: &Case,
    at: usize,
    changed: &[FsEffect],
    more: &[FsEffect],
) -> bool {
    let is_command = command(case.job.script.get(at)).is_some();
    let was_linked = |one: &str, other: &str| {
        let mut before = case.job.script.iter().take(at);
        before.any(|step| command(Some(step)).is_some_and(|command| links(command, one, other)))
    };
    let is_left = |effect: &FsEffect| {
        matches!(effect.kind, EffectKind::Modified | EffectKind::Metadata)
            && changed.iter().any(|other| {
                let facts = |effect: &FsEffect| (effect.digest.clone(), effect.size, effect.mode);
                other.path != effect.path
                    && facts(other) == facts(effect)
                    && was_linked(&effect.path, &other.path)
            })
    };
    is_command && !more.is_empty() && more.iter().all(is_left)
}

/// Whether a patch in the V4A form put a file in the place of a prepared link under Hermes, and
/// changed what the link leads to, to the same text, under the agent.
pub(super) fn is_behind_a_link(
    case: &Case,
    at: usize,
    (hermes, agent): (&[FsEffect], &[FsEffect]),
) -> bool {
    let is_patch = matches!(
        case.job.script.get(at),
        Some(Step::Call { tool, args, .. }) if tool == "patch" && args.get("patch").is_some()
    );
    let files = || case.job.world.iter().flat_map(|world| &world.files);
    let ([link], [file]) = (hermes, agent) else {
        return false;
    };
    let leads_there = files().any(|prepared| match &prepared.kind {
        FileKind::Symlink(target) if prepared.path == link.path => {
            let (above, _) = link.path.rsplit_once('/').unwrap_or_default();
            *target == file.path || format!("{above}/{target}") == file.path
        }
        _ => false,
    });
    is_patch
        && leads_there
        && [link, file]
            .iter()
            .all(|effect| effect.kind == EffectKind::Modified)
        && (&link.digest, link.size) == (&file.digest, file.size)
}

fn command(step: Option<&Step>) -> Option<&str> {
    match step {
        Some(Step::Call { tool, args, .. }) if tool == "terminal" => args.get("command")?.as_str(),
        _ => None,
    }
}

/// Whether a command plainly makes these two names of one file.
fn links(command: &str, one: &str, other: &str) -> bool {
    let is_called = |path: &str, name: &str| {
        let name = name.trim_start_matches("./");
        path == name || path.ends_with(&format!("/{name}"))
    };
    command.split([';', '&', '|', '\n']).any(|part| {
        let mut words = part.split_whitespace();
        if words.next() != Some("ln") {
            return false;
        }
        let (options, names): (Vec<&str>, Vec<&str>) =
            words.partition(|word| word.starts_with('-'));
        let [of, name] = names[..] else {
            return false;
        };
        let below = format!(
            "{}/{}",
            name.trim_end_matches('/'),
            of.rsplit('/').next().unwrap_or_default()
        );
        let is_it =
            |one, other| is_called(one, of) && (is_called(other, name) || is_called(other, &below));
        options.is_empty() && (is_it(one, other) || is_it(other, one))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::case::Defaults;
    use crate::generate::Specimen;

    #[test]
    fn a_patch_in_the_place_of_a_link_and_of_what_it_leads_to_is_named() {
        let changed = |path: &str, digest: &str| FsEffect {
            digest: digest.to_owned(),
            ..effect(path, EffectKind::Modified, 0o644)
        };
        let (link, file) = (changed("pz/link", "d"), changed("pz/plain.txt", "d"));
        let check = |name: &str, hermes: &[FsEffect], agent: &[FsEffect], expected: bool| {
            let file = Specimen::named(name).unwrap().case_file().unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            let found = is_behind_a_link(&case, 0, (hermes, agent));
            assert_eq!(found, expected, "{name} {hermes:?} {agent:?}");
        };
        let one = std::slice::from_ref;
        for (name, expected) in [
            ("path:patch-update+link-inside-absolute+all", true),
            ("path:patch-add+link-inside+all", true),
            // Replacing text follows links under Hermes as well, and here is no link.
            ("path:replace-inside+link-inside+all", false),
            ("path:write+link-inside+all", false),
            ("path:patch-update+plain+all", false),
        ] {
            check(name, one(&link), one(&file), expected);
        }
        let name = "path:patch-update+link-inside+all";
        let (other, deep) = (
            changed("pz/plain.txt", "e"),
            changed("pz/sub/deep.txt", "d"),
        );
        for (hermes, agent) in [
            (one(&file), one(&link)),
            (one(&link), one(&other)),
            (one(&link), one(&deep)),
            (one(&link), &[]),
            (&[link.clone(), deep.clone()], one(&file)),
            (one(&link), &[file.clone(), deep.clone()]),
        ] {
            check(name, hermes, agent, false);
        }
    }

    fn effect(path: &str, kind: EffectKind, mode: u32) -> FsEffect {
        FsEffect {
            path: format!("/home/u/proj/{path}"),
            kind,
            digest: "d".to_owned(),
            size: 1,
            mode,
        }
    }

    fn is_named(calls: &[(&str, &str)], changed: &[FsEffect], more: &[FsEffect]) -> bool {
        let script: Vec<_> = calls
            .iter()
            .map(|(tool, command)| json!({"call": {"tool": tool, "args": {"command": command}}}))
            .collect();
        let file = json!({
            "id": "x", "user": "deny_all", "script": script,
            "expect": {"agent": "either", "reason": "x"}, "source": {"from": "made"},
        });
        let file = serde_json::from_value(file).unwrap();
        let case = Case::resolve("generated", &Defaults::default(), file);
        is_another_name(&case, calls.len() - 1, changed, more)
    }

    #[test]
    fn the_other_name_of_a_file_that_a_command_linked_is_named() {
        let one = effect("app/one.txt", EffectKind::Metadata, 0o640);
        let hard = effect("hard.txt", EffectKind::Metadata, 0o640);
        let chmod = ("terminal", "chmod 640 app/one.txt");
        let check = |first: &str, expected: bool| {
            let calls = [("terminal", first), chmod];
            let (changed, more) = (std::slice::from_ref(&one), std::slice::from_ref(&hard));
            assert_eq!(is_named(&calls, changed, more), expected, "{first}");
        };
        check("ln app/one.txt hard.txt", true);
        check("ln ./app/one.txt hard.txt && stat -c %h hard.txt", true);
        check("cd app; ln one.txt ../proj/hard.txt", false);
        check("ln -s app/one.txt hard.txt", false);
        check("cp app/one.txt hard.txt", false);
        check("ln app/two.txt hard.txt", false);
        check("ln app/one.txt other.txt", false);
        check("ls", false);
        let below = effect("lib/one.txt", EffectKind::Modified, 0o640);
        let into = [("terminal", "ln app/one.txt lib/"), chmod];
        assert!(is_named(&into, std::slice::from_ref(&one), &[below]));
    }

    #[test]
    fn a_difference_like_it_without_a_link_or_with_more_has_no_name() {
        let one = effect("one.txt", EffectKind::Metadata, 0o640);
        let hard = effect("hard.txt", EffectKind::Metadata, 0o640);
        let (link, chmod) = (
            ("terminal", "ln one.txt hard.txt"),
            ("terminal", "chmod 640 one.txt"),
        );
        let (only, both) = (std::slice::from_ref(&hard), [link, chmod]);
        assert!(is_named(&both, std::slice::from_ref(&one), only));
        // Nothing differs; nothing was changed; not alike; another file as well; gone.
        assert!(!is_named(&both, std::slice::from_ref(&one), &[]));
        assert!(!is_named(&both, &[], only));
        let other = effect("one.txt", EffectKind::Metadata, 0o600);
        assert!(!is_named(&both, &[other], only));
        let two = effect("two.txt", EffectKind::Metadata, 0o640);
        assert!(!is_named(
            &both,
            std::slice::from_ref(&one),
            &[hard.clone(), two]
        ));
        let gone = effect("hard.txt", EffectKind::Deleted, 0o640);
        assert!(!is_named(&both, std::slice::from_ref(&one), &[gone]));
        // Linked afterwards, or by no command; changed by no command.
        for calls in [
            [chmod, link],
            [("write_file", "ln one.txt hard.txt"), chmod],
            [link, ("patch", "chmod 640 one.txt")],
        ] {
            assert!(
                !is_named(&calls, std::slice::from_ref(&one), only),
                "{calls:?}"
            );
        }
    }
}
