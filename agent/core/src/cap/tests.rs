//! What the index finds: what is over is not searched, and two capabilities
//! that share a number are told apart.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;
use crate::authority::{DirId, Extent, Host, HostPattern, Name, Object, Port, Verb};
use crate::grant::Lifetime;
use crate::path::RelPath;
use crate::tool::Tool;

const NOW: Instant = Instant::BOOT;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn secret(text: &str) -> Cap {
    Cap::new(Verb::SecretUse, Object::Secret(name(text))).unwrap()
}

fn host(pattern: HostPattern, port: Port) -> Cap {
    let host = Host {
        name: pattern,
        port,
    };
    Cap::new(Verb::NetConnect, Object::Host(host)).unwrap()
}

/// A file as many names deep in one directory as this.
fn deep(depth: usize, extent: Extent) -> Cap {
    let names: Vec<String> = (0..depth).map(|number| format!("d{number}")).collect();
    let below = RelPath::parse_dir(format!("./{}", names.join("/")).as_bytes()).unwrap();
    let dir = DirId::new(1, 0);
    let object = Object::Dir { dir, below, extent };
    Cap::new(Verb::FsRead, object).unwrap()
}

fn give(table: &mut CapTable, cap: &Cap, uses: Uses) -> GrantId {
    let limits = Limits::starting(NOW, uses, Lifetime::Session);
    let made = table.grant(AgentId::FIRST, Authority::of(cap.clone()), limits);
    made.unwrap().grant()
}

/// How many grants are looked at for this.
fn searched(table: &CapTable, cap: &Cap) -> (usize, usize) {
    let (mut living, mut buried) = (0, 0);
    table.index.living(AgentId::FIRST, cap, |_| living += 1);
    table.index.buried(AgentId::FIRST, cap, |_| buried += 1);
    (living, buried)
}

#[test]
fn names_that_differ_in_a_letter_are_filed_apart() {
    let letters = "abcdefghijklmnopqrstuvwxyz0123456789";
    let pairs = letters
        .chars()
        .flat_map(|one| letters.chars().map(move |other| format!("{one}{other}")));
    let mut table = CapTable::new();
    let caps: Vec<Cap> = pairs.map(|pair| secret(&pair)).collect();
    for cap in &caps {
        give(&mut table, cap, Uses::Uncounted);
    }
    for cap in &caps {
        assert_eq!(searched(&table, cap), (1, 0), "{cap}");
    }
}

#[test]
fn two_capabilities_that_share_a_number_are_told_apart() {
    let mut table = CapTable::new();
    let (held, asked) = (secret("a"), secret("b"));
    let grant = give(&mut table, &held, Uses::Uncounted);
    let other = table.add_agent().unwrap();
    // As if the numbers of these were the same.
    table
        .index
        .file(AgentId::FIRST, &Authority::of(asked.clone()), grant);
    table.index.file(other, &Authority::of(held.clone()), grant);
    for (by, cap, expected) in [
        (AgentId::FIRST, &held, Ok(grant)),
        (AgentId::FIRST, &asked, Err(DenialCode::NoCap)),
        (other, &held, Err(DenialCode::NoCap)),
    ] {
        assert_eq!(table.choose(by, cap, NOW), expected);
        assert_eq!(table.choose_where(by, cap, NOW, |_| true), expected.ok());
    }
}

#[test]
fn what_is_revoked_spent_or_expired_is_searched_no_longer() {
    let cap = secret("a");
    let mut table = CapTable::new();
    assert!(table.is_empty());
    let revoked = give(&mut table, &cap, Uses::Uncounted);
    assert_eq!(searched(&table, &cap), (1, 0));
    table.revoke(&Revoker { grant: revoked });
    assert_eq!(searched(&table, &cap), (0, 1));
    let spent = give(&mut table, &cap, Uses::AtMost(1));
    assert_eq!(searched(&table, &cap), (1, 1));
    table.charge(spent);
    table.settle(&[spent]);
    // Of those that are over only the newest is kept.
    assert_eq!(searched(&table, &cap), (0, 1));
    assert_eq!(
        table.choose(AgentId::FIRST, &cap, NOW),
        Err(DenialCode::Exhausted)
    );
    let expired = give(&mut table, &cap, Uses::Uncounted);
    let after = Instant::from_millis(u64::MAX);
    assert_eq!(table.expire(after), [spent, expired]);
    assert_eq!(searched(&table, &cap), (0, 1));
    assert_eq!(table.len(), 3);
    assert!(!table.is_empty());
}

#[test]
fn a_place_is_found_at_any_depth_and_only_from_above() {
    for depth in [0, 1, 62, 63, 64, 65, 70] {
        let mut table = CapTable::new();
        let grant = give(&mut table, &deep(depth, Extent::Tree), Uses::Uncounted);
        for asked in [0, 1, 62, 63, 64, 65, 70, 80] {
            for extent in [Extent::Alone, Extent::Tree] {
                let found = table.choose(AgentId::FIRST, &deep(asked, extent), NOW);
                assert_eq!(found.is_ok(), asked >= depth, "{depth} {asked}");
                assert!(found.is_err() || found == Ok(grant));
            }
        }
    }
}

#[test]
fn a_name_alone_is_found_at_any_depth_and_nothing_below_it() {
    for depth in [0, 1, 62, 63, 64, 65, 70] {
        let mut table = CapTable::new();
        let grant = give(&mut table, &deep(depth, Extent::Alone), Uses::Uncounted);
        for asked in [0, 1, 62, 63, 64, 65, 70, 80] {
            let found = table.choose(AgentId::FIRST, &deep(asked, Extent::Alone), NOW);
            let expected = if asked == depth {
                Ok(grant)
            } else {
                Err(DenialCode::NoCap)
            };
            assert_eq!(found, expected, "{depth} {asked}");
            let all = table.choose(AgentId::FIRST, &deep(asked, Extent::Tree), NOW);
            assert_eq!(all, Err(DenialCode::NoCap), "{depth} {asked}");
        }
    }
}

#[test]
fn of_all_names_only_the_one_asked_for_is_looked_at_and_none_for_a_tree() {
    let mut table = CapTable::new();
    give(&mut table, &deep(2, Extent::Tree), Uses::Uncounted);
    for depth in [1, 3, 4] {
        give(&mut table, &deep(depth, Extent::Alone), Uses::Uncounted);
    }
    // The tree, and the name itself.
    for (depth, extent, expected) in [
        (1, Extent::Alone, 1),
        (2, Extent::Alone, 1),
        (3, Extent::Alone, 2),
        (3, Extent::Tree, 1),
        (5, Extent::Alone, 1),
        (0, Extent::Alone, 0),
    ] {
        let found = searched(&table, &deep(depth, extent));
        assert_eq!(found, (expected, 0), "{depth} {extent:?}");
    }
}

#[test]
fn a_host_is_found_by_its_name_and_by_every_domain_it_lies_in() {
    let exact = |text: &str| HostPattern::Exact(name(text));
    let below = |text: &str| HostPattern::Subdomains(name(text));
    for (held, asked, found) in [
        (
            (exact("a.org"), Port::Only(443)),
            (exact("a.org"), Port::Only(443)),
            true,
        ),
        (
            (exact("a.org"), Port::Only(443)),
            (exact("a.org"), Port::Only(80)),
            false,
        ),
        (
            (exact("a.org"), Port::Any),
            (exact("a.org"), Port::Only(80)),
            true,
        ),
        (
            (exact("a.org"), Port::Only(80)),
            (exact("a.org"), Port::Any),
            false,
        ),
        (
            (below("a.org"), Port::Any),
            (exact("x.y.a.org"), Port::Only(80)),
            true,
        ),
        (
            (below("y.a.org"), Port::Only(80)),
            (exact("x.y.a.org"), Port::Only(80)),
            true,
        ),
        (
            (below("a.org"), Port::Any),
            (below("y.a.org"), Port::Any),
            true,
        ),
        (
            (below("a.org"), Port::Any),
            (exact("a.org"), Port::Any),
            false,
        ),
        (
            (below("a.org"), Port::Any),
            (exact("xa.org"), Port::Any),
            false,
        ),
        (
            (exact("a.org"), Port::Any),
            (exact("x.a.org"), Port::Any),
            false,
        ),
    ] {
        let mut table = CapTable::new();
        let held = host(held.0, held.1);
        let asked = host(asked.0, asked.1);
        give(&mut table, &held, Uses::Uncounted);
        let chosen = table.choose(AgentId::FIRST, &asked, NOW);
        assert_eq!(chosen.is_ok(), found, "{held} {asked}");
        assert_eq!(held.covers(&asked), found, "{held} {asked}");
    }
}

#[test]
fn the_end_of_a_loan_is_no_reason_and_hides_none() {
    let cap = secret("a");
    let limits = Limits::starting(NOW, Uses::Uncounted, Lifetime::Session);
    let lend = |table: &mut CapTable| {
        let of = Authority::of(cap.clone());
        table.grant_from(Origin::Loan(Tool::Undo), AgentId::FIRST, of, limits)
    };
    let after = Instant::from_millis(u64::MAX);
    for expected in [DenialCode::NoCap, DenialCode::Revoked, DenialCode::Expired] {
        let mut table = CapTable::new();
        if expected != DenialCode::NoCap {
            let given = give(&mut table, &cap, Uses::Uncounted);
            if expected == DenialCode::Revoked {
                table.revoke(&Revoker { grant: given });
            }
        }
        let loan = lend(&mut table).unwrap();
        let found = table.choose(AgentId::FIRST, &cap, NOW);
        assert!(found.is_ok(), "it can be used: {found:?}");
        table.revoke(&loan);
        // Nor is it one whose deadline passed, before or after that was noticed.
        lend(&mut table).unwrap();
        for _ in 0..2 {
            let found = table.choose(AgentId::FIRST, &cap, after);
            assert_eq!(found, Err(expected));
            table.expire(after);
        }
    }
}
