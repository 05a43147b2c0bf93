//! Differences in what is told of a call that both made.

use bisim_world::protocol::{EffectKind, FileKind, FsEffect, Meanwhile, RawTrace, Step};
use hermitcrab_sandbox::dircap::TEMPORARY_PREFIX;
use serde_json::Value;

use super::{begun, linked, ordinary, running, unvouched, view, yes};
use crate::canon;
use crate::case::Case;
use crate::holdings::below;
use crate::relation::StepJudgement;
use crate::result::CaseResult;

/// A search that begins with a dot.
pub(super) const BELOW_A_DOT: &str = "found-below-a-dot";

/// What is told of who wrote a file in a session that is over.
const OTHERS_SESSION: &str = "a-session-knows-of-no-other";

/// The rule that names a difference in what is told.
pub(super) fn rule(case: &Case, result: &CaseResult, step: &StepJudgement) -> Option<&'static str> {
    let at = step.step;
    let (hermes, agent) = (result.hermes.as_ref()?, result.agent.as_ref()?);
    let (more, other) = effects(hermes, agent, at);
    if unvouched::is_in(case, (hermes, agent), &other, at) {
        return Some("nobody-vouches-for-what-was-read");
    }
    if let Some(cut) = case.job.script.get(at).and_then(Step::cut) {
        let is_write =
            matches!(&cut.step, Step::Call { tool, .. } if FILE_TOOLS.contains(&tool.as_str()));
        // Beside it nothing of the call, or, killed once the two had changed places, all of it.
        let (strays, rest): (Vec<_>, Vec<_>) = delta(agent, at).into_iter().partition(is_stray);
        let strays = !strays.is_empty() && (rest.is_empty() || rest == delta(hermes, at));
        return (is_write && strays).then_some("left-beside-a-write");
    }
    let (told, heard) = (told(hermes, at)?, told(agent, at)?);
    let same = canon::same_value(&told, &heard);
    if same && linked::is_behind_a_link(case, at, (&more, &other)) {
        return Some("a-patch-changes-what-a-link-leads-to");
    }
    if !other.is_empty() {
        return None;
    }
    if more.is_empty() && running::is_anothers(case, at, &heard) {
        return Some("runs-for-another");
    }
    let seen = ordinary::Seen {
        told: &told,
        heard: &heard,
        more: &more,
    };
    if let Some(rule) = ordinary::rule(case, at, &seen) {
        return Some(rule);
    }
    if view::is_empty(case, Some(agent), step, &heard) {
        return Some("view-of-what-is-held");
    }
    let changed = delta(agent, at);
    if same && linked::is_another_name(case, at, &changed, &more) {
        return Some("another-name-of-what-was-changed");
    }
    let same_without = |field: &str| {
        let mut rest = told.clone();
        rest.as_object_mut()
            .and_then(|rest| rest.shift_remove(field))
            .is_some_and(|_| canon::same_value(&rest, &heard))
    };
    // A session that begins has read nothing yet, whatever one before it read, and one
    // that was killed in a read does not count it.
    let is_unchanged = told.get("status").and_then(Value::as_str) == Some("unchanged");
    let is_content = is_unchanged && heard.get("content").is_some();
    let is_warned = is_told_of_repetition(&told) && same_without("_warning");
    if (is_content || is_warned) && begins_before(case, at) {
        return more.is_empty().then_some("told-in-another-session");
    }
    // Who wrote a file in a session that is over is no sibling of who writes it now.
    if is_told_of_a_sibling(&told) && same_without("_warning") && ended_before(case, at) {
        return more.is_empty().then_some(OTHERS_SESSION);
    }
    // Of a name below a plain file Hermes says what else is "in" that file.
    let is_in_a_file = || is_below_a_file(case, at) || is_alike_in_itself(case, at, &told);
    if same_without("similar_files") && is_in_a_file() {
        return more.is_empty().then_some("names-below-a-file");
    }
    // Asked for the names below a link Hermes' `find` looks at the link itself, where its
    // ripgrep and the agent look behind it; the worlds have no ripgrep.
    let count = |value: &Value| value.get("total_count").and_then(Value::as_u64);
    if count(&told) == Some(0) && count(&heard) > Some(0) && lists_below_a_link(case, at) {
        return more.is_empty().then_some("names-below-a-link");
    }
    // A start with a dot is a hidden directory to Hermes' `grep`, and to neither of the others;
    // where counts are asked for, files without a match are found as well.
    let is_nothing = told.as_object().is_some_and(|told| told.len() == 1);
    if is_nothing && count(&told) == Some(0) && begun::below_a_dot(case, at) {
        return more.is_empty().then_some(BELOW_A_DOT);
    }
    yes::rule(
        case,
        (hermes, agent),
        at,
        &yes::Seen {
            told: &told,
            heard: &heard,
            more: &more,
        },
    )
}

/// Tools that put one file in place without the journal.
const FILE_TOOLS: [&str; 2] = ["write_file", "patch"];

/// How many letters come after the prefix of a temporary name.
const TEMPORARY_LETTERS: usize = 24;

/// Whether this is what stands beside a file whose write was cut off: what was to be put
/// there, or what had been there.
fn is_stray(effect: &FsEffect) -> bool {
    let name = effect.path.rsplit('/').next().unwrap_or_default();
    let is_temporary = name.strip_prefix(TEMPORARY_PREFIX).is_some_and(|letters| {
        letters.len() == TEMPORARY_LETTERS && letters.bytes().all(|l| l.is_ascii_hexdigit())
    });
    effect.kind == EffectKind::Created && is_temporary
}

/// What a call was told, without the hint behind a page that is not the last.
fn told(trace: &RawTrace, at: usize) -> Option<Value> {
    let text = &trace.steps.get(at)?.text;
    let text = text
        .split_once("\n\n[Hint: ")
        .map_or(&**text, |(text, _)| text);
    Some(canon::text_value(text)).filter(Value::is_object)
}

/// What the step changed under one subject only: under Hermes, under the agent.
fn effects(hermes: &RawTrace, agent: &RawTrace, at: usize) -> (Vec<FsEffect>, Vec<FsEffect>) {
    let (hermes, agent) = (delta(hermes, at), delta(agent, at));
    let without = |one: &[FsEffect], other: &[FsEffect]| {
        let only = one.iter().filter(|effect| !other.contains(effect));
        only.cloned().collect()
    };
    (without(&hermes, &agent), without(&agent, &hermes))
}

/// What a step changed.
fn delta(trace: &RawTrace, at: usize) -> Vec<FsEffect> {
    let effects = |at: usize| trace.steps.get(at).map_or(&[][..], |step| &step.effects);
    let before = at.checked_sub(1).map_or(&[][..], effects);
    canon::delta(before, effects(at))
}

/// Whether a session begins in front of this step: one ended, or its program did.
fn begins_before(case: &Case, at: usize) -> bool {
    let mut before = case.job.script.iter().take(at);
    before
        .any(|step| matches!(step, Step::EndSession {} | Step::Restart(_)) || step.cut().is_some())
        || ends_while_asked(case)
}

/// Whether a session ended before this step, and its program went on.
fn ended_before(case: &Case, at: usize) -> bool {
    let mut before = case.job.script.iter().take(at);
    before.any(|step| matches!(step, Step::EndSession {})) || ends_while_asked(case)
}

/// Whether the user ends a session while they are asked.
fn ends_while_asked(case: &Case) -> bool {
    let mut doings = case.job.user.doings();
    doings.any(|doing| matches!(doing, Meanwhile::EndSession {}))
}

/// Whether a change is told, besides what it is told, that another agent wrote the file.
fn is_told_of_a_sibling(told: &Value) -> bool {
    told.get("_warning")
        .and_then(Value::as_str)
        .is_some_and(|warning| warning.contains("was modified by sibling subagent '"))
}

/// Whether a read is told, besides what it is told, that it was one of several in a row.
fn is_told_of_repetition(told: &Value) -> bool {
    told.get("_warning")
        .and_then(Value::as_str)
        .is_some_and(|warning| warning.starts_with("You have read this exact file region"))
}

/// Whether the call asks for the names below a path that is itself a prepared link into
/// the workspace; a slash behind it leads anybody to where it leads.
fn lists_below_a_link(case: &Case, at: usize) -> bool {
    let Some(Step::Call { tool, args, .. }) = case.job.script.get(at) else {
        return false;
    };
    let field = |name: &str| args.get(name).and_then(Value::as_str);
    let path = field("path").unwrap_or_default();
    if tool != "search_files" || field("target") != Some("files") || path.ends_with(['/', '.']) {
        return false;
    }
    let steps = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let path = steps.collect::<Vec<_>>().join("/");
    let mut files = case.job.world.iter().flat_map(|world| &world.files);
    files.any(|file| {
        let leads_in = match &file.kind {
            FileKind::Symlink(target) if target.starts_with('/') => below(target, case.cwd()),
            FileKind::Symlink(target) => !target.contains(".."),
            FileKind::Dir(_)
            | FileKind::Text(_)
            | FileKind::Base64(_)
            | FileKind::Hardlink(_)
            | FileKind::Fifo(_)
            | FileKind::Sparse(_)
            | FileKind::Mount(_)
            | FileKind::Room(_)
            | FileKind::ReadOnly(_) => false,
        };
        leads_in && file.path.ends_with(&format!("/{path}"))
    })
}

/// Whether the call names something below a plain file of the case.
fn is_below_a_file(case: &Case, at: usize) -> bool {
    let Some(Step::Call { args, .. }) = case.job.script.get(at) else {
        return false;
    };
    let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
    let mut files = case.job.world.iter().flat_map(|world| &world.files);
    files.any(|file| {
        let is_plain = matches!(file.kind, FileKind::Text(_) | FileKind::Base64(_));
        let named = file.path.strip_prefix(case.cwd()).unwrap_or(&file.path);
        let named = named.trim_start_matches('/');
        let steps = path.split('/').filter(|name| !matches!(*name, "" | "."));
        let path = steps.collect::<Vec<_>>().join("/");
        is_plain && path.contains(&format!("{named}/"))
    })
}

/// Whether the path has a slash behind it and all that Hermes finds like it is the path
/// itself "in" it, which is what it says where no directory has the name.
fn is_alike_in_itself(case: &Case, at: usize, told: &Value) -> bool {
    let Some(Step::Call { args, .. }) = case.job.script.get(at) else {
        return false;
    };
    let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
    let alike = told.get("similar_files").and_then(Value::as_array);
    path.strip_suffix('/')
        .zip(alike)
        .is_some_and(|(file, alike)| {
            let itself = format!("{file}/{file}");
            !alike.is_empty() && alike.iter().all(|one| one.as_str() == Some(&itself))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{judgement, result, trace};
    use super::*;
    use crate::case::Defaults;
    use crate::generate::Specimen;

    fn check(
        name: &str,
        (told, more): (Value, &[&str]),
        (heard, other): (Value, &[&str]),
        expected: Option<&str>,
    ) {
        let file = Specimen::named(name).unwrap().case_file().unwrap();
        let case = Case::resolve("generated", &Defaults::default(), file);
        let steps = case.job.script.len();
        let step = judgement(steps - 1);
        let (hermes, agent) = (trace(steps, &told, more), trace(steps, &heard, other));
        let result = result(&case, &step, hermes, agent);
        assert_eq!(rule(&case, &result, &step), expected, "{name} {told}");
    }

    #[test]
    fn who_wrote_a_file_in_a_session_that_is_over_is_no_sibling() {
        let failed = json!({"error": "Could not find a match"});
        let mut warned = failed.clone();
        warned["_warning"] = "/w/b was modified by sibling subagent 'case-1' but".into();
        let mut other = failed.clone();
        other["_warning"] = "/w/b was not read by this agent.".into();
        for (name, told, expected) in [
            ("sequence:3+c4.0+e+c4.2", &warned, Some(OTHERS_SESSION)),
            ("sequence:3+c4.0+c4.2", &warned, None),
            ("sequence:3+c4.0+e+c4.2", &other, None),
        ] {
            check(name, (told.clone(), &[]), (failed.clone(), &[]), expected);
        }
        let else_failed = json!({"error": "no"});
        check(
            "sequence:3+c4.0+e+c4.2",
            (warned, &[]),
            (else_failed, &[]),
            None,
        );
    }

    #[test]
    fn what_was_read_in_another_session_is_told_again() {
        let unchanged = json!({"status": "unchanged"});
        let content = json!({"content": "1|one"});
        for (name, expected) in [
            ("sequence:1+c0.0+e+c0.0", Some("told-in-another-session")),
            ("sequence:1+c0.0+x0+c0.0", Some("told-in-another-session")),
            ("sequence:1+k0.22+c0.0", Some("told-in-another-session")),
            ("sequence:1+c0.0+c0.0", None),
        ] {
            check(
                name,
                (unchanged.clone(), &[]),
                (content.clone(), &[]),
                expected,
            );
        }
        let warning = "You have read this exact file region 3 times consecutively.";
        let warned = json!({"error": "File not found: a", "_warning": warning});
        let plain = json!({"error": "File not found: a"});
        let other = json!({"error": "File not found: a", "_warning": "Another one."});
        let killed = "sequence:1+k0.22+c0.2+c0.2";
        let named = Some("told-in-another-session");
        for (name, told, heard, expected) in [
            (killed, &warned, &plain, named),
            (killed, &warned, &json!({"error": "no"}), None),
            (killed, &other, &plain, None),
            ("sequence:1+c0.2+c0.2+c0.2", &warned, &plain, None),
        ] {
            check(name, (told.clone(), &[]), (heard.clone(), &[]), expected);
        }
    }

    #[test]
    fn only_what_has_a_temporary_name_is_a_stray_of_a_write() {
        let made = |path: &str, digest: &str| FsEffect {
            path: format!("/home/u/proj/cz/{path}"),
            kind: EffectKind::Created,
            digest: digest.to_owned(),
            size: digest.len() as u64,
            mode: 0o700,
        };
        let temporary = ".hermitcrab-0284ae5879b981516e2deb2c";
        for (effect, expected) in [
            (made(temporary, ""), true),
            (made(temporary, "ab"), true),
            (made("deep", ""), false),
            (made("deep/new.txt", "a"), false),
            (made(".hermitcrab-0284", ""), false),
            (made(".hermitcrab-0284ae5879b981516e2deb2x", ""), false),
            (
                FsEffect {
                    kind: EffectKind::Modified,
                    ..made(temporary, "ab")
                },
                false,
            ),
        ] {
            assert_eq!(is_stray(&effect), expected, "{effect:?}");
        }
    }

    #[test]
    fn a_write_that_was_cut_off_is_named_and_a_command_never() {
        let stray = "/home/u/proj/cz/.hermitcrab-0284ae5879b981516e2deb2c";
        for (name, agent, expected) in [
            ("crash:write-over~30", stray, Some("left-beside-a-write")),
            ("crash:replace~30", stray, Some("left-beside-a-write")),
            ("crash:write-over~30", "/home/u/proj/cz/one.txt", None),
            ("crash:command-many~30", stray, None),
            ("crash:plan-create~30", stray, None),
        ] {
            let file = Specimen::named(name).unwrap().case_file().unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            let mut agent = trace(1, &Value::Null, &[agent]);
            agent.steps[0].effects[0].kind = EffectKind::Created;
            let hermes = trace(1, &Value::Null, &["/home/u/proj/cz/two.txt"]);
            let step = judgement(0);
            let result = result(&case, &step, hermes, agent);
            assert_eq!(rule(&case, &result, &step), expected, "{name}");
        }
    }

    #[test]
    fn beside_a_write_that_was_cut_off_stands_all_of_it_or_nothing() {
        let effect = |path: &str, kind, digest: &str| FsEffect {
            path: format!("/home/u/proj/cz/{path}"),
            kind,
            digest: digest.to_owned(),
            size: digest.len() as u64,
            mode: 0o755,
        };
        let check = |name: &str, whole: &[FsEffect], left: &[&FsEffect], expected: bool| {
            let file = Specimen::named(name).unwrap().case_file().unwrap();
            let case = Case::resolve("generated", &Defaults::default(), file);
            let [mut hermes, mut agent] = [0, 1].map(|_| trace(1, &Value::Null, &[]));
            hermes.steps[0].effects = whole.to_vec();
            agent.steps[0].effects = left.iter().copied().cloned().collect();
            let step = judgement(0);
            let result = result(&case, &step, hermes, agent);
            let expected = expected.then_some("left-beside-a-write");
            assert_eq!(rule(&case, &result, &step), expected, "{left:?}");
        };
        let temporary = ".hermitcrab-0284ae5879b981516e2deb2c";
        let stray = &effect(temporary, EffectKind::Created, "old");
        let whole = &effect("one.txt", EffectKind::Modified, "new");
        let other = &effect("one.txt", EffectKind::Modified, "half");
        for (left, expected) in [
            (&[stray, whole][..], true),
            (&[stray], true),
            (&[stray, other], false),
            (&[stray, whole, other], false),
            (&[whole], false),
        ] {
            check(
                "crash:write-over~29",
                std::slice::from_ref(whole),
                left,
                expected,
            );
        }
        // A directory comes with its file.
        let deep = &effect("deep", EffectKind::Created, "");
        let new = &effect("deep/new.txt", EffectKind::Created, "ab");
        let part = &effect("deep/new.txt", EffectKind::Created, "a");
        for left in [&[deep][..], &[deep, part], &[deep, new], &[]] {
            let whole = [deep.clone(), new.clone()];
            check("crash:write-new~29", &whole, left, false);
        }
    }

    #[test]
    fn a_file_with_a_slash_behind_it_is_alike_only_to_itself() {
        let name = "path:read-part+case-twin+all+slash-at-end~24919";
        let case = Case::resolve(
            "generated",
            &Defaults::default(),
            Specimen::named(name).unwrap().case_file().unwrap(),
        );
        let alike = |alike: Value| is_alike_in_itself(&case, 0, &json!({"similar_files": alike}));
        assert!(alike(json!(["pz/Plain.TXT/pz/Plain.TXT"])));
        assert!(!alike(json!(["pz/plain.txt"])));
        assert!(!alike(json!(["pz/Plain.TXT/pz/Plain.TXT", "pz/plain.txt"])));
        assert!(!alike(json!([])));
    }

    #[test]
    fn names_behind_a_link_are_named_where_hermes_has_none_and_the_path_is_the_link() {
        let (none, some) = (json!({"total_count": 0}), json!({"total_count": 2}));
        let named = Some("names-below-a-link");
        for (name, told, heard, expected) in [
            (
                "path:search-names+short-chain-inside+all",
                &none,
                &some,
                named,
            ),
            (
                "path:search-names+directory-outside+all",
                &none,
                &some,
                None,
            ),
            (
                "path:search-names+short-chain-inside+all",
                &some,
                &none,
                None,
            ),
            (
                "path:search-names+short-chain-inside+all",
                &some,
                &some,
                None,
            ),
            (
                "path:search-content+short-chain-inside+all",
                &none,
                &some,
                None,
            ),
            ("path:search-names+plain+all", &none, &some, None),
        ] {
            check(name, (told.clone(), &[]), (heard.clone(), &[]), expected);
        }
    }

    #[test]
    fn what_was_found_below_a_dot_is_named_with_a_hint_behind_it_and_without() {
        let none = r#"{"total_count": 0}"#;
        let some = r#"{"total_count": 2, "truncated": true}"#;
        let counts = r#"{"total_count": 0, "counts": {"./a": 0}}"#;
        let shut = r#"{"total_count": 0, "error": "x"}"#;
        let paged = format!("{some}\n\n[Hint: Results truncated. Use offset=1 to see more.]");
        for (path, told, heard, expected) in [
            (".", none, some, Some("found-below-a-dot")),
            (".", none, &paged, Some("found-below-a-dot")),
            (".", none, counts, Some("found-below-a-dot")),
            (".", some, &paged, None),
            (".", shut, some, None),
            ("src", none, &paged, None),
        ] {
            let call = json!({"tool": "search_files", "args": {"pattern": "x", "path": path}});
            let case = json!({"id": "one", "flags": [], "script": [{"call": call}]});
            let case = serde_json::from_value(case).unwrap();
            let case = Case::resolve("generated", &Defaults::default(), case);
            let saying = |text: &str| {
                let mut trace = trace(1, &json!({}), &[]);
                trace.steps[0].text = text.to_owned();
                trace
            };
            let step = judgement(0);
            let result = result(&case, &step, saying(told), saying(heard));
            assert_eq!(rule(&case, &result, &step), expected, "{path} {heard}");
        }
    }

    #[test]
    fn a_suggestion_is_named_only_below_a_plain_file() {
        let told = json!({"error": "x", "similar_files": ["a"]});
        let heard = json!({"error": "x"});
        for (name, expected) in [
            ("path:read+below-a-file+all", Some("names-below-a-file")),
            ("path:read+fresh+all", None),
        ] {
            check(name, (told.clone(), &[]), (heard.clone(), &[]), expected);
        }
    }
}
