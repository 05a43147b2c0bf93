//! Generated commands as text: a parser that is no shell reads them as bash does.
//!
//! A shell in a world says whether a command does what was meant. Here somebody else's
//! grammar of bash looks at the same text, beside `bash -n`, which runs nothing and is
//! asked inside a world all the same. Where the two disagree, either a text is read in
//! two ways, or the parser lacks something; what it is known to lack is listed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::{Arbitrary as _, Unstructured};
use bisim::generate::{Link, SEEDS, Salt, TARGETED, Variant, judge, operators};
use bisim::subject::{Processes, Restarting, Start, Subject as _};
use bisim_world::protocol::{End, FileKind, FileSpec};
use brush_parser::{Parser, ParserOptions};

/// Operators whose texts bash takes and the parser does not, and what it lacks.
const LACKING: &[(&str, &str)] = &[
    ("select-once", "it knows no `select`"),
    (
        "coprocess",
        "it wants a name between `coproc` and a group that begins with a group",
    ),
    (
        "in-a-case-word",
        "it ends `$(( $(case word in *) ...` at the pattern's bracket",
    ),
];

/// Chains that show what they lack where the text of the operator alone does not.
const SHOWN_BY: &[&str] = &["delete-file+in-a-case-word~0+in-arithmetic~0"];
/// Seeds that each operator is tried on.
const SEEDS_EACH: usize = 8;
/// What texts end with that each operator is put around.
const ENDS: &[&str] = &["trailing-semicolon", "trailing-comment", "trailing-lines"];
/// Chains besides, of every depth.
const CHAINS: u64 = 4_000;
/// Texts that one world is asked about.
const AT_ONCE: usize = 2_000;
/// Where they lie in it.
const TEXTS: &str = "/home/u/proj/texts";

fn variants() -> Vec<Variant> {
    let plain = SEEDS.iter().chain(TARGETED);
    let mut all: Vec<Variant> = plain
        .map(|seed| Variant::at_a_terminal(seed, Vec::new()))
        .collect();
    for (place, operator) in operators::all().enumerate() {
        let seeds = SEEDS
            .iter()
            .cycle()
            .skip(place % SEEDS.len())
            .take(SEEDS.len());
        let salted = seeds.enumerate().map(|(salt, seed)| {
            let salt = Salt(u16::try_from(salt * 8111 % 65_521).unwrap());
            Variant::at_a_terminal(seed, vec![Link { operator, salt }])
        });
        all.extend(salted.filter(|one| one.render().is_some()).take(SEEDS_EACH));
        // Each around a text that ends as texts can.
        for end in ENDS {
            let named = |seed: &str| format!("{seed}+{end}~0+{}~{place}", operator.name);
            let mut ended = SEEDS
                .iter()
                .filter_map(|seed| Variant::named(&named(seed.name)));
            all.extend(ended.find(|one| one.render().is_some()));
        }
    }
    let shown = SHOWN_BY.iter().map(|name| Variant::named(name).unwrap());
    all.extend(shown.inspect(|variant| assert!(variant.render().is_some(), "{variant}")));
    for number in 0..CHAINS {
        use sha2::{Digest as _, Sha256};
        let noise: Vec<u8> = (0..2_u64)
            .flat_map(|half| Sha256::digest((number * 2 + half).to_le_bytes()).to_vec())
            .collect();
        let chain = Variant::arbitrary(&mut Unstructured::new(&noise)).unwrap();
        all.extend((chain.render().is_some()).then_some(chain));
    }
    all
}

fn is_parsed(text: &str) -> bool {
    Parser::new(text.as_bytes(), &ParserOptions::default())
        .parse_program()
        .is_ok()
}

/// Which of these texts `bash -n` takes, asked in worlds.
fn taken_by_bash(texts: &[String]) -> Option<Vec<bool>> {
    let processes = Processes::default();
    let start = Start::Shell {
        program: env!("CARGO_BIN_EXE_bisim").into(),
    };
    let mut shell = Restarting::new(start, processes.clone(), None);
    if let Err(error) = shell.ready() {
        println!("SKIPPED: worlds cannot be built here: {error}");
        return None;
    }
    let mut taken = Vec::with_capacity(texts.len());
    for part in texts.chunks(AT_ONCE) {
        let refused = format!(
            "cd {TEXTS} && for text in *; do bash --norc --noprofile -n \"$text\" 2> /dev/null || echo \"refused $text\"; done"
        );
        let mut job = judge::job(&refused);
        let files = &mut job.world.as_mut().unwrap().files;
        files.extend(part.iter().enumerate().map(|(number, text)| FileSpec {
            path: format!("{TEXTS}/{number}"),
            kind: FileKind::Text(text.clone()),
            mode: None,
        }));
        job.deadline_ms = 120_000;
        let trace = shell.run(job).unwrap();
        let step = trace.steps.first().unwrap();
        let refused = step
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("refused "));
        let refused: BTreeSet<usize> = refused.map(|number| number.parse().unwrap()).collect();
        assert_eq!(trace.end, End::Finished, "{}", step.text);
        taken.extend((0..part.len()).map(|number| !refused.contains(&number)));
    }
    Some(taken)
}

#[test]
fn what_bash_takes_is_parsed_and_what_is_parsed_bash_takes() {
    let variants = variants();
    let texts: Vec<String> = variants
        .iter()
        .map(|variant| variant.render().unwrap().command)
        .collect();
    let Some(taken) = taken_by_bash(&texts) else {
        return;
    };
    let mut by_class: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut refused = Vec::new();
    let (mut unlike, mut met, mut parsed_in_all) = (Vec::new(), BTreeSet::new(), 0_usize);
    for ((variant, text), taken) in variants.iter().zip(&texts).zip(taken) {
        let parsed = is_parsed(text);
        parsed_in_all += usize::from(parsed);
        for class in variant.classes() {
            let counts = by_class.entry(class.as_str()).or_default();
            counts.0 += usize::from(parsed);
            counts.1 += 1;
        }
        if !taken {
            refused.push(format!("{variant}: {text:?}"));
        }
        if parsed == taken {
            continue;
        }
        let named = variant.chain.iter().map(|link| link.operator.name);
        let lacking: Vec<&str> = named
            .filter(|name| LACKING.iter().any(|(known, _)| known == name))
            .collect();
        if parsed || lacking.is_empty() {
            unlike.push(format!(
                "{variant}: bash {taken}, parser {parsed}: {text:?}"
            ));
        }
        met.extend(lacking);
    }
    println!(
        "{parsed_in_all} of {} are parsed; by class {by_class:?}",
        texts.len()
    );
    println!("bash refuses {}:\n{}", refused.len(), refused.join("\n"));
    assert!(texts.len() > 6_000);
    // Such a variant would count for nothing where it is run.
    assert!(refused.is_empty());
    assert!(
        unlike.is_empty(),
        "{} unlike:\n{}",
        unlike.len(),
        unlike.join("\n")
    );
    for (known, _) in LACKING {
        assert!(
            met.contains(known),
            "`{known}` is parsed: it is no longer lacking"
        );
    }
}
