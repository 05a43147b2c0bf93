//! The words other programs rely on: codes, verbs, tools, faults, paths.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::collections::BTreeSet;

use hermitcrab_core::{
    authority::{
        Cap, Extension, ExtensionName, Host, HostPattern, Name, NameError, Object, ObjectKind,
        Port, Verb,
    },
    digest::Digest,
    fault::Fault,
    outcome::{Denial, DenialCode},
    path::{PathError, RelPath},
    tool::Tool,
};
use support::path;

fn is_kebab_case(text: &str) -> bool {
    !text.is_empty()
        && text
            .split('-')
            .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
}

#[test]
fn every_denial_code_is_distinct_stable_and_explained() {
    let mut seen = BTreeSet::new();
    for code in DenialCode::ALL {
        assert!(is_kebab_case(code.as_str()), "{code}");
        assert!(seen.insert(code.as_str()), "{code} twice");
        assert_eq!(DenialCode::parse(code.as_str()), Some(*code));
        for text in [code.wording(), code.next_step()] {
            assert!(
                !text.is_empty() && !text.ends_with('.') && !text.starts_with(char::is_uppercase),
                "{code}: {text}"
            );
        }
    }
    assert_eq!(DenialCode::parse("No-Cap"), None);
}

#[test]
fn the_codes_that_other_programs_compare_keep_their_spelling() {
    let codes: Vec<&str> = DenialCode::ALL.iter().map(|code| code.as_str()).collect();
    for code in [
        "no-cap",
        "revoked",
        "expired",
        "exhausted",
        "path-escapes",
        "path-absolute",
        "path-nul",
        "path-empty",
        "path-too-long",
        "outside-root",
        "not-regular-file",
        "sensitive-path",
        "rejected-by-user",
        "unknown-answer",
        "no-answer",
        "changed-since-shown",
        "unknown-tool",
        "session-ended",
        "effect-not-covered",
        "isolation-unknown",
    ] {
        assert!(codes.contains(&code), "{code} is gone");
    }
    assert_eq!(DenialCode::PathEscapes.wording(), "path escapes");
    assert_eq!(
        DenialCode::PathAbsolute.wording(),
        "absolute paths forbidden"
    );
    assert_eq!(DenialCode::OutsideRoot.wording(), "resolved outside root");
}

#[test]
fn a_denial_says_what_was_refused_and_hides_nothing_in_it() {
    let denial = Denial::new(DenialCode::NoCap, "a\u{1b}[2Jb\u{202e}c\n");
    assert_eq!(
        denial.to_string(),
        "no capability held for this: `a\\u{1b}[2Jb\\u{202e}c\\u{a}`"
    );
    assert_eq!(
        Denial::new(DenialCode::SessionEnded, "").to_string(),
        "the session has ended"
    );
    assert_eq!(denial.cause(), None);
    assert_eq!(
        denial.because(DenialCode::Expired).cause(),
        Some(DenialCode::Expired)
    );
}

#[test]
fn a_name_with_a_letter_nobody_sees_does_not_look_like_the_one_without() {
    let shown = |name: &str| RelPath::parse(name.as_bytes()).unwrap().to_string();
    let unseen = "\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180b}\u{200b}\u{202e}\u{2066}\u{2800}\u{3164}\
                  \u{fe0f}\u{feff}\u{ffa0}\u{fff0}\u{1bca0}\u{1d173}\u{e0041}\u{a0}\u{2003}\u{3000}";
    for letter in unseen.chars() {
        let name = format!("Make{letter}file");
        let expected = format!("Make\\u{{{:x}}}file", u32::from(letter));
        assert_eq!(shown(&name), expected);
    }
    for name in [
        "Make file",
        "gr\u{fc}n",
        "\u{65e5}\u{672c}",
        "\u{1f600}",
        "na\u{301}me",
    ] {
        assert_eq!(shown(name), name);
    }
}

#[test]
fn there_are_fifteen_verbs_with_one_kind_of_object_each() {
    let spellings: BTreeSet<&str> = Verb::ALL.iter().map(|verb| verb.as_str()).collect();
    let expected = [
        "agent.spawn",
        "config.change",
        "fs.create",
        "fs.delete",
        "fs.list",
        "fs.modify",
        "fs.mount",
        "fs.read",
        "model.send",
        "net.connect",
        "net.listen",
        "proc.exec",
        "secret.use",
        "session.read",
        "user.ask",
    ];
    assert_eq!(spellings.into_iter().collect::<Vec<_>>(), expected);
    for verb in Verb::ALL {
        assert_eq!(Verb::parse(verb.as_str()), Some(verb));
        assert!(!verb.sentence().is_empty());
        assert_eq!(
            Cap::new(verb, Object::Session).is_ok(),
            verb.object_kind() == ObjectKind::Session,
            "{verb}"
        );
    }
    assert_eq!(Verb::parse("fs.*"), None);
    assert_eq!(Verb::parse("FS.READ"), None);
    assert!(
        Verb::FILES
            .iter()
            .all(|verb| verb.object_kind() == ObjectKind::Dir && *verb != Verb::FsMount)
    );
}

#[test]
fn a_question_calls_each_tool_by_its_name_but_for_that_of_a_plan() {
    for tool in Tool::ALL {
        let expected = match tool {
            Tool::Directory => "a plan",
            _ => tool.as_str(),
        };
        assert_eq!(tool.in_words(), expected);
    }
}

#[test]
fn tools_are_known_by_their_exact_names_and_the_inner_one_is_not_offered() {
    for name in [
        "terminal",
        "read_file",
        "write_file",
        "patch",
        "search_files",
        "process",
        "execute_code",
        "clarify",
    ] {
        assert_eq!(Tool::offered(name).map(Tool::as_str), Some(name));
    }
    for name in [
        "directory",
        "undo",
        "Terminal",
        "terminal ",
        "",
        "converse",
        "t\u{435}rminal",
    ] {
        assert_eq!(Tool::offered(name), None, "{name:?}");
    }
}

#[test]
fn to_list_and_to_read_is_to_look_and_nothing_else_is() {
    let looks = Verb::ALL.into_iter().filter(|verb| verb.only_looks());
    assert_eq!(looks.collect::<Vec<_>>(), [Verb::FsList, Verb::FsRead]);
}

#[test]
fn no_tool_that_only_looks_can_change_anything() {
    for tool in [Tool::ReadFile, Tool::SearchFiles] {
        assert!(
            tool.verbs()
                .iter()
                .chain(tool.effect_verbs())
                .all(|verb| matches!(verb, Verb::FsRead | Verb::FsList)),
            "{tool}"
        );
    }
    assert!(
        Tool::ALL
            .iter()
            .all(|tool| !tool.verbs().contains(&Verb::ConfigChange))
    );
}

#[test]
fn at_least_sixteen_faults_are_named() {
    assert!(Fault::ALL.len() >= 16);
    let names: BTreeSet<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
    assert_eq!(names.len(), Fault::ALL.len());
}

#[test]
fn paths_are_read_by_name_and_never_leave() {
    let cases: [(&[u8], Result<&str, PathError>); 27] = [
        (b"a", Ok("a")),
        (b"a/b", Ok("a/b")),
        (b".", Ok(".")),
        (b"./a", Ok("a")),
        (b"a//b", Ok("a/b")),
        (b"a/./b", Ok("a/b")),
        (b"...", Ok("...")),
        (b"..a", Ok("..a")),
        (b"a..", Ok("a..")),
        (b"~", Ok("~")),
        (b"-rf", Ok("-rf")),
        (b" ", Ok(" ")),
        (b"a\\..\\b", Ok("a\\\\..\\\\b")),
        (b"a\nb", Ok("a\\u{a}b")),
        (b"\xff", Ok("\\xff")),
        ("caf\u{e9}".as_bytes(), Ok("caf\u{e9}")),
        (b"", Err(PathError::Empty)),
        (b"/etc/passwd", Err(PathError::Absolute)),
        (b"//a", Err(PathError::Absolute)),
        (b"..", Err(PathError::Escapes)),
        (b"../../../etc/passwd", Err(PathError::Escapes)),
        (b"a/../b", Err(PathError::Escapes)),
        (b"a/..", Err(PathError::Escapes)),
        (b"a\0b", Err(PathError::Nul)),
        (b"a/", Err(PathError::TrailingSlash)),
        (b"a/.", Err(PathError::TrailingSlash)),
        (b"../a\0", Err(PathError::Nul)),
    ];
    for (bytes, expected) in cases {
        let read = RelPath::parse(bytes).map(|path| path.to_string());
        assert_eq!(read, expected.map(String::from), "{}", bytes.escape_ascii());
    }
    assert_eq!(RelPath::parse_dir(b"a/").unwrap(), path("a"));
    assert_eq!(RelPath::parse(b"./").unwrap(), RelPath::root());
}

#[test]
fn composed_and_decomposed_letters_and_cases_are_different_names() {
    assert_ne!(path("caf\u{e9}"), path("cafe\u{301}"));
    assert_ne!(path("A"), path("a"));
}

#[test]
fn a_child_is_one_plain_name() {
    let base = path("a");
    assert_eq!(base.child(b"b").unwrap(), path("a/b"));
    for name in [&b""[..], b".", b"..", b"b/c", b"b\0"] {
        assert!(base.child(name).is_err(), "{}", name.escape_ascii());
    }
    assert_eq!(path("a/b").parent(), Some(base));
    assert_eq!(path("a").parent(), Some(RelPath::root()));
    assert_eq!(RelPath::root().parent(), None);
}

#[test]
fn names_are_printable_ascii_so_that_look_alikes_do_not_pass() {
    assert_eq!(Name::parse(""), Err(NameError::Empty));
    assert_eq!(Name::parse("r\u{043c}"), Err(NameError::Unprintable));
    assert_eq!(Name::parse("a b"), Err(NameError::Unprintable));
    assert_eq!(Name::parse(&"x".repeat(256)), Err(NameError::TooLong));
    assert_eq!(
        Name::parse_caseless("EXAMPLE.org").unwrap().as_str(),
        "example.org"
    );
}

#[test]
fn a_host_cap_covers_whole_labels_only() {
    let host = |name: HostPattern, port| Object::Host(Host { name, port });
    let exact = |name: &str| HostPattern::Exact(Name::parse(name).unwrap());
    let below = |name: &str| HostPattern::Subdomains(Name::parse(name).unwrap());
    let held = host(below("example.org"), Port::Only(443));
    for (name, port, covered) in [
        (exact("www.example.org"), Port::Only(443), true),
        (exact("a.b.example.org"), Port::Only(443), true),
        (below("b.example.org"), Port::Only(443), true),
        (exact("example.org"), Port::Only(443), false),
        (exact("badexample.org"), Port::Only(443), false),
        (exact(".example.org"), Port::Only(443), false),
        (exact("www.example.org"), Port::Only(80), false),
        (exact("www.example.org"), Port::Any, false),
        (exact("www.example.org.evil.com"), Port::Only(443), false),
    ] {
        assert_eq!(
            held.covers(&host(name.clone(), port)),
            covered,
            "{name:?} {port:?}"
        );
    }
}

#[test]
fn a_digest_is_shown_in_full() {
    assert_eq!(Digest::from_bytes([0xab; 32]).to_string(), "ab".repeat(32));
}

#[test]
fn a_vendors_verb_covers_itself_on_its_thing_and_no_other() {
    let on = |name: &str, on: Option<&str>| {
        Object::Extension(Extension {
            name: ExtensionName::parse(name).unwrap(),
            on: on.map(|on| Name::parse(on).unwrap()),
        })
    };
    let all = on("x.acme.deploy", None);
    let one = on("x.acme.deploy", Some("staging"));
    for (held, asked, covered) in [
        (&all, &all, true),
        (&all, &one, true),
        (&one, &one, true),
        (&one, &all, false),
        (&one, &on("x.acme.deploy", Some("production")), false),
        (&all, &on("x.acme.remove", None), false),
        (&all, &on("x.other.deploy", Some("staging")), false),
    ] {
        assert_eq!(held.covers(asked), covered, "{held:?} {asked:?}");
    }
}

#[test]
fn a_vendors_verb_is_x_its_vendor_and_its_name_in_small_letters() {
    use hermitcrab_core::authority::{ExtensionError, ExtensionName};
    for text in ["x.acme.deploy", "x.a.b", "x.acme.deploy-2.now", "x.a1.b-c"] {
        assert_eq!(ExtensionName::parse(text).unwrap().as_str(), text);
    }
    for text in [
        "x",
        "x.acme",
        "y.acme.deploy",
        "acme.deploy.now",
        "x.Acme.deploy",
        "x.acme.Deploy",
        "x.acme.deplOy",
        "x..deploy",
        "x.acme.",
        "x.1a.b",
        "x.-a.b",
        "x.a.b_c",
        "x.a.b+c",
        "x.a.9",
    ] {
        assert_eq!(
            ExtensionName::parse(text),
            Err(ExtensionError::Form),
            "{text}"
        );
    }
    let empty = Err(ExtensionError::Name(NameError::Empty));
    assert_eq!(ExtensionName::parse(""), empty);
}

#[test]
fn a_name_may_be_so_long_and_no_longer() {
    use hermitcrab_core::limits::NAME_BYTES_MAX;
    let name = |bytes: usize| Name::parse(&"x".repeat(bytes)).map(drop);
    assert_eq!(name(NAME_BYTES_MAX), Ok(()));
    assert_eq!(name(NAME_BYTES_MAX + 1), Err(NameError::TooLong));
}

#[test]
fn what_a_tool_gives_back_is_from_a_file_a_command_a_network_or_nobody_else() {
    use hermitcrab_core::label::Source;
    for (tool, source) in [
        (Tool::ReadFile, Some(Source::File)),
        (Tool::Patch, Some(Source::File)),
        (Tool::Terminal, Some(Source::Command)),
        (Tool::Clarify, Some(Source::User)),
        (Tool::External, Some(Source::Network)),
        (Tool::WriteFile, None),
        (Tool::DelegateTask, None),
    ] {
        assert_eq!(tool.brings(), source, "{tool}");
    }
}

#[test]
fn a_path_may_be_so_long_as_it_was_given_not_only_as_it_is_kept() {
    use hermitcrab_core::limits::PATH_BYTES_MAX;
    // Slashes that count for nothing once it is read.
    let slashes = |bytes: usize| format!("a{}b", "/".repeat(bytes - 2));
    let read = |bytes: usize| RelPath::parse(slashes(bytes).as_bytes());
    assert_eq!(read(PATH_BYTES_MAX), Ok(path("a/b")));
    for more in [1, 2] {
        assert_eq!(read(PATH_BYTES_MAX + more), Err(PathError::TooLong));
    }
}
