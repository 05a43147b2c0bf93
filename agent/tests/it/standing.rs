//! Grants and answers that outlive a session, through the runtime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::path::PathBuf;

use hermitcrab::{
    approvals::{Desk, DeskUser, SharedDesk},
    audit::{Ledger, LedgerError},
    handles::ObjectRef,
    ports::{Keep, Prompt, UserPort},
    runtime::{Fate, Runtime, TakenIn},
    store::{
        State,
        keeper::{self, Keeper, Place},
    },
};
use hermitcrab_core::{
    approval::{Reply, Scope},
    outcome::DenialCode,
    rules::Isolation,
    standing::{BootId, Due, StandingId, Surroundings, WallTime},
    time::Millis,
};
use serde_json::json;
use support::{ManualClock, ScriptedUser};

const MONTH: Millis = Millis::from_hours(24 * 30);

/// A user who can also say that an answer is to be repeated, and who can take
/// longer for one than a question is open.
struct KeepingUser(ScriptedUser, ManualClock);

impl UserPort for KeepingUser {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        self.ask_and_keep(prompt).0
    }

    fn ask_and_keep(&mut self, prompt: Prompt<'_>) -> (Reply, Keep) {
        self.0.shown.borrow_mut().push(prompt.shown.to_owned());
        match self.0.words.borrow_mut().pop_front().unwrap_or("deny") {
            "repeat" => (Reply::Yes(Scope::Once), Keep::Repeat),
            "never" => (Reply::No, Keep::Repeat),
            "always, late" => {
                self.1.set(Millis::from_minutes(11).get());
                (Reply::Yes(Scope::Always), Keep::Nothing)
            }
            word => (Reply::parse(word), Keep::Nothing),
        }
    }
}

pub struct Machine {
    dirs: tempfile::TempDir,
    boot: u8,
    now: u64,
    isolation: Isolation,
    pub workspace: PathBuf,
}

pub struct Opened {
    pub runtime: Runtime,
    user: ScriptedUser,
    desk: SharedDesk,
    taken_in: TakenIn,
}

impl Machine {
    pub fn new() -> Self {
        let dirs = tempfile::tempdir().unwrap();
        let workspace = dirs.path().canonicalize().unwrap().join("proj");
        std::fs::create_dir(&workspace).unwrap();
        Self {
            dirs,
            boot: 1,
            now: 1_000_000,
            isolation: Isolation::Isolated,
            workspace,
        }
    }

    pub fn state_dir(&self) -> PathBuf {
        self.dirs.path().canonicalize().unwrap().join("state")
    }

    pub fn keeper(&self) -> Keeper {
        let place = Place {
            state_dir: self.state_dir(),
            workspace: self.workspace.display().to_string(),
            here: Surroundings {
                audience: keeper::audience(&self.workspace).unwrap(),
                boot: BootId::from_bytes([self.boot; 16]),
                now: WallTime::from_millis(self.now),
                isolation: self.isolation,
            },
        };
        Keeper::open(place, State::open(&self.state_dir()).unwrap()).unwrap()
    }

    pub fn open(&self, words: &[&'static str]) -> Opened {
        let state = State::open(&self.state_dir()).unwrap();
        let ledger = Ledger::open_anchored(&self.state_dir(), Some(state.anchor)).unwrap();
        self.open_on(ledger, words)
    }

    pub fn open_on(
        &self,
        ledger: (Ledger, hermitcrab::audit::Opened),
        words: &[&'static str],
    ) -> Opened {
        let user = ScriptedUser::default();
        user.words.borrow_mut().extend(words);
        let desk = Desk::shared(self.keeper());
        let clock = ManualClock::default();
        let keeping = KeepingUser(user.clone(), clock.clone());
        let front = DeskUser::new(desk.clone(), Box::new(keeping));
        let mut config = support::config(self.workspace.clone(), self.state_dir());
        config.isolation = self.isolation;
        let mut runtime =
            Runtime::open_on(config, ledger, Box::new(front), Box::new(clock)).unwrap();
        let first = runtime.first_agent();
        runtime.grant_basics(first).unwrap();
        let taken_in = runtime.attach(desk.clone()).unwrap();
        Opened {
            runtime,
            user,
            desk,
            taken_in,
        }
    }

    /// Writes a file in a session of its own; how often the user was asked,
    /// and whether it was written.
    pub fn write(&self, words: &[&'static str], name: &str, content: &str) -> (usize, bool) {
        let mut opened = self.open(words);
        let first = opened.runtime.first_agent();
        let args = json!({"path": name, "content": content});
        let report = opened.runtime.call(first, "write_file", &args);
        assert_eq!(opened.runtime.take_told(), Vec::<String>::new());
        opened.runtime.end_session().unwrap();
        let asked = opened.user.shown.borrow().len();
        (asked, report.fate == Fate::Ran)
    }

    pub fn ledger(&self) -> String {
        std::fs::read_to_string(self.state_dir().join("ledger.jsonl")).unwrap()
    }
}

#[test]
fn always_is_kept_and_counts_without_a_question_in_the_next_session() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always"], "a.txt", "1"), (1, true));
    // Making it was granted; changing it is another effect.
    assert_eq!(machine.write(&["always"], "a.txt", "2"), (1, true));
    assert_eq!(machine.write(&[], "a.txt", "3"), (0, true));
    assert_eq!(machine.write(&[], "b.txt", "1"), (1, false), "another file");
    let ledger = machine.ledger();
    for line in [
        "to be kept: always fs.create /",
        "kept as standing0",
        "kept as standing1",
    ] {
        assert!(ledger.contains(line), "`{line}`: {ledger}");
    }
}

#[test]
fn always_said_too_late_is_kept_no_more_than_it_counts() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always, late"], "a.txt", "1"), (1, false));
    assert!(!machine.ledger().contains("to be kept"));
    assert_eq!(machine.write(&[], "a.txt", "1"), (1, false));
}

#[test]
fn once_and_session_leave_nothing_behind() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["once"], "a.txt", "1"), (1, true));
    assert_eq!(machine.write(&["session"], "a.txt", "2"), (1, true));
    assert_eq!(machine.write(&[], "a.txt", "3"), (1, false));
    assert!(!machine.state_dir().join("store.redb").exists());
}

#[test]
fn what_is_asked_about_each_time_is_never_kept() {
    let machine = Machine::new();
    for word in ["always", "repeat"] {
        assert_eq!(machine.write(&[word], ".env", word), (1, true), "{word}");
        std::fs::remove_file(machine.workspace.join(".env")).unwrap();
        assert_eq!(machine.write(&[], ".env", "other"), (1, false), "{word}");
    }
    assert!(machine.keeper().contents().standing.is_empty());
    assert!(machine.keeper().contents().remembered.is_empty());
}

/// What no longer counts is asked about again, and says why it waits.
#[test]
fn a_standing_grant_waits_for_a_new_yes_after_a_reboot_a_month_or_a_weaker_sandbox() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always"], "a.txt", "1"), (1, true));
    let check = |machine: &Machine, due: Option<Due>| {
        let keeper = machine.keeper();
        let waiting: Vec<Due> = keeper.due().map(|(_, due)| due).collect();
        assert_eq!(waiting, Vec::from_iter(due));
        assert_eq!(keeper.live().count(), usize::from(due.is_none()));
        let taken_in = machine.open(&[]).taken_in;
        assert_eq!(taken_in.adopted.len(), usize::from(due.is_none()));
    };
    let mut later = Machine::new();
    later.dirs = machine.dirs;
    later.workspace.clone_from(&machine.workspace);
    check(&later, None);
    later.now += MONTH.get();
    check(&later, None);
    later.now += 1;
    check(&later, Some(Due::IntervalOver));
    later.now = 999_999;
    check(&later, Some(Due::ClockWentBack));
    later.now = 1_000_000;
    later.boot = 2;
    check(&later, Some(Due::Rebooted));
    later.boot = 1;
    later.isolation = Isolation::Unknown;
    check(&later, Some(Due::IsolationWeaker));
    later.isolation = Isolation::Isolated;
    later.boot = 2;
    std::fs::remove_file(later.workspace.join("a.txt")).unwrap();
    assert_eq!(
        later.write(&[], "a.txt", "2"),
        (1, false),
        "not silently active"
    );
    let confirmed = later.keeper().confirm(StandingId::new(0)).unwrap();
    assert_eq!(confirmed, Ok(MONTH));
    assert_eq!(later.write(&[], "a.txt", "2"), (0, true));
    // Saying always again is a confirmation, too, and makes no second grant.
    later.boot = 3;
    std::fs::remove_file(later.workspace.join("a.txt")).unwrap();
    assert_eq!(later.write(&["always"], "a.txt", "3"), (1, true));
    check(&later, None);
    assert_eq!(later.keeper().contents().standing.len(), 1);
}

/// The program may be killed right after an answer for good, and the ledger cut.
#[test]
fn a_ledger_cut_after_a_kill_is_refused_down_to_the_record_of_what_was_kept() {
    let machine = Machine::new();
    let mut opened = machine.open(&["always"]);
    let first = opened.runtime.first_agent();
    let args = json!({"path": "a.txt", "content": "1"});
    let report = opened.runtime.call(first, "write_file", &args);
    assert_eq!(report.fate, Fate::Ran);
    // Killed: nothing ends the session.
    drop(opened);
    let whole = machine.ledger();
    assert!(whole.lines().last().unwrap().contains("kept as standing0"));
    let again = || {
        let state = State::open(&machine.state_dir()).unwrap();
        Ledger::open_anchored(&machine.state_dir(), Some(state.anchor)).map(drop)
    };
    again().unwrap();
    let path = machine.state_dir().join("ledger.jsonl");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for left in 0..lines.len() {
        std::fs::write(&path, lines[..left].concat()).unwrap();
        assert!(matches!(again(), Err(LedgerError::Cut(..))), "{left} left");
    }
    std::fs::write(&path, &whole).unwrap();
    again().unwrap();
}

#[test]
fn a_place_that_became_a_link_is_not_the_place_that_was_granted() {
    let machine = Machine::new();
    std::fs::create_dir(machine.workspace.join("dir")).unwrap();
    assert_eq!(machine.write(&["always"], "dir/a.txt", "1"), (1, true));
    let elsewhere = machine.dirs.path().join("elsewhere");
    std::fs::rename(machine.workspace.join("dir"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, machine.workspace.join("dir")).unwrap();
    let taken_in = machine.open(&[]).taken_in;
    assert_eq!((taken_in.adopted.len(), taken_in.refused.len()), (0, 1));
}

#[test]
fn a_revocation_elsewhere_ends_the_grant_in_a_session_that_runs() {
    let machine = Machine::new();
    assert_eq!(machine.write(&["always"], "a.txt", "1"), (1, true));
    assert_eq!(machine.write(&["always"], "a.txt", "2"), (1, true));
    let mut opened = machine.open(&[]);
    let first = opened.runtime.first_agent();
    let mut write = |content: &str| {
        let args = json!({"path": "a.txt", "content": content});
        opened.runtime.call(first, "write_file", &args).fate
    };
    assert_eq!(write("3"), Fate::Ran);
    for id in [0, 1] {
        assert!(machine.keeper().revoke(StandingId::new(id)).unwrap());
    }
    assert_eq!(write("4"), Fate::AskedRefused(DenialCode::RejectedByUser));
    assert_eq!(
        std::fs::read_to_string(machine.workspace.join("a.txt")).unwrap(),
        "3"
    );
    assert!(
        machine
            .ledger()
            .contains("standing1 was ended in the store")
    );
    drop(opened);
    // A store that cannot be trusted any more ends what came from it, too.
    assert_eq!(machine.write(&["always"], "a.txt", "5"), (1, true));
    let mut opened = machine.open(&[]);
    std::fs::write(machine.state_dir().join("anchor"), b"nothing").unwrap();
    let args = json!({"path": "a.txt", "content": "6"});
    let fate = opened.runtime.call(first, "write_file", &args).fate;
    assert_eq!(fate, Fate::AskedRefused(DenialCode::RejectedByUser));
}

/// A remembered answer stands in for exactly the same request only.
#[test]
fn an_answer_to_be_repeated_is_given_again_to_exactly_the_same() {
    let mut machine = Machine::new();
    assert_eq!(machine.write(&["never"], "a.txt", "no"), (1, false));
    assert_eq!(
        machine.write(&["once"], "a.txt", "no"),
        (0, false),
        "repeated"
    );
    assert_eq!(machine.write(&["repeat"], "b.txt", "yes"), (1, true));
    std::fs::remove_file(machine.workspace.join("b.txt")).unwrap();
    assert_eq!(machine.write(&[], "b.txt", "yes"), (0, true), "repeated");
    std::fs::remove_file(machine.workspace.join("b.txt")).unwrap();
    assert_eq!(
        machine.write(&[], "b.txt", "more"),
        (1, false),
        "other content"
    );
    assert_eq!(
        machine.write(&[], "c.txt", "yes"),
        (1, false),
        "another file"
    );
    assert!(
        machine
            .ledger()
            .contains("answered as the user wanted it repeated: yes")
    );

    machine.isolation = Isolation::Unknown;
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "less is proved"
    );
    machine.isolation = Isolation::Isolated;
    machine.boot = 2;
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "another boot"
    );
    machine.boot = 1;
    machine.now += Millis::from_hours(12).get() + 1;
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "too long ago"
    );
    machine.now = 1_000_000;
    assert_eq!(machine.keeper().forget(Some(0)).unwrap(), 1);
    assert_eq!(
        machine.write(&["once"], "a.txt", "no"),
        (1, true),
        "forgotten"
    );
    assert_eq!(machine.keeper().forget(None).unwrap(), 1);
    assert_eq!(
        machine.write(&[], "b.txt", "yes"),
        (1, false),
        "all forgotten"
    );
}

/// What would be lost was shown with the question, and is a part of it.
#[test]
fn an_answer_to_be_repeated_is_not_given_where_another_content_would_be_lost() {
    let machine = Machine::new();
    let file = machine.workspace.join("a.txt");
    let delete = |words: &[&'static str], content: &str| {
        std::fs::write(&file, content).unwrap();
        let mut opened = machine.open(words);
        let first = opened.runtime.first_agent();
        let args = json!({"command": "rm a.txt"});
        let report = opened.runtime.call(first, "terminal", &args);
        opened.runtime.end_session().unwrap();
        let asked = opened.user.shown.borrow().len();
        (asked, report.fate == Fate::Ran && !file.exists())
    };
    assert_eq!(delete(&["repeat"], "scratch"), (1, true));
    assert_eq!(delete(&[], "scratch"), (0, true), "repeated");
    assert_eq!(delete(&[], "the only copy"), (1, false), "another content");
    assert_eq!(machine.write(&["repeat"], "a.txt", "new"), (1, true));
    std::fs::write(&file, "the only copy").unwrap();
    assert_eq!(machine.write(&[], "a.txt", "new"), (0, true), "repeated");
    std::fs::write(&file, "another").unwrap();
    assert_eq!(
        machine.write(&[], "a.txt", "new"),
        (1, false),
        "over another content"
    );
}

/// A hard refusal is not asked about, so nothing remembered or kept reaches it.
#[test]
fn nothing_kept_reaches_past_a_hard_refusal() {
    let machine = Machine::new();
    let mut keeper = machine.keeper();
    let place = machine.state_dir().join("ledger.jsonl");
    let below = hermitcrab_core::path::RelPath::parse(
        place
            .strip_prefix("/")
            .unwrap()
            .to_str()
            .unwrap()
            .as_bytes(),
    )
    .unwrap();
    let cap = hermitcrab_core::standing::PortableCap::new(
        hermitcrab_core::authority::Verb::FsModify,
        hermitcrab_core::standing::PortableObject::Place(below),
    )
    .unwrap();
    let authority = hermitcrab_core::standing::PortableAuthority::from_caps([cap]).unwrap();
    keeper.keep(&authority).unwrap();
    let (asked, written) = machine.write(&["always"], place.to_str().unwrap(), "x");
    assert_eq!((asked, written), (0, false));
}

fn audience(name: &str) -> hermitcrab_core::standing::Audience {
    hermitcrab_core::standing::Audience::new(hermitcrab_core::authority::Name::parse(name).unwrap())
}

/// A bearer's name counts once, for its audience, in its session; every other
/// use is refused the same way.
#[test]
fn a_bearers_name_is_bound_to_its_session_and_its_audience() {
    let machine = Machine::new();
    let mut opened = machine.open(&[]);
    let runtime = &mut opened.runtime;
    let first = runtime.first_agent();
    let place = machine.workspace.to_string_lossy().into_owned();
    let grant = runtime
        .grant(
            first,
            &hermitcrab::runtime::GrantWords::new("fs.create", &place),
        )
        .unwrap();
    let looking = runtime.harmless_grants(first);
    let child = runtime.spawn(first, &looking).unwrap();
    let refused = |result: Result<_, hermitcrab_core::outcome::Denial>| {
        let denial = result
            .map(|_: hermitcrab_core::grant::GrantId| ())
            .unwrap_err();
        (denial.code(), denial.to_string())
    };
    let export = |runtime: &mut Runtime| {
        runtime
            .export(first, grant, audience("child"))
            .unwrap()
            .reveal()
    };
    let uniform = refused(runtime.claim(child, &audience("child"), "/object/nothing"));
    assert_eq!(uniform.0, DenialCode::NoSuchObject);
    let unknown = ObjectRef::draw().unwrap().reveal();
    let name = export(runtime);
    for (who, text) in [("child", unknown.as_str()), ("other", name.as_str())] {
        assert_eq!(refused(runtime.claim(child, &audience(who), text)), uniform);
    }
    let claimed = runtime.claim(child, &audience("child"), &name).unwrap();
    assert_eq!(
        refused(runtime.claim(child, &audience("child"), &name)),
        uniform,
        "once"
    );
    let args = json!({"path": "made.txt", "content": "x"});
    assert_eq!(runtime.call(child, "write_file", &args).fate, Fate::Ran);
    // What was claimed ends with what it came from.
    let name = export(runtime);
    assert!(runtime.revoke(grant).unwrap().contains(&claimed));
    assert_eq!(
        refused(runtime.claim(child, &audience("child"), &name)),
        uniform,
        "revoked"
    );

    let grant = runtime
        .grant(
            first,
            &hermitcrab::runtime::GrantWords::new("fs.create", &place),
        )
        .unwrap();
    let name = runtime
        .export(first, grant, audience("child"))
        .unwrap()
        .reveal();
    runtime.begin_session().unwrap();
    let first = runtime.first_agent();
    assert_eq!(
        refused(runtime.claim(first, &audience("child"), &name)),
        uniform,
        "session"
    );
    assert!(
        !machine
            .ledger()
            .contains(name.strip_prefix("/object/").unwrap())
    );
}

/// Nothing that reaches a model or the ledger allows making a call by itself.
#[test]
fn no_bearers_name_reaches_a_model_or_the_ledger() {
    let machine = Machine::new();
    std::fs::write(machine.workspace.join("a.txt"), "x").unwrap();
    let mut keeper = machine.keeper();
    let mut words = machine.open(&[]);
    let authority = {
        let first = words.runtime.first_agent();
        let place = machine.workspace.to_string_lossy().into_owned();
        let words_of = hermitcrab::runtime::GrantWords::new("fs.delete", &place);
        words.runtime.portable_words(first, &words_of).unwrap()
    };
    drop(words);
    let id = keeper.keep(&authority).unwrap();
    let own = keeper::audience(&machine.workspace).unwrap();
    let sturdy = keeper.share(id, &own).unwrap().unwrap().reveal();
    assert!(keeper.redeem(&sturdy).is_ok());
    assert!(keeper.redeem(&sturdy.to_uppercase()).is_err());

    let mut opened = machine.open(&[]);
    let first = opened.runtime.first_agent();
    let grant = opened.runtime.held_by(first)[0];
    let exported = opened
        .runtime
        .export(first, grant, audience("x"))
        .unwrap()
        .reveal();
    let mut all_text = String::new();
    for name in [&sturdy, &exported] {
        let letters = name.strip_prefix("/object/").unwrap();
        // It came into files, by whatever way, and the model reads them.
        let text = format!("see {name} and {}\n", letters.to_uppercase());
        std::fs::write(machine.workspace.join("leak.txt"), &text).unwrap();
        let calls = [
            ("read_file", json!({"path": "leak.txt"})),
            ("terminal", json!({"command": "cat leak.txt"})),
        ];
        for (tool, args) in calls {
            let report = opened.runtime.call(first, tool, &args);
            assert!(
                report.text.contains("was removed here"),
                "{tool}: {}",
                report.text
            );
            all_text.push_str(&report.text);
        }
        // A model that has it all the same cannot put it into a call.
        let hidden = json!({"path": "b.txt", "content": {"deep": [text]}});
        for args in [json!({"path": format!("x{letters}")}), hidden] {
            let report = opened.runtime.call(first, "read_file", &args);
            assert_eq!(report.fate, Fate::Refused(DenialCode::NoSuchObject));
            all_text.push_str(&report.text);
        }
    }
    opened.runtime.end_session().unwrap();
    all_text.push_str(&machine.ledger());
    let all_text = all_text.to_lowercase();
    for name in [sturdy, exported] {
        assert!(!all_text.contains(name.strip_prefix("/object/").unwrap()));
    }
    assert!(
        machine
            .ledger()
            .contains("names of capabilities were removed")
    );
    assert!(opened.desk.borrow().keeper.contents().sturdy.len() == 1);
}

/// What a model sees instead are names that mean something only to it.
#[test]
fn what_is_held_has_names_that_mean_nothing_elsewhere() {
    let machine = Machine::new();
    let mut opened = machine.open(&[]);
    let runtime = &mut opened.runtime;
    let first = runtime.first_agent();
    let list = runtime.cap_list(first);
    assert!(list.len() >= 3, "{list:?}");
    for (place, (name, grant)) in list.iter().enumerate() {
        assert_eq!(*name, format!("cap:{place}"));
        assert_eq!(runtime.cap_named(first, name).unwrap(), *grant);
    }
    let child = runtime.spawn(first, &[]).unwrap();
    for name in ["cap:0", "cap:99", "cap:", "grant0"] {
        let denial = runtime.cap_named(child, name).unwrap_err();
        assert_eq!(denial.code(), DenialCode::NoSuchObject, "{name}");
    }
}
