//! What is printed of the core's values: people read it, and a ledger holds it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    approval::RememberedId,
    audit::ChainError,
    authority::{
        Authority, Cap, Extension, ExtensionError, ExtensionName, Host, HostPattern, Name,
        NameError, Object, ObjectKind, Port, Program, Reversibility, Verb,
    },
    digest::Digest,
    edit::{GateDenial, Proposal, ProposalError},
    grant::{AgentId, UpstreamId, Uses},
    outcome::{Denial, DenialCode},
    path::{PathError, RelPath},
    rules::RuleError,
    session::Asking,
    standing::{Audience, BootId, Due, PortableAuthority, PortableCap, PortableObject, StandingId},
    time::{Instant, Millis},
};
use support::{Bench, Came, SESSION, path};

fn check(value: impl std::fmt::Display, expected: &str) {
    assert_eq!(value.to_string(), expected);
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn extension(on: Option<&str>) -> Extension {
    Extension {
        name: ExtensionName::parse("x.acme.deploy").unwrap(),
        on: on.map(name),
    }
}

#[test]
fn an_object_is_printed_so_that_no_two_look_alike() {
    let bench = Bench::new(Asking::Prompt);
    let dir = |below: RelPath| Object::tree(bench.dir, below);
    check(bench.dir, "dir0");
    check(dir(RelPath::root()), "dir0:.");
    check(dir(path("a/b")), "dir0:a/b");
    check(Object::alone(bench.dir, path("a/b")), "only dir0:a/b");
    check(Object::alone(bench.dir, RelPath::root()), "only dir0:.");
    check(
        Object::Program(Program::AnyInView),
        "any program in the view",
    );
    check(
        Object::Program(Program::InView(name("make"))),
        "make in the view",
    );
    check(
        Object::Program(Program::OnHost(name("make"))),
        "make on the host",
    );
    let host = |pattern, port| {
        Object::Host(Host {
            name: pattern,
            port,
        })
    };
    check(
        host(HostPattern::Exact(name("a.org")), Port::Any),
        "a.org:*",
    );
    check(
        host(HostPattern::Subdomains(name("a.org")), Port::Only(443)),
        "*.a.org:443",
    );
    check(Object::Secret(name("token")), "secret token");
    check(Object::Model(name("tiny")), "model tiny");
    check(Object::Session, "the session");
    check(
        Object::Extension(extension(Some("web"))),
        "x.acme.deploy web",
    );
    check(Object::Extension(extension(None)), "x.acme.deploy *");
}

#[test]
fn a_capability_is_its_verb_and_its_object_and_a_vendors_verb_goes_by_its_own_name() {
    let cap = |verb, object| Cap::new(verb, object).unwrap();
    check(
        cap(Verb::SecretUse, Object::Secret(name("token"))),
        "secret.use secret token",
    );
    check(
        cap(Verb::Extension, Object::Extension(extension(Some("web")))),
        "x.acme.deploy web",
    );
    let wrong = Cap::new(Verb::FsRead, Object::Session).unwrap_err();
    check(
        wrong,
        "`fs.read` does not act on a session; it needs a directory",
    );
    let kinds = [
        (ObjectKind::Dir, "directory"),
        (ObjectKind::Program, "program"),
        (ObjectKind::Host, "host"),
        (ObjectKind::Secret, "secret"),
        (ObjectKind::Model, "model"),
        (ObjectKind::Session, "session"),
        (ObjectKind::Extension, "vendor's object"),
    ];
    for (kind, word) in kinds {
        assert_eq!(kind.as_str(), word);
    }
}

#[test]
fn what_is_asked_for_is_a_name_and_what_is_held_a_tree_unless_it_is_said() {
    let bench = Bench::new(Asking::Prompt);
    let (name, tree) = (Object::alone, Object::tree);
    for (object, held, asked) in [
        (name(bench.dir, path("a")), "only dir0:a", "dir0:a"),
        (tree(bench.dir, path("a")), "dir0:a", "all of dir0:a"),
        (
            Object::tree(bench.dir, RelPath::root()),
            "dir0:.",
            "all of dir0:.",
        ),
    ] {
        let cap = Cap::new(Verb::FsRead, object.clone()).unwrap();
        check(&cap, &format!("fs.read {held}"));
        check(cap.asked(), &format!("fs.read {asked}"));
        let digest = Digest::from_bytes([0; 32]);
        let action = Action::new(Verb::FsRead, object, digest).unwrap();
        check(&action, &format!("{digest} fs.read {asked}"));
    }
    let portable = |object| PortableCap::new(Verb::FsRead, object).unwrap();
    for (cap, held, asked) in [
        (portable(PortableObject::alone(path("w"))), "only /w", "/w"),
        (portable(PortableObject::tree(path("w"))), "/w", "all of /w"),
        (
            portable(PortableObject::tree(RelPath::root())),
            "/",
            "all of /",
        ),
    ] {
        check(&cap, &format!("fs.read {held}"));
        check(cap.asked(), &format!("fs.read {asked}"));
    }
    let secret = Cap::new(Verb::SecretUse, Object::Secret(self::name("token"))).unwrap();
    check(secret.asked(), "secret.use secret token");
    let vendors = Cap::new(Verb::Extension, Object::Extension(extension(None))).unwrap();
    check(vendors.asked(), "x.acme.deploy *");
    let secret = PortableObject::Secret(self::name("token"));
    let secret = PortableCap::new(Verb::SecretUse, secret).unwrap();
    check(secret.asked(), "secret.use secret token");
    let vendors = PortableObject::Extension(extension(None));
    let vendors = PortableCap::new(Verb::Extension, vendors).unwrap();
    check(vendors.asked(), "x.acme.deploy *");
}

#[test]
fn numbers_are_printed_with_what_they_number() {
    let mut bench = Bench::new(Asking::Prompt);
    let all = bench.on_files(&Verb::FILES, ".");
    let grant = bench.grant(all, Uses::Uncounted, SESSION);
    // The session's own grants come first.
    check(grant, "grant2");
    assert_eq!(grant.get(), 2);
    assert_eq!(AgentId::FIRST.get(), 0);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    check(child, "agent1");
    assert_eq!(child.get(), 1);
    assert_eq!(RememberedId::new(2).get(), 2);
    assert_eq!(StandingId::new(3).get(), 3);
    assert_eq!(Millis::new(12).get(), 12);
    assert_eq!(Millis::from_hours(2), Millis::from_minutes(120));
    assert_eq!(Millis::from_minutes(2), Millis::from_seconds(120));
    assert_eq!(Millis::from_seconds(2), Millis::new(2000));
    check(AgentId::FIRST, "agent0");
    check(UpstreamId(4), "upstream4");
    check(StandingId::new(3), "standing3");
    check(RememberedId::new(2), "remembered2");
    check(Instant::BOOT.after(Millis::new(12)), "12ms");
    assert_eq!(bench.run("make"), Came::Asked);
    let question = bench.question.clone().unwrap();
    check(question.id(), "question0");
    check(question.call(), "call0");
    let numbers = (question.id().get(), question.call().get());
    bench.run("make");
    let question = bench.question.clone().unwrap();
    let later = (question.id().get(), question.call().get());
    assert_eq!((numbers, later), ((0, 0), (1, 1)));
}

#[test]
fn a_digest_is_printed_in_small_hexadecimal_and_gives_back_its_bytes() {
    let mut bytes = [0; 32];
    bytes[..3].copy_from_slice(&[0x09, 0xa7, 0xff]);
    let digest = Digest::from_bytes(bytes);
    let expected = format!("09a7ff{}", "0".repeat(58));
    check(digest, &expected);
    assert_eq!(format!("{digest:?}"), expected);
    assert_eq!(digest.as_bytes(), &bytes);
    assert_eq!(BootId::from_bytes([7; 16]).as_bytes(), &[7; 16]);
    assert_eq!(Audience::new(name("room")).as_str(), "room");
}

#[test]
fn a_path_is_text_where_it_is_utf_8_and_its_debug_form_is_escaped() {
    assert_eq!(path("a/b").as_str(), Some("a/b"));
    assert_eq!(RelPath::root().as_str(), Some("."));
    let odd = RelPath::parse(b"a\xff").unwrap();
    assert_eq!(odd.as_str(), None);
    assert_eq!(format!("{odd:?}"), "RelPath(a\\xff)");
    // A backslash by itself is escaped like one beside other letters.
    check(path("\\"), "\\\\");
    check(path("a\\b"), "a\\\\b");
    check(path("plain name"), "plain name");
    assert_eq!(format!("{:?}", name("make")), "Name(make)");
    assert_eq!(format!("{}", extension(None).name), "x.acme.deploy");
    assert_eq!(extension(None).name.as_str(), "x.acme.deploy");
}

#[test]
fn what_is_no_value_says_which_rule_it_breaks() {
    for (error, code) in [
        (PathError::Empty, DenialCode::PathEmpty),
        (PathError::Absolute, DenialCode::PathAbsolute),
        (PathError::Escapes, DenialCode::PathEscapes),
        (PathError::Nul, DenialCode::PathNul),
        (PathError::TooLong, DenialCode::PathTooLong),
        (PathError::TrailingSlash, DenialCode::PathTrailingSlash),
    ] {
        check(error, code.wording());
    }
    check(NameError::Empty, "the name is empty");
    check(NameError::TooLong, "the name is too long");
    check(
        ExtensionError::Name(NameError::TooLong),
        "the name is too long",
    );
    let form = "the name is not `x.<vendor>.<name>` in small letters, digits and `-`";
    check(ExtensionError::Form, form);
    check(
        RuleError::Id,
        "the rule has no name, or one that is too long",
    );
    check(
        RuleError::AllowByName,
        "a pattern of names can ask or deny, not allow",
    );
    check(
        ChainError::Sequence(3),
        "the ledger lacks record 3 at its place",
    );
    check(ChainError::Changed(3), "record 3 of the ledger was changed");
    let broken = "record 3 of the ledger does not continue the one before";
    check(ChainError::Broken(3), broken);
}

#[test]
fn a_denial_keeps_what_it_is_about() {
    assert_eq!(Denial::new(DenialCode::NoCap, "dir0:a").about(), "dir0:a");
    // What helps is no part of the name it stands beside.
    let helped = Denial::new(DenialCode::NoRoom, "/w/a").beside("3 bytes\nfree");
    let wording = DenialCode::NoRoom.wording();
    assert_eq!(
        helped.to_string(),
        format!("{wording}: `/w/a` (3 bytes\\u{{a}}free)")
    );
    assert_eq!(helped.about(), "/w/a");
    check(
        Due::Rebooted,
        "the machine was restarted since it was confirmed",
    );
    check(Reversibility::Lossy, "lossy");
}

#[test]
fn a_standing_grant_is_printed_with_places_seen_from_the_root() {
    let place = |text: &str| PortableObject::tree(RelPath::parse_dir(text.as_bytes()).unwrap());
    let cap = |verb, object| PortableCap::new(verb, object).unwrap();
    let authority = PortableAuthority::from_caps([
        cap(Verb::FsRead, place(".")),
        cap(Verb::FsList, place("home/u")),
        cap(Verb::ProcExec, PortableObject::Program(Program::AnyInView)),
        cap(Verb::Extension, PortableObject::Extension(extension(None))),
    ])
    .unwrap();
    check(
        authority,
        "fs.list /home/u, fs.read /, proc.exec any program in the view, x.acme.deploy *",
    );
}

#[test]
fn no_authority_is_the_empty_one() {
    assert!(Authority::none().is_none());
    assert_eq!(Authority::none(), Authority::default());
}

#[test]
fn an_edit_names_all_its_files_and_says_why_it_is_not_made() {
    let proposal = Proposal {
        tool: "patch",
        paths: vec!["a".into(), "b/c".into()],
        old_text: None,
        new_text: String::new(),
    };
    assert_eq!(proposal.shown_path(), "a, b/c");
    let denied = "Edit approval denied by ACP client; file was not modified.";
    check(GateDenial::NotAgreed, denied);
    check(
        GateDenial::NotShowable(ProposalError::PathMissing),
        "Edit approval denied: could not prepare diff (path required)",
    );
}

#[test]
fn the_bounds_that_are_reckoned_are_these() {
    use hermitcrab_core::{limits, plan::limits as plans, v4a};
    assert_eq!(limits::CAPS_PER_AUTHORITY_MAX, 262_144);
    assert_eq!(limits::GRANTS_MAX, 1_048_576);
    assert_eq!(limits::ACTIONS_PER_TURN_MAX, 262_144);
    assert_eq!(limits::GRANT_LIFETIME_MAX, Millis::from_hours(720));
    assert_eq!(plans::LITERAL_BYTES_MAX, 65_536);
    assert_eq!(plans::FUEL, 1_073_741_824);
    assert_eq!(plans::TEXT_BYTES_MAX, 16_777_216);
    assert_eq!(v4a::PATCH_BYTES_MAX, 8_388_608);
}

#[test]
fn all_that_can_be_done_to_files_is_told_as_it_is_granted() {
    let place = |text: &str| PortableObject::tree(RelPath::parse_dir(text.as_bytes()).unwrap());
    let files = |on: &str, verbs: &[Verb]| -> Vec<PortableCap> {
        let cap = |verb: &Verb| PortableCap::new(*verb, place(on)).unwrap();
        verbs.iter().map(cap).collect()
    };
    let told = |caps: Vec<Vec<PortableCap>>, expected: &str| {
        check(
            PortableAuthority::from_caps(caps.into_iter().flatten()).unwrap(),
            expected,
        );
    };
    let program = || {
        let any = PortableObject::Program(Program::AnyInView);
        vec![PortableCap::new(Verb::ProcExec, any).unwrap()]
    };
    told(
        vec![files("w", &Verb::FILES), program()],
        "fs.* /w, proc.exec any program in the view",
    );
    told(
        vec![files("w", &Verb::FILES), files("v", &Verb::FILES)],
        "fs.* /v, fs.* /w",
    );
    // Whatever is missing is seen to be missing, and another place stands for none.
    let (last, most) = Verb::FILES.split_last().unwrap();
    told(
        vec![files("w", most), files("v", &[*last])],
        "fs.list /w, fs.read /w, fs.create /w, fs.modify /w, fs.delete /v",
    );
    told(
        vec![files("w", &Verb::FILES), files("w", &[Verb::FsMount])],
        "fs.* /w, fs.mount /w",
    );
}
