//! The book itself, entry by entry; what is judged by it is tested with the relation.

use bisim_world::protocol::{
    EffectKind, Happened, Held, Meanwhile, Mode, NetAttempt, Restart, Step,
};
use serde_json::{Value, json};

use super::{Approval, Holdings, reads_workspace};
use crate::{
    case::Case,
    observation::{Class, Observation, StepSeen},
    relation::tests::{call, case, effect, hold},
};

const PROJECT: &str = "/home/u/proj";
const FILE: &str = "/home/u/proj/a";

fn named(id: &str, verb: &str, on: &str) -> Held {
    Held {
        id: id.to_owned(),
        ..hold(verb, on)
    }
}

fn empty(held: Vec<Held>) -> Case {
    case(Vec::new(), held)
}

fn seen(questions: &[(&str, &str)], made: &[&str], leaked: &[&str]) -> StepSeen {
    StepSeen {
        class: Class::Ran,
        code: String::new(),
        questions: questions
            .iter()
            .map(|(shown, answer)| ((*shown).to_owned(), (*answer).to_owned()))
            .collect(),
        meanwhile: Vec::new(),
        value: Value::Null,
        delta: made
            .iter()
            .map(|path| effect(path, EffectKind::Created))
            .collect(),
        parts: Vec::new(),
        canaries: leaked.iter().map(|path| (*path).to_owned()).collect(),
    }
}

fn attempt(port: u16) -> NetAttempt {
    NetAttempt {
        protocol: "tcp".to_owned(),
        port,
        head: String::new(),
    }
}

fn happened(what: Meanwhile) -> Happened {
    Happened {
        what,
        lacks: String::new(),
    }
}

#[test]
fn a_grant_goes_by_its_name_and_what_every_session_begins_with_by_its_verb() {
    let case = empty(vec![named("g", "fs.create", PROJECT)]);
    let mut book = Holdings::new(&case);
    assert!(book.is_live("g") && !book.is_live("fs.create") && !book.is_live("other"));
    assert!(book.is_live("default fs.read") && !book.is_live("default fs.create"));
    assert!(book.may(None, "fs.create", FILE) && book.may(None, "fs.read", FILE));
    assert!(!book.may(None, "fs.delete", FILE) && !book.may(None, "fs.create", "/home/u/b"));
    let over = Step::Revoke {
        grant: "default fs.read".to_owned(),
    };
    book.follow(&over);
    assert!(!book.may(None, "fs.read", FILE) && book.may(None, "fs.list", FILE));
    // With the session a grant ends, and the next one begins as the first did.
    book.follow(&Step::EndSession {});
    assert!(!book.is_live("g") && book.is_live("default fs.list"));
}

#[test]
fn a_grant_lives_for_half_a_day_unless_it_says_so_and_never_for_more_than_a_month() {
    const HOUR: u64 = 3600;
    let says = |seconds| Held {
        seconds: Some(seconds),
        ..named("says", "fs.delete", PROJECT)
    };
    for (seconds, month) in [
        (40 * HOUR, 40 * HOUR),
        (24 * 30 * HOUR, 24 * 30 * HOUR),
        (24 * 31 * HOUR, 24 * 30 * HOUR),
    ] {
        let case = empty(vec![named("usual", "fs.create", PROJECT), says(seconds)]);
        let lives = |after, verb| {
            let mut book = Holdings::new(&case);
            let step = Step::Advance { seconds: after };
            book.follow(&step);
            book.may(None, verb, FILE)
        };
        for (verb, end) in [
            ("fs.create", 12 * HOUR),
            ("fs.read", 12 * HOUR),
            ("fs.delete", month),
        ] {
            assert!(lives(end, verb), "{verb} {seconds}");
            assert!(!lives(end + 1, verb), "{verb} {seconds}");
        }
    }
}

#[test]
fn a_call_that_may_have_used_something_up_leaves_what_is_not_counted() {
    let counted = Held {
        uses: Some(3),
        ..named("c", "fs.create", PROJECT)
    };
    let case = empty(vec![counted, named("g", "fs.delete", PROJECT)]);
    let mut book = Holdings::new(&case);
    assert!(book.may(None, "fs.create", FILE));
    book.spend();
    assert!(!book.may(None, "fs.create", FILE) && book.may(None, "fs.delete", FILE));
}

#[test]
fn nothing_is_read_from_the_start_where_the_case_says_so() {
    let mut case = empty(Vec::new());
    assert!(reads_workspace(&case));
    let key = "hermitcrab.workspace_read".to_owned();
    case.job.settings.insert(key, json!(false));
    assert!(!reads_workspace(&case));
    assert!(!Holdings::new(&case).may(None, "fs.read", FILE));
}

#[test]
fn a_peer_is_held_by_its_port_and_by_no_other_verb() {
    let outside = |held: Vec<Held>, port| {
        let case = empty(held);
        let run = Observation {
            steps: Vec::new(),
            late: Vec::new(),
            effects: Vec::new(),
            network: vec![attempt(port)],
            tripwires: Vec::new(),
        };
        Holdings::new(&case).outside_world(&run)
    };
    let peer = || vec![named("n", "net.connect", "example.com:443")];
    assert_eq!(outside(peer(), 443), Vec::<String>::new());
    assert_eq!(outside(peer(), 80), ["reached tcp/80"]);
    let other = vec![named("n", "net.listen", "example.com:443")];
    assert_eq!(outside(other, 443), ["reached tcp/443"]);
    let bare = vec![named("n", "net.connect", "443")];
    assert_eq!(outside(bare, 443), ["reached tcp/443"]);
}

#[test]
fn what_leaked_is_read_by_a_grant_or_by_a_yes_to_the_call() {
    let key = "/home/u/.ssh/id_rsa";
    let case = empty(Vec::new());
    let leak = |questions: &[(&str, &str)], approval| {
        let seen = seen(questions, &[], &[key]);
        Holdings::new(&case).outside(&call(), &seen, approval)
    };
    assert_eq!(leak(&[], Approval::WholeCall).len(), 1);
    assert_eq!(leak(&[("x", "deny")], Approval::WholeCall).len(), 1);
    assert_eq!(leak(&[("x", "once")], Approval::WholeCall).len(), 0);
    assert_eq!(leak(&[("x", "once")], Approval::ShownPaths).len(), 1);
}

#[test]
fn a_yes_for_good_counts_in_the_next_run_for_that_command_alone_unless_it_was_lost() {
    let ends = |damaged| {
        let mut restart = Restart::default();
        if damaged {
            let gone = json!({"of": "answers", "how": "missing"});
            restart.damage = Some(serde_json::from_value(gone).unwrap());
        }
        Step::Restart(restart)
    };
    for (restart, counts) in [(ends(false), true), (ends(true), false)] {
        if let Step::Restart(restart) = &restart {
            assert_eq!(restart.keeps_answers(), counts);
        }
        let case = case(vec![restart.clone()], Vec::new());
        let mut book = Holdings::new(&case);
        let said = seen(&[("run: x", "always")], &[FILE], &[]);
        let outside = book.outside(&call(), &said, Approval::WholeCall);
        assert_eq!(outside, Vec::<String>::new());
        let again = seen(&[], &[FILE], &[]);
        // Not in the same run, where Hermes' side has its own book of sessions.
        assert_eq!(book.outside(&call(), &again, Approval::WholeCall).len(), 1);
        book.follow(&restart);
        let outside = book.outside(&call(), &again, Approval::WholeCall);
        assert_eq!(outside.is_empty(), counts, "{outside:?}");
        let other = Step::Call {
            tool: "terminal".into(),
            args: json!({"command": "another"}),
            by: None,
        };
        assert_eq!(book.outside(&other, &again, Approval::WholeCall).len(), 1);
    }
}

#[test]
fn a_child_that_is_ended_holds_nothing_and_is_handed_nothing() {
    let own = Held {
        holder: Some("kid".to_owned()),
        ..named("k", "fs.delete", PROJECT)
    };
    let case = empty(vec![own, named("g", "fs.create", PROJECT)]);
    let mut book = Holdings::new(&case);
    let born = Step::Spawn {
        child: "kid".to_owned(),
        forward: vec!["g".to_owned()],
    };
    book.follow(&born);
    let kid = Some("kid");
    assert!(book.may(kid, "fs.create", FILE) && book.may(kid, "fs.delete", FILE));
    assert!(!book.may(None, "fs.delete", FILE));
    let ended = Meanwhile::EndAgent {
        child: "kid".to_owned(),
    };
    book.follow_meanwhile(&call(), &[vec![happened(ended)]]);
    assert!(!book.may(kid, "fs.create", FILE) && !book.may(kid, "fs.delete", FILE));
    assert!(book.may(None, "fs.create", FILE));
}

#[test]
fn a_refusing_mode_lets_no_answer_count_until_the_session_is_over() {
    let case = empty(Vec::new());
    let mut book = Holdings::new(&case);
    let agreed = |book: &mut Holdings<'_>| {
        let said = seen(&[(FILE, "once")], &[FILE], &[]);
        book.outside(&call(), &said, Approval::ShownPaths)
            .is_empty()
    };
    assert!(agreed(&mut book));
    let refuses = Meanwhile::Mode {
        to: Mode::RejectAll,
    };
    book.follow_meanwhile(&call(), &[vec![happened(refuses)]]);
    assert!(!agreed(&mut book));
    book.follow_meanwhile(&call(), &[]);
    assert!(!agreed(&mut book), "the mode stays");
    book.follow(&Step::EndSession {});
    book.follow_meanwhile(&call(), &[]);
    assert!(agreed(&mut book), "the next session asks");
}

#[test]
fn an_answer_that_does_not_count_is_good_for_nothing_later() {
    let mode = |to| vec![vec![happened(Meanwhile::Mode { to })]];
    for (to, counts) in [(Mode::Prompt, true), (Mode::RejectAll, false)] {
        let case = empty(Vec::new());
        let mut book = Holdings::new(&case);
        book.follow_meanwhile(&call(), &mode(to));
        let said = seen(&[(FILE, "session")], &[], &[]);
        book.outside(&call(), &said, Approval::ShownPaths);
        book.follow_meanwhile(&call(), &mode(Mode::Prompt));
        let made = seen(&[], &[FILE], &[]);
        let outside = book.outside(&call(), &made, Approval::ShownPaths);
        assert_eq!(outside.is_empty(), counts, "{outside:?}");
    }
}
