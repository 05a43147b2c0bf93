//! Each fault of the core, planted, is noticed by the check made for it; and
//! no check complains while nothing is planted.
//!
//! One test function: a fault is planted for the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    approval::{Answer, Reply, Scope, Stance},
    authority::{Object, Verb},
    digest::Digest,
    fault::{self, Fault},
    grant::{AgentId, Uses},
    rules::{ConfiguredRule, Layer, Pattern, Shown, Withheld},
    session::{Asking, Event, SessionConfig},
    standing::PortableObject,
    tool::Tool,
};
use support::{Bench, Came, ONCE, SESSION, any_program, config, for_seconds, path, sha256};

/// Where a fault has its place, or a sentence that holds while the core is right.
enum Home {
    Core(fn() -> bool),
    Sandbox,
    Agent,
    /// Noticed by a law of the oracle's, which its selftest asks.
    Law,
}

fn is_permitted(came: &Came) -> bool {
    matches!(came, Came::Permitted(_))
}

/// A session that may read everything, under rules about reading: each about a place of
/// its directory or, with a star, about a name.
fn ruled(rules: &[(&str, Stance)]) -> Bench {
    let mut bench = Bench::new(Asking::Refuse);
    let reading = bench.on_files(&[Verb::FsRead], ".");
    bench.grant(reading, Uses::Uncounted, SESSION);
    for (about, stance) in rules {
        let pattern = if about.contains('*') {
            Pattern::Named((*about).to_owned())
        } else {
            Pattern::Object(PortableObject::tree(path(&format!("home/u/proj/{about}"))))
        };
        let written = ("rules.toml", 7, Layer::User);
        let rule = ConfiguredRule::new("r", *stance, vec![Verb::FsRead], pattern, written);
        bench.session.add_rule(rule.unwrap()).unwrap();
    }
    bench
}

/// Whether a command that sees the directory is shown less than all of it.
fn is_withheld(bench: Bench) -> bool {
    let rules = bench.session.rules();
    let (dir, below) = rules.place(&path("home/u/proj")).unwrap();
    rules.shown_to_commands(dir, &below) != Shown::AllBut(Withheld::default())
}

fn home(fault: Fault) -> Home {
    match fault {
        Fault::ForgetExpiry => Home::Core(|| {
            let mut bench = Bench::new(Asking::Refuse);
            let reading = bench.on_files(&[Verb::FsRead], ".");
            bench.grant(reading, Uses::Uncounted, for_seconds(60));
            bench.seconds = 61;
            !is_permitted(&bench.read("a"))
        }),
        Fault::ForgetRevocation => Home::Core(|| {
            let mut bench = Bench::new(Asking::Refuse);
            let reading = bench.on_files(&[Verb::FsRead], ".");
            let grant = bench.grant(reading, Uses::Uncounted, SESSION);
            bench.step(Event::Revoke(grant));
            !is_permitted(&bench.read("a"))
        }),
        Fault::GivesInAtLength => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            (0..300).all(|_| {
                let asked = bench.write("a") == Came::Asked;
                asked && !is_permitted(&bench.answer(Reply::No))
            })
        }),
        Fault::ForgetUses => Home::Core(|| {
            let mut bench = Bench::new(Asking::Refuse);
            let reading = bench.on_files(&[Verb::FsRead], ".");
            bench.grant(reading, ONCE, SESSION);
            bench.read("a");
            !is_permitted(&bench.read("a"))
        }),
        Fault::LeakGrantsToChild => Home::Core(|| {
            let mut bench = Bench::new(Asking::Refuse);
            let reading = bench.on_files(&[Verb::FsRead], ".");
            bench.grant(reading, Uses::Uncounted, SESSION);
            let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
            !is_permitted(&bench.read_as(child, "a"))
        }),
        Fault::SessionEndKeepsGrants => Home::Core(|| {
            let mut bench = Bench::new(Asking::Refuse);
            let reading = bench.on_files(&[Verb::FsRead], ".");
            bench.grant(reading, Uses::Uncounted, SESSION);
            bench.step(Event::End);
            !is_permitted(&bench.read("a"))
        }),
        Fault::UnknownAnswerIsYes => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            bench.read("a");
            !is_permitted(&bench.answer(Reply::parse("whatever")))
        }),
        Fault::AnswerNotBoundToDigest => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            bench.read("a");
            let question = bench.question.as_ref().unwrap().id();
            let answer = Answer {
                question,
                digest: sha256(b"other"),
                reply: Reply::Yes(Scope::Once),
            };
            !is_permitted(&bench.step(Event::Answer(answer)))
        }),
        Fault::YesOutlivesItsGround => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            let reading = bench.on_files(&[Verb::FsRead], "b");
            let held = bench.grant(reading, Uses::Uncounted, SESSION);
            bench.read("a");
            bench.step(Event::Revoke(held));
            !is_permitted(&bench.read("b"))
        }),
        Fault::SpentUsesCountWithAYes => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            let reading = bench.on_files(&[Verb::FsRead], "b");
            bench.grant(reading, ONCE, SESSION);
            let both = ["a", "b"].map(|name| bench.file(Verb::FsRead, name));
            bench.call_as(AgentId::FIRST, Tool::Patch, both.into());
            bench.read("b");
            !is_permitted(&bench.answer(Reply::Yes(Scope::Once)))
        }),
        Fault::ApproveWholeClass => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            bench.read("a");
            bench.answer(Reply::Yes(Scope::Session));
            !is_permitted(&bench.read("b"))
        }),
        Fault::AnswersAreForTrees => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            bench.read("a");
            bench.answer(Reply::Yes(Scope::Session));
            !is_permitted(&bench.read("a/b"))
        }),
        Fault::RefuseEverything => Home::Core(|| {
            let mut bench = Bench::new(Asking::Refuse);
            let reading = bench.on_files(&[Verb::FsRead], ".");
            bench.grant(reading, Uses::Uncounted, SESSION);
            is_permitted(&bench.read("a"))
        }),
        Fault::SensitivePathsArePlain => Home::Core(|| {
            let mut bench = Bench::new(Asking::Refuse);
            let reading = bench.on_files(&[Verb::FsRead], ".");
            bench.grant(reading, Uses::Uncounted, SESSION);
            !is_permitted(&bench.read(".env"))
        }),
        Fault::HiddenNamesAreSensitive => Home::Core(|| {
            let mut bench = Bench::new(Asking::Refuse);
            let changing = bench.on_files(&[Verb::FsModify], ".");
            bench.grant(changing, Uses::Uncounted, SESSION);
            is_permitted(&bench.write(".gitignore"))
        }),
        Fault::ProtectedPathsArePlain => Home::Core(|| {
            let mut bench = Bench::with(SessionConfig {
                protected: vec![path("home/u/proj/own")],
                ..config(Asking::Refuse)
            });
            let reading = bench.on_files(&[Verb::FsRead], ".");
            bench.grant(reading, Uses::Uncounted, SESSION);
            !is_permitted(&bench.read("own/ledger"))
        }),
        Fault::RulesSpareCommands => Home::Core(|| is_withheld(ruled(&[("plan", Stance::Deny)]))),
        Fault::QuestionsWithholdNothing => {
            Home::Core(|| is_withheld(ruled(&[("plan", Stance::Ask)])))
        }
        Fault::NamesWithholdNothing => Home::Core(|| is_withheld(ruled(&[("*.d", Stance::Deny)]))),
        Fault::SearchIgnoresRules => Home::Core(|| {
            let mut bench = ruled(&[("plan", Stance::Deny)]);
            let read = bench.file(Verb::FsRead, "plan/a");
            !is_permitted(&bench.call_as(AgentId::FIRST, Tool::SearchFiles, vec![read]))
        }),
        Fault::RulesCountOnce => Home::Core(|| {
            let mut bench = ruled(&[("plan", Stance::Deny)]);
            (0..3).all(|_| !is_permitted(&bench.read("plan/a")))
        }),
        Fault::ChildrenAreUnruled => Home::Core(|| {
            let mut bench = ruled(&[("plan", Stance::Deny)]);
            let reading = bench.on_files(&[Verb::FsRead], ".");
            let grant = bench.grant(reading, Uses::Uncounted, SESSION);
            let (child, _) = bench.spawn(AgentId::FIRST, &[grant]).unwrap();
            !is_permitted(&bench.read_as(child, "plan/a"))
        }),
        Fault::RulesTellCases => {
            Home::Core(|| !is_permitted(&ruled(&[("*.d", Stance::Deny)]).read("A.D")))
        }
        Fault::MildestRuleCounts => Home::Core(|| {
            let mut bench = ruled(&[("plan", Stance::Allow), ("plan/a", Stance::Deny)]);
            !is_permitted(&bench.read("plan/a"))
        }),
        Fault::EarlyChangesAskNobody => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            bench.grant(any_program(), Uses::Uncounted, SESSION);
            bench.run("serve");
            let call = bench.call.unwrap();
            let actions = vec![bench.file(Verb::FsCreate, "a")];
            bench.step(Event::EffectsSoFar { call, actions }) != Came::Asked
        }),
        Fault::ModesReachOut => Home::Core(|| {
            let mut bench = Bench::new(Asking::ApproveAll);
            let elsewhere = path("home/u/other");
            let place = Object::tree(bench.session.add_dir(elsewhere).unwrap(), path("a"));
            let made = Action::new(Verb::FsCreate, place, Digest::NONE).unwrap();
            !is_permitted(&bench.call_as(AgentId::FIRST, Tool::WriteFile, vec![made]))
        }),
        Fault::YesLooksAnywhere => Home::Core(|| {
            let mut bench = Bench::new(Asking::Prompt);
            bench.call_as(
                AgentId::FIRST,
                Tool::ReadFile,
                vec![bench.file(Verb::FsRead, "a")],
            );
            bench.answer(Reply::Yes(Scope::Once));
            let call = bench.call.unwrap();
            let actions = vec![bench.file(Verb::FsRead, "b")];
            !is_permitted(&bench.step(Event::LooksFurther { call, actions }))
        }),
        Fault::DirCapFollowsLinks
        | Fault::DirCapAllowsDotDot
        | Fault::WriteFollowsSymlink
        | Fault::ChangeSetMissesDeletes
        | Fault::ChangeSetMissesMetadata
        | Fault::SandboxHasNetwork
        | Fault::SandboxSeesHome
        | Fault::SandboxRootIsOpen
        | Fault::SandboxSharesTemporary
        | Fault::SandboxShowsOthersViews
        | Fault::TimeoutLeavesOrphans
        | Fault::UndoFollowsLinks => Home::Sandbox,
        Fault::CoversIgnoresVerb
        | Fault::NamesReachBelow
        | Fault::MeetIgnoresVerb
        | Fault::MeetKeepsTheFirst
        | Fault::AttenuationAmplifies
        | Fault::RedundantCapsStay
        | Fault::CoversByAny
        | Fault::PrefixByLetters
        | Fault::PathAllowsNul
        | Fault::PathAllowsAbsolute
        | Fault::PathKeepsDots
        | Fault::PathOfAnyLength
        | Fault::FileWithTrailingSlash
        | Fault::GrantsLastForEver
        | Fault::DerivedOutlivesParent
        | Fault::DerivedFromDead
        | Fault::DerivedByAnybody
        | Fault::RevocationSparesDerived
        | Fault::UsesNotShared
        | Fault::LineageNotLookedAt
        | Fault::AgentEndSparesGrants
        | Fault::RulesDoNotDeny
        | Fault::AsksWithoutTheRight
        | Fault::PartIsPermitted
        | Fault::DrainedTooEarly
        | Fault::EndedAgentsAct
        | Fault::LedgerForgetsPrevious
        | Fault::LedgerCountsWrong
        | Fault::LedgerSealsNothing
        | Fault::QuestionsShareADigest
        | Fault::OnceLasts
        | Fault::SilenceIsYes
        | Fault::CancelIsYes
        | Fault::FailureIsYes
        | Fault::NoIsYes
        | Fault::AnswerGrantsTheFirst
        | Fault::HoldsWhateverIsSaid
        | Fault::BarrierRunsBeside
        | Fault::OverlapRunsTogether
        | Fault::BatchLosesCalls
        | Fault::EditFailureIsYes
        | Fault::EditUnseenIsAgreed
        | Fault::MoveTakesAnything
        | Fault::MoveReplaces
        | Fault::CutOffStays
        | Fault::FinishedIsTakenBack
        | Fault::UndoOverlooksChanges
        | Fault::UndoForgetsTrees => Home::Law,
        Fault::CommitWithoutAsking
        | Fault::DenialLooksLikeSuccess
        | Fault::LoopsGoOn
        | Fault::FrameCanBeClosed
        | Fault::ErrorsTellKeys
        | Fault::ServersAreNotHeard
        | Fault::JobBorrowsRights
        | Fault::BackgroundIsShownAll
        | Fault::ScriptsAreShownAll
        | Fault::RunningFilesAreUnseen
        | Fault::OthersFilesAreUnseen
        | Fault::ReadTruncates => Home::Agent,
    }
}

#[test]
fn every_fault_of_the_core_is_noticed_when_planted_and_only_then() {
    let checks: Vec<(Fault, fn() -> bool)> = Fault::ALL
        .iter()
        .filter_map(|fault| match home(*fault) {
            Home::Core(holds) => Some((*fault, holds)),
            Home::Sandbox | Home::Agent | Home::Law => None,
        })
        .collect();
    assert!(checks.len() >= 11);
    for (fault, holds) in &checks {
        assert!(
            holds(),
            "{} complains although nothing is planted",
            fault.name()
        );
    }
    for (fault, holds) in &checks {
        fault::plant(Some(*fault));
        let noticed = !holds();
        fault::plant(None);
        assert!(noticed, "{} was planted and not noticed", fault.name());
    }
}

#[test]
fn faults_have_distinct_names_that_parse_back() {
    for fault in Fault::ALL {
        assert_eq!(Fault::parse(fault.name()), Some(*fault));
        assert!(!fault.description().is_empty());
    }
    assert_eq!(Fault::parse("no-such-fault"), None);
}
