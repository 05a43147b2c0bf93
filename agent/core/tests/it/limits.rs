//! What happens at each limit: the last one in is served, the next is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    authority::{Authority, Cap, Name, Object, Program, Verb},
    cap::CapTable,
    grant::{AgentId, GrantId, Limits, Uses},
    limits::{
        AGENTS_MAX, CALLS_IN_FLIGHT_MAX, CAPS_PER_AUTHORITY_MAX, DERIVATION_DEPTH_MAX, DIRS_MAX,
        GRANTS_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX,
    },
    outcome::{Denial, DenialCode},
    path::{PathError, RelPath},
    session::Asking,
    time::Instant,
};
use support::{Bench, Came, SESSION, any_program, path};

fn limits() -> Limits {
    Limits::starting(Instant::BOOT, Uses::Uncounted, SESSION)
}

#[test]
fn agents() {
    let mut table = CapTable::new();
    for _ in 1..AGENTS_MAX {
        table.add_agent().unwrap();
    }
    assert_eq!(
        table.add_agent().unwrap_err().code(),
        DenialCode::LimitReached
    );
}

#[test]
fn grants() {
    let mut table = CapTable::new();
    for _ in 0..GRANTS_MAX {
        table
            .grant(AgentId::FIRST, Authority::none(), limits())
            .unwrap();
    }
    let denial = table
        .grant(AgentId::FIRST, Authority::none(), limits())
        .unwrap_err();
    assert_eq!(denial.code(), DenialCode::LimitReached);
    assert_eq!(table.revoke_all().len(), GRANTS_MAX);
}

#[test]
fn depth_of_derived_grants() {
    let mut table = CapTable::new();
    let mut last: GrantId = table
        .grant(AgentId::FIRST, any_program(), limits())
        .unwrap()
        .grant();
    let mut forward = |from| -> Result<GrantId, Denial> {
        table
            .forward(AgentId::FIRST, from, AgentId::FIRST, Instant::BOOT)
            .map(|revoker| revoker.grant())
    };
    for _ in 0..DERIVATION_DEPTH_MAX {
        last = forward(last).unwrap();
    }
    assert_eq!(forward(last).unwrap_err().code(), DenialCode::LimitReached);
}

#[test]
fn caps_of_one_authority_counted_after_dropping_redundant_ones() {
    let cap = |number: usize| {
        let name = Name::parse(&format!("p{number}")).unwrap();
        Cap::new(Verb::ProcExec, Object::Program(Program::InView(name))).unwrap()
    };
    // The cheap side only: the same caps twice, and all of them under one.
    let many = || (0..200).map(cap);
    assert_eq!(
        Authority::from_caps(many().chain(many()))
            .unwrap()
            .caps()
            .len(),
        200
    );
    let any = any_program().caps().to_vec();
    assert_eq!(
        Authority::from_caps(many().chain(any)).unwrap(),
        any_program()
    );
    let file = |number: usize| {
        let mut bench = Bench::new(Asking::Refuse);
        let dir = bench.session.add_dir(path("x")).unwrap();
        move |extra: usize| {
            Cap::new(
                Verb::FsRead,
                Object::tree(dir, path(&format!("f{}", number + extra))),
            )
            .unwrap()
        }
    };
    let file = file(0);
    assert!(Authority::from_caps((0..CAPS_PER_AUTHORITY_MAX).map(&file)).is_ok());
    let denial = Authority::from_caps((0..=CAPS_PER_AUTHORITY_MAX).map(&file)).unwrap_err();
    assert_eq!(denial.code(), DenialCode::LimitReached);
}

/// What to do about a limit comes before what costs everything that is held.
#[test]
fn who_reaches_a_limit_is_told_which_one_and_what_to_do() {
    let mut bench = Bench::new(Asking::Refuse);
    for _ in 1..DIRS_MAX {
        bench.session.add_dir(RelPath::root()).unwrap();
    }
    let denial = bench.session.add_dir(RelPath::root()).unwrap_err();
    assert_eq!(
        denial.to_string(),
        format!(
            "a limit is reached: `{DIRS_MAX} directories in one session; name one that holds several of them`"
        )
    );
    let next = denial.code().next_step();
    assert!(next.starts_with("do it in smaller parts"), "{next}");
    assert!(next.ends_with("start a new session"), "{next}");
}

#[test]
fn directories() {
    let mut bench = Bench::new(Asking::Refuse);
    for _ in 1..DIRS_MAX {
        bench.session.add_dir(RelPath::root()).unwrap();
    }
    assert_eq!(
        bench.session.add_dir(RelPath::root()).unwrap_err().code(),
        DenialCode::LimitReached
    );
}

#[test]
fn calls_at_one_time() {
    let mut bench = Bench::new(Asking::Refuse);
    bench.grant(any_program(), Uses::Uncounted, SESSION);
    for _ in 0..CALLS_IN_FLIGHT_MAX {
        assert_eq!(bench.run("sleep"), Came::Permitted(1));
    }
    assert_eq!(bench.run("sleep"), Came::Denied(DenialCode::LimitReached));
    bench.finish();
    assert_eq!(bench.run("sleep"), Came::Permitted(1));
}

#[test]
fn refused_calls_do_not_fill_the_session() {
    let mut bench = Bench::new(Asking::Refuse);
    for _ in 0..=CALLS_IN_FLIGHT_MAX {
        assert_eq!(bench.run("sleep"), Came::Denied(DenialCode::NoCap));
    }
}

#[test]
fn lengths_of_names_and_paths() {
    let name = "n".repeat(NAME_BYTES_MAX);
    assert!(RelPath::parse(name.as_bytes()).is_ok());
    assert_eq!(
        RelPath::parse(format!("{name}n").as_bytes()),
        Err(PathError::TooLong)
    );
    let long = |bytes: usize| format!("{}x", "a/".repeat(bytes / 2));
    assert_eq!(long(PATH_BYTES_MAX).len(), PATH_BYTES_MAX);
    assert!(RelPath::parse(long(PATH_BYTES_MAX).as_bytes()).is_ok());
    assert_eq!(
        RelPath::parse(long(PATH_BYTES_MAX + 1).as_bytes()),
        Err(PathError::TooLong)
    );
    let base = path(&long(PATH_BYTES_MAX - 2));
    assert_eq!(
        base.join(&path("b")).map(|joined| joined.as_bytes().len()),
        Ok(PATH_BYTES_MAX)
    );
    assert_eq!(base.join(&path("bb")), Err(PathError::TooLong));
    assert_eq!(base.child(b"bb"), Err(PathError::TooLong));
}

#[test]
fn text_of_a_denial() {
    let denial = Denial::new(DenialCode::NoCap, "x".repeat(1 << 20));
    assert!(denial.about().len() <= hermitcrab_core::limits::TEXT_BYTES_MAX + 8);
}
