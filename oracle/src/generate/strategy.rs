//! Strategies for proptest over what is generated.
//!
//! There is one generator for each type, its `Arbitrary`; a strategy draws the bytes it reads.
//! Less bytes and smaller ones make something simpler: where they run out, every choice is its
//! first. So what fails shrinks byte by byte, to something with few parts.

use std::fmt::Debug;

use arbitrary::{Arbitrary, Unstructured};
use proptest::prelude::*;

use super::benign::Benign;
use super::{Crash, Errand, PathCall, Race, Sequence, Specimen, Talk, Target, Trial, Variant};

/// As many bytes as the longest of what is made of them can use.
const BYTES_MAX: usize = 320;

/// Whatever its `Arbitrary` makes of bytes.
fn made<T>() -> impl Strategy<Value = T> + Clone
where
    T: for<'a> Arbitrary<'a> + Debug + Clone,
{
    of(|bytes| T::arbitrary(bytes))
}

fn of<T: Debug + Clone>(
    make: impl Fn(&mut Unstructured<'_>) -> arbitrary::Result<T> + Clone,
) -> impl Strategy<Value = T> + Clone {
    // Half of the time few bytes, so that what is simple comes as well.
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..32),
        proptest::collection::vec(any::<u8>(), 0..BYTES_MAX),
    ];
    bytes.prop_filter_map("the bytes make nothing", move |bytes| {
        make(&mut Unstructured::new(&bytes)).ok()
    })
}

/// Respelled commands.
pub fn commands() -> impl Strategy<Value = Variant> + Clone {
    made()
}

/// File tools on names that lead elsewhere.
pub fn path_calls() -> impl Strategy<Value = PathCall> + Clone {
    made()
}

/// Names that change places.
pub fn races() -> impl Strategy<Value = Race> + Clone {
    made()
}

/// Grants, answers and calls in some order.
pub fn sequences() -> impl Strategy<Value = Sequence> + Clone {
    made()
}

/// Plans that somebody hostile had a hand in.
pub fn plans() -> impl Strategy<Value = Trial> + Clone {
    made()
}

/// Calls that are cut off.
pub fn crashes() -> impl Strategy<Value = Crash> + Clone {
    made()
}

/// Ordinary work with the tools.
pub fn errands() -> impl Strategy<Value = Errand> + Clone {
    made()
}

/// Whole conversations.
pub fn talks() -> impl Strategy<Value = Talk> + Clone {
    made()
}

/// Command lines nobody should be asked about.
pub fn benign_jobs() -> impl Strategy<Value = Benign> + Clone {
    made()
}

/// Anything of this kind.
pub fn specimens(target: Target) -> impl Strategy<Value = Specimen> + Clone {
    of(move |bytes| Specimen::of(target, bytes))
}

mod tests {
    use bisim_world::protocol::FileKind;
    use proptest::test_runner::{Config, TestError, TestRunner};

    use super::super::benign::{Desk, PARTS_MAX, Way};
    use super::*;

    /// What is left of what fails, as proptest shrinks it.
    fn smallest<T: Debug>(strategy: impl Strategy<Value = T>, fails: impl Fn(&T) -> bool) -> T {
        let config = Config {
            cases: 20_000,
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(
            config,
            proptest::test_runner::TestRng::deterministic_rng(
                proptest::test_runner::RngAlgorithm::ChaCha,
            ),
        );
        match runner.run(&strategy, |value| {
            prop_assert!(!fails(&value));
            Ok(())
        }) {
            Err(TestError::Fail(_, value)) => value,
            other => panic!("nothing fails: {other:?}"),
        }
    }

    /// Where the bytes run out at once.
    fn simplest<T: for<'a> Arbitrary<'a>>() -> T {
        T::arbitrary(&mut Unstructured::new(&[])).unwrap()
    }

    #[test]
    fn no_bytes_make_what_is_simplest() {
        assert_eq!(simplest::<Variant>().chain.len(), 1);
        assert!(simplest::<PathCall>().forms.is_empty());
        assert!(simplest::<Trial>().twists.is_empty());
        let sequence = simplest::<Sequence>();
        assert_eq!((sequence.moves.len(), sequence.answers.len()), (1, 1));
        assert_eq!(simplest::<Benign>().parts.len(), 1);
        assert_eq!(simplest::<Crash>().before, 1);
        assert_eq!(simplest::<Errand>().salt, 0);
        let talk = simplest::<Talk>();
        assert_eq!((talk.moves.len(), talk.answers.len()), (1, 1));
    }

    /// Bytes are taken away one at a time, so a part may stay that is not needed.
    #[test]
    fn what_fails_shrinks_to_few_parts() {
        let encodes = |variant: &Variant| {
            let mut operators = variant.chain.iter().map(|link| link.operator.name);
            operators.any(|name| name.contains("base64"))
        };
        let left = smallest(commands(), encodes);
        assert!(left.chain.len() <= 2, "{left}");
        let left = smallest(plans(), |trial: &Trial| !trial.twists.is_empty());
        assert_eq!(left.twists.len(), 1, "{left}");
        let left = smallest(path_calls(), |call: &PathCall| !call.forms.is_empty());
        assert_eq!(left.forms.len(), 1, "{left}");
        let left = smallest(sequences(), |sequence: &Sequence| sequence.moves.len() >= 3);
        assert!(left.moves.len() <= 5, "{left}");
        let fails = |job: &Benign| job.parts.iter().any(|part| part.way == Way::Eval);
        let left = smallest(benign_jobs(), fails);
        assert!(left.parts.len() <= 2, "{}", left.command);
    }

    #[test]
    fn what_fails_from_a_moment_on_shrinks_to_that_moment() {
        let left = smallest(crashes(), |crash: &Crash| crash.before >= 7);
        assert_eq!(left.before, 7, "{left}");
        let left = smallest(races(), |race: &Race| race.cut.is_some_and(|cut| cut >= 5));
        assert_eq!(left.cut, Some(5), "{left}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn a_command_is_said_in_one_call_or_in_those_before_it(variant in commands()) {
            if let Some(rendered) = variant.render() {
                prop_assert!(rendered.calls().count() == rendered.before.len() + 1);
                prop_assert!(rendered.calls().all(|call| !call.contains('\0')));
                prop_assert_eq!(rendered.effect, variant.seed.effect);
            }
        }

        #[test]
        fn a_path_call_is_one_call_of_a_tool_in_a_world_whose_files_are_absolute(
            call in path_calls()
        ) {
            if let Some(file) = call.case_file() {
                prop_assert!(!file.script.is_empty());
                let files = file.world.map(|world| world.files).unwrap_or_default();
                prop_assert!(files.iter().all(|file| file.path.starts_with('/')));
            }
        }

        #[test]
        fn both_names_of_a_race_are_there_before_it(race in races()) {
            let world = race.case_file().world.unwrap();
            let flip = world.flip.unwrap();
            for name in [&flip.one, &flip.other] {
                let is_there = |file: &bisim_world::protocol::FileSpec| {
                    file.path == *name || file.path.starts_with(&format!("{name}/"))
                };
                prop_assert!(flip.files.iter().any(is_there), "{} {}", race, name);
            }
        }

        #[test]
        fn the_last_move_of_a_sequence_is_no_lonely_grant(sequence in sequences()) {
            let script = sequence.case_file().script;
            let calls = script.iter().filter(|step| {
                matches!(step, bisim_world::protocol::Step::Call { .. })
            });
            prop_assert!(calls.count() > 0, "{}", sequence);
        }

        #[test]
        fn a_plan_without_a_twist_is_proposed_whole(trial in plans()) {
            let file = trial.case_file();
            if trial.twists.is_empty() {
                prop_assert!(file.is_some(), "{}", trial);
            }
        }

        #[test]
        fn an_errand_keeps_to_its_workspace(errand in errands()) {
            let world = errand.case_file().world.unwrap();
            for file in world.files {
                prop_assert!(!file.path.contains("/../"));
                prop_assert!(matches!(file.kind, FileKind::Text(_)), "{}", errand);
            }
        }

        #[test]
        fn benign_lines_are_permitted_and_keep_to_their_directories(job in benign_jobs()) {
            prop_assert_eq!(Desk::open().unwrap().decide(&job), Ok(()));
            prop_assert!(job.parts.len() <= usize::from(PARTS_MAX));
            prop_assert!(job.does.keys().all(|path| !path.split('/').any(|name| name == "..")));
        }
    }
}
