//! Answers that are given again, and where they are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::{Fate, GrantWords};
use hermitcrab_core::{label::Source, outcome::DenialCode};
use serde_json::json;

use crate::standing::Machine;

/// Whoever said it had not seen what the agent read since.
#[test]
fn a_yes_to_be_repeated_is_none_to_what_was_read_since_and_a_no_stays_one() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["repeat"], "b.txt", "yes"), (1, true));
    assert_eq!(machine.write(&["never"], "a.txt", "no"), (1, false));
    std::fs::remove_file(machine.workspace.join("b.txt")).unwrap();
    let again = |machine: &Machine, reads: bool, name: &str, content: &str| {
        let mut opened = machine.open(&["deny"]);
        let agent = opened.runtime.first_agent();
        let place = machine.workspace.to_str().unwrap().to_owned();
        for verb in ["fs.create", "fs.modify"] {
            let words = GrantWords::new(verb, &place);
            opened.runtime.grant(agent, &words).unwrap();
        }
        if reads {
            opened.runtime.hear(agent, Source::Network).unwrap();
        }
        let args = json!({"path": name, "content": content});
        opened.runtime.call(agent, "write_file", &args).fate
    };
    let asked = Fate::AskedRefused(DenialCode::RejectedByUser);
    assert_eq!(again(&machine, true, "b.txt", "yes"), asked);
    assert!(!machine.workspace.join("b.txt").exists());
    assert!(!machine.ledger().contains("repeated: yes"));
    assert_eq!(again(&machine, true, "a.txt", "no"), asked);
    assert!(machine.ledger().contains("repeated: no"));
    // Where nothing was read the grant does, and nobody is asked.
    assert_eq!(again(&machine, false, "b.txt", "yes"), Fate::Ran);
}
