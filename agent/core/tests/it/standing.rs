//! When a kept grant counts, and when it has to be confirmed again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab_core::{
    authority::{Extension, ExtensionName, Name, Program, Verb},
    digest::Digest,
    grant::Uses,
    limits::{CAPS_PER_STANDING_MAX, GRANT_LIFETIME_MAX},
    outcome::DenialCode,
    path::RelPath,
    rules::Isolation,
    standing::{
        Audience, BootId, Due, Kept, PortableAuthority, PortableCap, PortableObject, Site,
        Standing, StandingId, Surroundings, WallTime,
    },
    time::{Instant, Millis},
};

const DAY: u64 = 24 * 3600 * 1000;
const NOW: u64 = 1_000 * DAY;
/// Since the machine began.
const IN_BOOT: u64 = 50 * DAY;

fn place(text: &str) -> PortableObject {
    PortableObject::tree(RelPath::parse_dir(text.as_bytes()).unwrap())
}

fn audience(name: &str) -> Audience {
    Audience::new(Name::parse(name).unwrap())
}

fn site(number: u8) -> Option<Site> {
    Some(Site::from_digest(Digest::from_bytes([number; 32])))
}

fn here() -> Surroundings {
    Surroundings {
        audience: audience("workspace-1"),
        site: site(1),
        boot: BootId::from_bytes([1; 16]),
        now: WallTime::from_millis(NOW),
        in_boot: Instant::from_millis(IN_BOOT),
        isolation: Isolation::Isolated,
    }
}

fn kept() -> Standing {
    let cap = PortableCap::new(Verb::FsRead, place("home/u/notes")).unwrap();
    Standing {
        id: StandingId::new(3),
        audience: audience("workspace-1"),
        site: site(1),
        authority: PortableAuthority::from_caps([cap]).unwrap(),
        uses_left: Uses::Uncounted,
        isolation: Isolation::Isolated,
        made_at: WallTime::from_millis(NOW - 9 * DAY),
        confirmed_at: WallTime::from_millis(NOW - DAY),
        confirm_every: GRANT_LIFETIME_MAX,
        boot: BootId::from_bytes([1; 16]),
        confirmed_in_boot: Some(Instant::from_millis(IN_BOOT - DAY)),
        kept: Kept::Confirmed,
    }
}

#[test]
fn a_confirmed_grant_counts_until_its_interval_is_over() {
    assert_eq!(kept().check(&here()), Ok(Millis::new(29 * DAY)));
    let mut last = here();
    last.now = WallTime::from_millis(NOW + 29 * DAY);
    assert_eq!(kept().check(&last), Ok(Millis::new(0)));
    last.now = WallTime::from_millis(NOW + 29 * DAY + 1);
    assert_eq!(kept().check(&last), Err(Due::IntervalOver));
}

#[test]
fn a_wall_clock_that_is_set_back_within_a_boot_makes_nothing_last_longer() {
    let mut later = here();
    // As if no day had passed.
    later.now = WallTime::from_millis(NOW - DAY);
    assert_eq!(kept().check(&later), Ok(Millis::new(29 * DAY)));
    for (days, expected) in [
        (28, Ok(Millis::new(DAY))),
        (29, Ok(Millis::new(0))),
        (30, Err(Due::IntervalOver)),
    ] {
        later.in_boot = Instant::from_millis(IN_BOOT + days * DAY);
        assert_eq!(kept().check(&later), expected, "{days}");
    }
    // What is left is the least of both, and a new yes counts for both.
    let mut ahead = here();
    ahead.now = WallTime::from_millis(NOW + 9 * DAY);
    assert_eq!(kept().check(&ahead), Ok(Millis::new(20 * DAY)));
    let mut again = kept();
    assert_eq!(again.confirm(&later), Ok(GRANT_LIFETIME_MAX));
    // Of a record of before only the wall's time is known.
    let mut old = kept();
    old.confirmed_in_boot = None;
    assert_eq!(old.check(&later), Ok(Millis::new(30 * DAY)));
}

#[test]
fn no_stored_interval_makes_it_last_longer_than_the_longest_life() {
    let mut standing = kept();
    standing.confirm_every = Millis::new(u64::MAX);
    assert_eq!(standing.check(&here()), Ok(Millis::new(29 * DAY)));
}

/// One change to the record or to what is around it, and what becomes of the grant.
fn check(change: impl Fn(&mut Standing, &mut Surroundings), expected: Due) {
    let (mut standing, mut around) = (kept(), here());
    change(&mut standing, &mut around);
    assert_eq!(standing.check(&around), Err(expected));
    let before = standing.clone();
    let confirmed = standing.confirm(&around);
    if expected.can_be_confirmed() {
        assert_eq!(confirmed, Ok(GRANT_LIFETIME_MAX));
        assert_eq!(standing.check(&around), Ok(GRANT_LIFETIME_MAX));
        assert_eq!(expected.code(), DenialCode::ConfirmationDue);
    } else {
        assert_eq!(confirmed, Err(expected));
        assert_eq!(standing, before, "a yes that counts for nothing changed it");
    }
}

#[test]
fn doubt_about_time_place_or_sandbox_asks_again_and_the_rest_is_final() {
    check(
        |_, around| around.boot = BootId::from_bytes([2; 16]),
        Due::Rebooted,
    );
    check(|_, around| around.site = site(2), Due::OtherSite);
    // Which directory it is cannot be told.
    check(|_, around| around.site = None, Due::OtherSite);
    check(
        |_, around| around.now = WallTime::from_millis(NOW - 2 * DAY),
        Due::ClockWentBack,
    );
    check(
        |_, around| around.now = WallTime::from_millis(NOW + 31 * DAY),
        Due::IntervalOver,
    );
    check(
        |_, around| around.in_boot = Instant::from_millis(IN_BOOT - 2 * DAY),
        Due::ClockWentBack,
    );
    check(
        |_, around| around.in_boot = Instant::from_millis(IN_BOOT + 31 * DAY),
        Due::IntervalOver,
    );
    check(
        |_, around| around.isolation = Isolation::Unknown,
        Due::IsolationWeaker,
    );
    check(
        |_, around| around.isolation = Isolation::Unisolated,
        Due::IsolationWeaker,
    );
    check(
        |_, around| around.audience = audience("workspace-2"),
        Due::OtherAudience,
    );
    check(
        |standing, _| standing.uses_left = Uses::AtMost(0),
        Due::Exhausted,
    );
    check(|standing, _| standing.revoke(), Due::Revoked);
}

#[test]
fn somebody_else_learns_nothing_about_a_kept_grant() {
    let mut around = here();
    around.audience = audience("workspace-2");
    let mut revoked = kept();
    revoked.revoke();
    for standing in [kept(), revoked] {
        let due = standing.check(&around).unwrap_err();
        assert_eq!(due.code(), DenialCode::NoCap);
    }
}

#[test]
fn a_grant_of_before_that_knows_no_directory_learns_of_it_with_the_next_yes() {
    let mut standing = kept();
    standing.site = None;
    assert!(standing.check(&here()).is_ok());
    standing.confirm(&here()).unwrap();
    let mut elsewhere = here();
    elsewhere.site = site(2);
    assert_eq!(standing.check(&elsewhere), Err(Due::OtherSite));
    // A yes in the other directory is for that one.
    standing.confirm(&elsewhere).unwrap();
    assert_eq!(standing.check(&here()), Err(Due::OtherSite));
}

#[test]
fn a_stronger_sandbox_than_at_the_last_yes_needs_no_new_one() {
    let mut standing = kept();
    standing.isolation = Isolation::Unknown;
    assert!(standing.check(&here()).is_ok());
}

#[test]
fn only_what_has_a_meaning_outside_a_session_can_be_kept() {
    assert!(PortableCap::new(Verb::FsRead, PortableObject::Program(Program::AnyInView)).is_none());
    for verb in [
        Verb::SessionRead,
        Verb::UserAsk,
        Verb::AgentSpawn,
        Verb::ConfigChange,
    ] {
        let objects = [
            place("a"),
            PortableObject::Program(Program::AnyInView),
            PortableObject::Secret(Name::parse("s").unwrap()),
        ];
        for object in objects {
            assert!(PortableCap::new(verb, object).is_none(), "{verb}");
        }
        // What was said earlier is the same for each session that may see it.
        let of_all = PortableCap::new(verb, PortableObject::Session);
        assert_eq!(of_all.is_some(), verb == Verb::SessionRead, "{verb}");
    }
    let nothing = PortableAuthority::from_caps([]).unwrap_err();
    assert_eq!(nothing.code(), DenialCode::NoCap);
    let many = (0..=CAPS_PER_STANDING_MAX)
        .map(|number| PortableCap::new(Verb::FsRead, place(&format!("{number}"))).unwrap());
    let many = PortableAuthority::from_caps(many).unwrap_err();
    assert_eq!(many.code(), DenialCode::LimitReached);
}

#[test]
fn kept_authority_reads_as_one_line_of_places_from_the_root() {
    let deploy = PortableObject::Extension(Extension {
        name: ExtensionName::parse("x.acme.deploy").unwrap(),
        on: Some(Name::parse("site").unwrap()),
    });
    let authority = PortableAuthority::from_caps([
        PortableCap::new(Verb::FsRead, place("home/u")).unwrap(),
        PortableCap::new(Verb::FsList, place(".")).unwrap(),
        PortableCap::new(Verb::Extension, deploy).unwrap(),
        PortableCap::new(Verb::FsRead, place("home/u")).unwrap(),
    ]);
    assert_eq!(
        authority.unwrap().to_string(),
        "fs.list /, fs.read /home/u, x.acme.deploy site"
    );
}

#[test]
fn every_reason_has_its_own_words() {
    let mut words: Vec<&str> = Due::ALL.iter().map(|due| due.wording()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Due::ALL.len());
}

#[test]
fn a_time_says_the_milliseconds_it_was_made_of() {
    let made = WallTime::from_millis(NOW);
    assert_eq!(made.as_millis(), NOW);
    assert_eq!(made.after(Millis::from_seconds(2)).as_millis(), NOW + 2_000);
}

#[test]
fn a_yes_helps_where_the_reason_is_time_or_place_and_never_against_an_end() {
    for (due, helps) in [
        (Due::OtherAudience, false),
        (Due::Revoked, false),
        (Due::Exhausted, false),
        (Due::OtherSite, true),
        (Due::Rebooted, true),
        (Due::ClockWentBack, true),
        (Due::IntervalOver, true),
        (Due::IsolationWeaker, true),
    ] {
        assert_eq!(due.can_be_confirmed(), helps, "{due:?}");
    }
}

#[test]
fn a_standing_grant_holds_so_many_capabilities() {
    let caps = |count: usize| {
        PortableAuthority::from_caps((0..count).map(|number| {
            let name = Name::parse(&format!("s{number}")).unwrap();
            PortableCap::new(Verb::SecretUse, PortableObject::Secret(name)).unwrap()
        }))
    };
    assert!(caps(CAPS_PER_STANDING_MAX).is_ok());
    let denial = caps(CAPS_PER_STANDING_MAX + 1).unwrap_err();
    assert_eq!(denial.code(), DenialCode::LimitReached);
}
