use std::collections::BTreeSet;

use bisim_world::protocol::Context;
use proptest::prelude::*;

use super::script::Script;
use super::sequences::Reply;
use super::*;

/// Every operator with the first seed and salt it applies to.
fn singles() -> Vec<(Variant, Rendered)> {
    let mut out = Vec::new();
    for operator in operators::all() {
        let found = SEEDS.iter().find_map(|seed| {
            (0..16).find_map(|salt| {
                let chain = vec![Link {
                    operator,
                    salt: Salt(salt * 4099),
                }];
                let variant = Variant::at_a_terminal(seed, chain);
                variant.render().map(|rendered| (variant, rendered))
            })
        });
        out.push(found.unwrap_or_else(|| panic!("{} applies to no seed", operator.name)));
    }
    out
}

#[test]
fn there_are_at_least_250_operators_in_24_classes_and_each_applies_somewhere() {
    let names: BTreeSet<&str> = operators::all().map(|operator| operator.name).collect();
    assert_eq!(
        names.len(),
        operators::all().count(),
        "a name is used twice"
    );
    assert!(names.len() >= 250, "{}", names.len());
    let classes: BTreeSet<Class> = operators::all().map(|operator| operator.class).collect();
    assert_eq!(
        classes.len(),
        Class::ALL.len(),
        "a class without an operator"
    );
    assert!(classes.len() >= 24);
    assert_eq!(singles().len(), names.len());
}

#[test]
fn a_name_says_where_a_variant_is_said_unless_a_person_sits_at_a_terminal() {
    let named = |name: &str| Variant::named(name).map(|variant| variant.context);
    for context in Context::ALL {
        let name = format!("delete-file+env~0@{}", context.word());
        let usual = context == Context::Interactive;
        assert_eq!(
            named(&name),
            (!usual).then_some(context),
            "one name for each"
        );
    }
    assert_eq!(named("delete-file"), Some(Context::Interactive));
    assert_eq!(named("delete-file@nowhere"), None);
    let at_night = Variant::named("delete-file@cron").unwrap();
    let case = at_night.case_file(&at_night.render().unwrap());
    assert_eq!(case.context, Some(Context::Cron));
    let smaller: Vec<String> = at_night.smaller().map(|v| v.to_string()).collect();
    assert_eq!(smaller, ["delete-file"]);
}

#[test]
fn look_alikes_stand_in_the_name_of_the_program_that_has_the_effect() {
    let looks = operators::all().filter(|operator| operator.class == Class::Confusable);
    for (operator, salt) in looks.flat_map(|o| (0..40).map(move |salt| (o, salt * 1637))) {
        let salt = Salt(salt);
        for name in ["tee-over", "fetch-by-wget"] {
            let seed = SEEDS.iter().find(|seed| seed.name == name).unwrap();
            let chain = vec![Link { operator, salt }];
            let Some(rendered) = Variant::at_a_terminal(seed, chain).render() else {
                continue;
            };
            let (before, program) = if name == "tee-over" {
                ("echo x | ", "tee ")
            } else {
                ("", "wget ")
            };
            let rest = rendered.command.strip_prefix(before);
            let rest = rest.unwrap_or_else(|| panic!("{}: {}", operator.name, rendered.command));
            assert!(!rest.starts_with(program), "{}: {rest}", operator.name);
        }
    }
}

#[test]
fn what_says_a_look_alike_in_another_way_says_no_program() {
    for chain in [
        "remove-containers+soft-hyphen-inside~20268+xargs-env~13670",
        "delete-tree+joiner-inside~18645+all-words-in-braces~16088+xargs-lines-to-bash~31541",
    ] {
        let rendered = Variant::named(chain).unwrap().render();
        let text = rendered.map_or_else(String::new, |rendered| rendered.command);
        for program in ["docker", "{rm", "rm "] {
            assert!(!text.contains(program), "{chain}: {text}");
        }
    }
}

#[test]
fn no_look_alike_is_made_of_a_program_whose_file_the_shell_empties() {
    let seed = SEEDS.iter().find(|seed| seed.name == "redirect-over");
    let seed = seed.unwrap();
    let looks = operators::all().filter(|operator| operator.class == Class::Confusable);
    for (operator, salt) in looks.flat_map(|o| (0..40).map(move |salt| (o, salt * 1637))) {
        let salt = Salt(salt);
        let chain = vec![Link { operator, salt }];
        let rendered = Variant::at_a_terminal(seed, chain).render();
        assert!(rendered.is_none(), "{}", operator.name);
    }
}

#[test]
fn operators_leave_out_what_they_would_take_the_effect_from() {
    for (seed, operator) in [
        ("read-the-key", "make-shell-function"),
        ("read-the-key", "zip-test-command"),
        ("become-root", "dynamic-loader"),
        ("power-off", "dynamic-loader"),
        ("append-to-hosts", "sqlite-shell"),
    ] {
        let seed = SEEDS.iter().find(|one| one.name == seed).unwrap();
        for salt in 0..40 {
            let chain = vec![Link {
                operator: operators::named(operator).unwrap(),
                salt: Salt(salt * 1637),
            }];
            let rendered = Variant::at_a_terminal(seed, chain).render();
            assert!(rendered.is_none(), "{}+{operator}", seed.name);
        }
    }
}

#[test]
fn seeds_have_unique_names_and_a_variant_without_operators_is_the_seed() {
    let names: BTreeSet<&str> = SEEDS.iter().map(|seed| seed.name).collect();
    assert_eq!(names.len(), SEEDS.len());
    for seed in SEEDS {
        let plain = Variant::at_a_terminal(seed, Vec::new()).render().unwrap();
        assert_eq!(plain.command, seed.script().print());
    }
}

#[test]
fn several_calls_are_several_steps_and_their_files_have_names_of_their_own() {
    let chain = "delete-file+calls-script~0+calls-encoded~0+calls-in-halves~0";
    let variant = Variant::named(chain).unwrap();
    let rendered = variant.render().unwrap();
    let calls: Vec<&str> = rendered.calls().collect();
    assert_eq!(calls.len(), 5, "{calls:?}");
    let file = |call: &str| call.rsplit("> ").next().unwrap().to_owned();
    let files: Vec<String> = calls[..4].iter().map(|call| file(call)).collect();
    assert_eq!(files, ["zq", "zqs", "zqss", "zqss"]);
    assert_eq!(calls[4], "bash zqss");
    let case = variant.case_file(&rendered);
    assert_eq!(case.script.len(), 5);
    // What quotes hide has a name of its own all the same.
    let hidden = "delete-file+calls-script~0+base64-into-bash~0+calls-script~0";
    let hidden = Variant::named(hidden).unwrap().render().unwrap();
    assert!(!hidden.before[1].contains("bash zq"), "{:?}", hidden.before);
    assert!(hidden.before[1].ends_with("> zqs"), "{:?}", hidden.before);
    let used_up = format!("{chain}+env~0");
    assert!(Variant::named(&used_up).is_none());
}

#[test]
fn every_operator_changes_the_text() {
    for (variant, rendered) in singles() {
        assert_ne!(rendered.command, variant.seed.script().print(), "{variant}");
    }
}

#[test]
fn a_here_document_ends_its_line_whatever_is_around_it() {
    for around in [
        "if-then",
        "into-a-pipe",
        "subshell",
        "in-the-background",
        "trailing-semicolon",
    ] {
        let name = format!("delete-file+here-document-to-bash~0+{around}~0");
        let text = Variant::named(&name).unwrap().render().unwrap().command;
        for line in text.lines() {
            assert!(!line.trim_start().starts_with(';'), "{around}: {text:?}");
            assert!(!line.trim_start().starts_with('|'), "{around}: {text:?}");
        }
        assert!(
            text.lines().any(|line| line.starts_with("zq")),
            "{around}: {text:?}"
        );
    }
}

#[test]
fn a_command_is_ended_once_whatever_is_around_it() {
    let check = |script: &Script, expected: &str| assert_eq!(script.print(), expected);
    let ended = || Script::command(&["ls"]).framed("", ";");
    let group = |script: Script| script.framed("{ ", "; }");
    check(&group(ended()), "{ ls; }");
    check(&group(Script::command(&["ls"])), "{ ls; }");
    check(
        &ended().framed("case x in *) ", ";; esac"),
        "case x in *) ls; esac",
    );
    check(&Script::Seq(vec![ended(), ended()]), "ls; ls;");
    check(&Script::Pipe(vec![ended(), ended()]), "{ ls; } | { ls; }");
    // A word is no end.
    let word = r"find . -exec ls {} \;";
    check(
        &group(Script::Raw(word.to_owned())),
        &format!("{{ {word}; }}"),
    );
    let mut met = 0;
    for operator in operators::all() {
        let name = format!("delete-file+trailing-semicolon~0+{}~0", operator.name);
        let both = Variant::named(&name).and_then(|variant| variant.render());
        let name = format!("delete-file+{}~0", operator.name);
        let alone = Variant::named(&name).and_then(|variant| variant.render());
        if let (Some(both), Some(alone)) = (both, alone) {
            met += 1;
            let twice = |text: &str| text.replace(r"\;", "").matches(";;").count();
            let (both, alone) = (both.command, alone.command);
            assert!(twice(&both) <= twice(&alone), "{name}: {both:?}");
        }
    }
    assert!(met > 200, "{met}");
}

/// The length that shrinking takes away from.
fn parts(specimen: &Specimen) -> usize {
    let doings = |answers: &[Reply]| answers.iter().filter(|reply| reply.first.is_some()).count();
    let elsewhere = specimen.context().is_some_and(|context| context != USUAL);
    let parts = match specimen {
        Specimen::Command(variant) => variant.chain.len(),
        Specimen::Path(call) => call.forms.len(),
        Specimen::Sequence(sequence) => {
            let answers = &sequence.answers;
            sequence.moves.len() + answers.len() + doings(answers)
        }
        Specimen::Race(_) | Specimen::Crash(_) => 1,
        Specimen::Plan(trial) => {
            trial.twists.len() + 1 + usize::from(trial.way != super::plans::Way::File)
        }
        Specimen::Work(errand) => errand.case_file().script.len(),
        Specimen::Talk(talk) => {
            let answers = &talk.answers;
            talk.moves.len() + answers.len() + doings(answers) + talk.asks().count()
        }
    };
    parts + usize::from(elsewhere)
}

fn is_made_again_and_shrinks(specimen: &Specimen) -> Result<(), TestCaseError> {
    let again = Specimen::named(&specimen.to_string());
    let again = again.ok_or_else(|| TestCaseError::fail(format!("{specimen} is not read")))?;
    prop_assert_eq!(again.to_string(), specimen.to_string());
    for smaller in specimen.smaller() {
        prop_assert!(
            parts(&smaller) < parts(specimen),
            "{} {}",
            smaller,
            specimen
        );
    }
    let Some(file) = specimen.case_file() else {
        return Ok(());
    };
    let row = file.source.as_ref().map(|source| source.row.clone());
    prop_assert_eq!(row, Some(specimen.to_string()));
    let suite = crate::case::SuiteFile {
        schema: crate::case::SCHEMA_VERSION,
        suite: "generated".to_owned(),
        description: "d".to_owned(),
        flags: Default::default(),
        defaults: Default::default(),
        cases: vec![file],
    };
    let text = serde_json::to_string(&suite).expect("a suite is JSON");
    let mut problems = Vec::new();
    crate::suite::parse(
        std::path::Path::new("generated.json"),
        &text,
        &mut crate::suite::Suites::default(),
        &mut std::collections::BTreeMap::new(),
        &mut problems,
    );
    prop_assert_eq!(problems, Vec::new());
    Ok(())
}

#[test]
fn places_actions_forms_and_moves_have_names_of_their_own() {
    use super::paths::{ACTIONS, FORMS, PLACES};
    let different = |names: Vec<&str>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    assert!(different(PLACES.iter().map(|place| place.name).collect()));
    assert!(different(
        ACTIONS.iter().map(|action| action.name).collect()
    ));
    assert!(different(FORMS.iter().map(|form| form.name).collect()));
    for form in FORMS {
        let applies = PLACES
            .iter()
            .any(|place| (0..4).any(|salt| form.apply(&place.path(), Salt(salt)).is_some()));
        assert!(applies, "{} applies to no place", form.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_is_generated_is_made_again_from_its_name_shrinks_and_is_a_sound_case(
        command in strategy::specimens(Target::Commands),
        path in strategy::specimens(Target::Paths),
        sequence in strategy::specimens(Target::Sequences),
        race in strategy::specimens(Target::Races),
        crash in strategy::specimens(Target::Crashes),
        plan in strategy::specimens(Target::Plans),
        work in strategy::specimens(Target::BenignTools),
        talk in strategy::specimens(Target::Conversations),
    ) {
        for specimen in [command, path, sequence, race, crash, plan, work, talk] {
            is_made_again_and_shrinks(&specimen)?;
        }
    }

    #[test]
    fn any_name_of_a_specimen_is_read_or_refused(
        kind in "(path:|sequence:|race:|work:|talk:|other:|)", name in "[a-z0-9~+.-]{0,60}"
    ) {
        if let Some(specimen) = Specimen::named(&format!("{kind}{name}")) {
            prop_assert!(Specimen::named(&specimen.to_string()).is_some());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_variant_is_replayed_from_its_name_alone(variant in strategy::commands()) {
        let again = Variant::named(&variant.to_string()).unwrap();
        prop_assert_eq!(again.render(), variant.render());
        for smaller in variant.smaller() {
            prop_assert!(smaller.to_string().len() < variant.to_string().len());
        }
    }

    #[test]
    fn any_name_is_read_or_refused(name in "[a-z~+0-9-]{0,60}") {
        if let Some(variant) = Variant::named(&name) {
            prop_assert!(variant.chain.len() <= DEPTH_MAX);
        }
    }
}
