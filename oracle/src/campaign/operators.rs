//! `bisim operators`: does what an operator makes still do what it was made for?
//!
//! What for: a campaign counts what gets past a guard, and a variant that lost its effect
//! gets past everything. Here every operator rewrites many seeds by itself, a bare shell in
//! a world without a guard runs each, and the share that keeps its effect is told by
//! operator. One below nineteen of twenty, or a look-alike that runs, fails the command; with
//! `--all`, one that could not be tried as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use bisim_world::WorldError;
use hermitcrab::config::keys::nearest;

use crate::ambient::Ambient;
use crate::cli::OperatorArgs;
use crate::environment;
use crate::exit;
use crate::figures::{counted, grouped};
use crate::generate::{Link, Operator, SEEDS, Salt, Seed, Variant, judge, operators};
use crate::interrupt::Interrupt;
use crate::pulse::{Done, Pulse};
use crate::report::table::wide;
use crate::subject::{Processes, Restarting, Start, Subject as _};

/// How many places of a command an operator is tried at before another seed is taken.
const SALTS: u16 = 8;
/// From one salt to the next.
const SALT_STEP: u16 = 8111;
/// A busy machine ends a command early; what has no effect is run again.
const TRIES: usize = 2;

/// What became of one operator's variants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kept {
    tried: usize,
    kept: usize,
    /// The names of those without their effect.
    lost: Vec<String>,
}

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &OperatorArgs) -> u8 {
    let chosen: Result<Vec<&'static Operator>, &String> = match args.operator.as_slice() {
        [] => Ok(operators::all().collect()),
        names => names
            .iter()
            .map(|name| operators::named(name).ok_or(name))
            .collect(),
    };
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(name) => {
            let meant = match nearest(name, operators::all().map(|operator| operator.name)) {
                Some(meant) => format!("did you mean `{meant}`? "),
                None => String::new(),
            };
            eprintln!("error: no operator `{name}`; {meant}`bisim operators --list` shows all");
            return exit::USAGE;
        }
    };
    if args.list {
        match args.json {
            true => chosen
                .iter()
                .for_each(|operator| println!("{}", json_of(operator, None))),
            false => print!("{}", listed(&chosen)),
        }
        eprintln!("{}", counted(chosen.len() as u64, "operator", "operators"));
        return exit::CONFORM;
    }
    if let Err(unwritten) = environment::writable(args.write.as_deref(), "--write") {
        return unwritten.exit();
    }
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let shell = || {
        let program = ambient.program.clone();
        Restarting::new(Start::Shell { program }, processes.clone(), None)
    };
    let tried = try_all(&chosen, args.seeds, &interrupt, shell);
    let (all, present) = match tried {
        Ok(tried) => tried,
        Err(_) if interrupt.is_set() => return exit::INCONCLUSIVE,
        Err(error) => {
            eprintln!("error: {error}");
            return exit::INTERNAL;
        }
    };
    let rows: Vec<(&Operator, &Kept)> = chosen.iter().copied().zip(&all).collect();
    let text = table(&rows, &present);
    match args.json {
        true => rows
            .iter()
            .for_each(|(operator, kept)| println!("{}", json_of(operator, Some(kept)))),
        false => print!("{}", told(&rows, &present)),
    }
    if let Some(file) = &args.write
        && let Err(error) = std::fs::write(file, &text)
    {
        eprintln!("error: cannot write `{}`: {error}", file.display());
        return exit::INTERNAL;
    }
    if interrupt.is_set() {
        exit::INCONCLUSIVE
    } else if rows
        .iter()
        .any(|row| fails(row) || (args.all && is_untried(row)))
    {
        exit::UNEXPLAINED
    } else {
        exit::CONFORM
    }
}

/// A line for each: its name, its class, and the programs it needs.
fn listed(chosen: &[&'static Operator]) -> String {
    let name = wide(0, chosen.iter().map(|operator| operator.name));
    let class = wide(0, chosen.iter().map(|operator| operator.class.as_str()));
    let line = |operator: &&'static Operator| {
        let line = format!(
            "{:name$}  {:class$}  {}",
            operator.name,
            operator.class.as_str(),
            operator.needs.join(" ")
        );
        format!("{}\n", line.trim_end())
    };
    chosen.iter().map(line).collect()
}

/// An operator, and what became of its variants, as a program reads it.
fn json_of(operator: &Operator, kept: Option<&Kept>) -> serde_json::Value {
    let mut line = serde_json::json!({
        "operator": operator.name,
        "class": operator.class.as_str(),
        "needs": operator.needs,
    });
    if let (Some(kept), Some(line)) = (kept, line.as_object_mut()) {
        line.insert("tried".to_owned(), kept.tried.into());
        line.insert("kept".to_owned(), kept.kept.into());
        line.insert("lost".to_owned(), kept.lost.clone().into());
        line.insert("fails".to_owned(), fails(&(operator, kept)).into());
    }
    line
}

/// Programs that are there.
type Present = BTreeSet<&'static str>;

/// What each of these operators keeps, in their order, and what there is to try them with.
fn try_all(
    chosen: &[&'static Operator],
    seeds: usize,
    interrupt: &Interrupt,
    shell: impl Fn() -> Restarting,
) -> Result<(Vec<Kept>, Present), WorldError> {
    let starting =
        Pulse::start("starting a bare shell in a world, and looking what programs it has");
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut shells: Vec<Restarting> = (0..workers).map(|_| shell()).collect();
    let needs: BTreeSet<&'static str> = operators::all()
        .flat_map(|operator| operator.needs)
        .chain(SEEDS.iter().flat_map(|seed| seed.needs))
        .copied()
        .collect();
    let needs: Vec<&'static str> = needs.into_iter().collect();
    let first = shells
        .first_mut()
        .ok_or_else(|| WorldError::new("try operators", "there is no worker"))?;
    let present = judge::present(first, &needs)?;
    let next = AtomicUsize::new(0);
    let tried = Done::default();
    let all = chosen.len() as u64;
    drop(starting);
    let _pulse = Pulse::counting(&tried, move |tried| {
        format!(
            "{} of {} tried",
            grouped(tried),
            counted(all, "operator", "operators")
        )
    });
    let done: Mutex<BTreeMap<usize, Kept>> = Mutex::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = shells
            .iter_mut()
            .map(|shell| {
                let (next, done, present, tried) = (&next, &done, &present, &tried);
                scope.spawn(move || -> Result<(), WorldError> {
                    while !interrupt.is_set() {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(operator) = chosen.get(place) else {
                            break;
                        };
                        let kept = match one(shell, operator, place, seeds, present) {
                            Ok(kept) => kept,
                            // Whoever stops the run ends its workers.
                            Err(_) if interrupt.is_set() => break,
                            Err(error) => return Err(error),
                        };
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        done.insert(place, kept);
                        tried.add(1);
                    }
                    Ok(())
                })
            })
            .collect();
        running.into_iter().try_for_each(|one| {
            one.join()
                .unwrap_or_else(|_| Err(WorldError::new("try operators", "a thread died")))
        })
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let all = (0..chosen.len())
        .map(|place| done.remove(&place).unwrap_or_default())
        .collect();
    Ok((all, present))
}

fn one(
    shell: &mut Restarting,
    operator: &'static Operator,
    place: usize,
    seeds: usize,
    present: &BTreeSet<&'static str>,
) -> Result<Kept, WorldError> {
    let mut all = Kept::default();
    let variants = SEEDS
        .iter()
        .cycle()
        .skip(place)
        .take(SEEDS.len())
        .filter_map(|seed| alone(operator, seed))
        .filter(|variant| variant.needs().iter().all(|one| present.contains(one)));
    for variant in variants.take(seeds) {
        let Some(rendered) = variant.render() else {
            continue;
        };
        let mut kept = false;
        for _ in 0..TRIES {
            let trace = shell.run(judge::job_of(&rendered))?;
            kept = judge::happened(rendered.effect, &trace);
            if kept {
                break;
            }
        }
        all.tried += 1;
        all.kept += usize::from(kept);
        if kept != rendered.preserves_effect {
            all.lost.push(variant.to_string());
        }
    }
    Ok(all)
}

/// The operator by itself on this seed, at the first place it applies to.
fn alone(operator: &'static Operator, seed: &'static Seed) -> Option<Variant> {
    (0..SALTS)
        .map(|salt| Salt(salt.wrapping_mul(SALT_STEP)))
        .map(|salt| Variant::at_a_terminal(seed, vec![Link { operator, salt }]))
        .find(|variant| variant.render().is_some())
}

/// Below nineteen of twenty; of a look-alike, one that runs.
fn fails((operator, kept): &(&Operator, &Kept)) -> bool {
    if operator.class.preserves_effect() {
        kept.kept * 20 < kept.tried * 19
    } else {
        kept.kept > 0
    }
}

/// Whether nothing is known of it.
fn is_untried((_, kept): &(&Operator, &Kept)) -> bool {
    kept.tried == 0
}

/// What is printed: the operators that fail or were not tried, and how many there are.
fn told(rows: &[(&Operator, &Kept)], present: &Present) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    for row in rows.iter().filter(|(_, kept)| !kept.lost.is_empty()) {
        let (operator, kept) = row;
        let mark = if fails(row) { "FAILS" } else { "loses" };
        let _written = writeln!(
            out,
            "{mark} {}: {} of {} with the effect; not as it should be: {}",
            operator.name,
            kept.kept,
            kept.tried,
            kept.lost.join(" ")
        );
    }
    let mut unreached = 0_usize;
    for (operator, _) in rows.iter().filter(|row| is_untried(row)) {
        let is_missing = |need: &&&str| !present.contains(**need);
        let missing: Vec<&str> = operator.needs.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            unreached += 1;
            continue;
        }
        let _written = writeln!(
            out,
            "not tried {}: needs {}",
            operator.name,
            missing.join(" ")
        );
    }
    if unreached > 0 {
        let _written = writeln!(out, "operators not reached: {unreached}");
    }
    let of = |is: fn(&Operator) -> bool| {
        let of = rows.iter().filter(|(operator, _)| is(operator));
        of.fold((0, 0, 0, 0), |(all, whole, tried, kept), (_, one)| {
            let is_whole = usize::from(one.tried > 0);
            (
                all + 1,
                whole + is_whole,
                tried + one.tried,
                kept + one.kept,
            )
        })
    };
    let (operators, met, tried, kept) = of(|operator| operator.class.preserves_effect());
    let (_, _, looks, fired) = of(|operator| !operator.class.preserves_effect());
    let failing = rows.iter().filter(|row| fails(row)).count();
    let _written = writeln!(
        out,
        "{met} of {} tried, {} of {} keep their effect; \
         {fired} of {} run; {failing} of them below 95 of 100",
        counted(operators as u64, "operator", "operators"),
        grouped(kept as u64),
        counted(tried as u64, "variant", "variants"),
        counted(looks as u64, "look-alike", "look-alikes"),
    );
    out
}

/// Every operator, for a file.
fn table(rows: &[(&Operator, &Kept)], present: &Present) -> String {
    let mut out = String::from(
        "# Operators, each by itself\n\n\
         Written by `cargo bisim operators --write FILE`; do not edit. Variants that have the effect\n\
         of their seed in a bare shell, of those tried. None is tried where its program is missing.\n\n\
         | operator | class | needs | have the effect | of |\n|---|---|---|--:|--:|\n",
    );
    for (operator, kept) in rows {
        // Writing to a string cannot fail.
        let _written = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            operator.name,
            operator.class.as_str(),
            operator.needs.join(" "),
            kept.kept,
            kept.tried
        );
    }
    let _written = writeln!(out, "\n{}", told(rows, present));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Class, Effect};

    fn named(name: &str) -> &'static Operator {
        operators::named(name).unwrap()
    }

    #[test]
    fn nineteen_of_twenty_are_enough_and_no_look_alike_may_run() {
        let kept = |kept, tried| Kept {
            tried,
            kept,
            lost: Vec::new(),
        };
        let fail = |name, of: Kept| fails(&(named(name), &of));
        assert!(!fail("env", kept(19, 20)));
        assert!(fail("env", kept(18, 20)));
        assert!(!fail("env", kept(0, 0)), "nothing was tried");
        assert!(is_untried(&(named("env"), &kept(0, 0))));
        assert!(!is_untried(&(named("env"), &kept(0, 1))));
        let look = operators::all().find(|one| one.class == Class::Confusable);
        let look = look.unwrap().name;
        assert!(!fail(look, kept(0, 20)));
        assert!(fail(look, kept(1, 20)));
    }

    #[test]
    fn operators_are_listed_for_people_and_told_to_programs() {
        let (env, needing) = (
            named("env"),
            operators::all().find(|one| !one.needs.is_empty()),
        );
        let needing = needing.unwrap();
        let list = listed(&[env, needing]);
        assert_eq!(list.lines().count(), 2, "{list}");
        assert!(list.starts_with("env"), "{list}");
        assert!(
            list.trim_end().ends_with(&needing.needs.join(" ")),
            "{list}"
        );
        assert!(list.lines().all(|line| line == line.trim_end()), "{list}");
        let kept = Kept {
            tried: 20,
            kept: 18,
            lost: vec!["delete-tree+env~0".to_owned()],
        };
        let told = json_of(env, Some(&kept));
        assert_eq!(
            (&told["operator"], &told["fails"]),
            (&"env".into(), &true.into())
        );
        assert_eq!(told["lost"][0], "delete-tree+env~0");
        assert_eq!(json_of(env, None).get("tried"), None);
    }

    #[test]
    fn what_was_not_reached_is_counted_and_what_is_missing_is_named() {
        let nothing = Kept::default();
        let needing = operators::all().find(|one| !one.needs.is_empty()).unwrap();
        let rows = [(named("double-quote-rest"), &nothing), (needing, &nothing)];
        let told =
            |present: &[&'static str]| super::told(&rows, &present.iter().copied().collect());
        let without = told(&[]);
        let missing = format!(
            "not tried {}: needs {}\n",
            needing.name,
            needing.needs.join(" ")
        );
        assert!(without.contains(&missing), "{without}");
        assert!(without.contains("not reached: 1\n"), "{without}");
        let with = told(needing.needs);
        assert!(!with.contains("not tried"), "{with}");
        assert!(with.contains("not reached: 2\n"), "{with}");
    }

    #[test]
    fn what_is_silent_shows_nothing_and_what_is_not_there_has_no_pattern() {
        let seed = |name: &str| SEEDS.iter().find(|seed| seed.name == name).unwrap();
        for (operator, shown) in [
            ("in-an-assignment", "read-the-key"),
            ("perl-backticks", "search-secrets"),
            ("node-exec", "read-the-data"),
        ] {
            assert!(alone(named(operator), seed(shown)).is_none(), "{operator}");
            let other = alone(named(operator), seed("delete-tree"));
            assert!(other.is_some(), "{operator}");
        }
        for operator in operators::all().filter(|one| one.class == Class::Glob) {
            for seed in SEEDS {
                let Effect::Created(path) = seed.effect else {
                    continue;
                };
                let patterns = (0..64).filter_map(|salt| {
                    let salt = Salt(salt * 1023);
                    Variant::at_a_terminal(seed, vec![Link { operator, salt }]).render()
                });
                for rendered in patterns {
                    assert!(
                        rendered.command.contains(path),
                        "{}: {}",
                        operator.name,
                        rendered.command
                    );
                }
            }
        }
    }
}
