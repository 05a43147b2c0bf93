//! `bisim benign --observe`: what each shape does is seen anew, and the catalogue written.

use arbitrary::Unstructured;
use bisim_world::WorldError;

use super::worlds::{Seen, over, see};
use crate::ambient::Ambient;
use crate::cli::BenignArgs;
use crate::exit;
use crate::figures::counted;
use crate::generate::benign::catalogue::{self, HOLES, Row, filled, rows};
use crate::generate::benign::does::{self, Does, Line, steady};
use crate::generate::benign::each;
use crate::generate::benign::names::{Letters, word};
use crate::generate::benign::shapes::{families, prepared};
use crate::interrupt::Interrupt;
use crate::subject::{Processes, Restarting, Start, Subject};

/// The directory a shape is run in.
const DIR: &str = "dir-0";
/// Names that are nothing else's part.
const NAMES: [&str; 2] = ["Nm1Qz", "Nm2Qz"];

/// Runs the command; returns the exit code.
pub(super) fn command(ambient: &Ambient, args: &BenignArgs) -> u8 {
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let all: Vec<(&str, &str)> = families()
        .flat_map(|family| family.shapes.iter().copied())
        .filter(|(_, shape)| args.only.as_ref().is_none_or(|only| shape.contains(only)))
        .collect();
    if let ([], Some(only)) = (all.as_slice(), &args.only) {
        eprintln!(
            "error: no shape of a command holds `{only}`, and nothing that was seen is no pass; vectors/benign-work.jsonl has all shapes"
        );
        return exit::USAGE;
    }
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let shells = (0..workers).map(|_| shell(ambient, &processes)).collect();
    let seen = over(
        shells,
        (&all, "shapes"),
        &interrupt,
        |shell, (kind, shape)| observed(shell, kind, shape),
    );
    let seen = match seen {
        Ok(seen) => seen,
        Err(_) if interrupt.is_set() => return exit::INCONCLUSIVE,
        Err(error) => {
            eprintln!("error: {error}");
            return exit::INTERNAL;
        }
    };
    let mut text = String::new();
    let mut failed = 0_usize;
    for (row, (kind, shape)) in seen.iter().zip(&all) {
        match row {
            Ok(row) => match serde_json::to_string(row) {
                Ok(line) => text.push_str(&format!("{line}\n")),
                Err(error) => eprintln!("error: {error}"),
            },
            Err(why) => {
                failed = failed.saturating_add(1);
                println!("UNSTEADY `{shape}` in `{kind}`: {why}");
            }
        }
    }
    println!(
        "{} seen, {failed} not the same twice",
        counted(all.len() as u64, "shape", "shapes")
    );
    if args.only.is_some() {
        print!("{text}");
        return exit::CONFORM;
    }
    let place = ambient.root.join(catalogue::FILE);
    if let Err(error) = std::fs::write(&place, text) {
        eprintln!("error: cannot write `{}`: {error}", place.display());
        return exit::ENVIRONMENT;
    }
    if failed == 0 {
        exit::CONFORM
    } else {
        exit::UNEXPLAINED
    }
}

/// A bare shell, in this program's hidden mode.
pub(super) fn shell(ambient: &Ambient, processes: &Processes) -> Restarting {
    let program = ambient.program.clone();
    Restarting::new(Start::Shell { program }, processes.clone(), None)
}

fn look(shell: &mut dyn Subject, prepare: &[String], command: &str) -> Result<Seen, WorldError> {
    let prepare: String = prepare
        .iter()
        .map(|text| format!("(mkdir -p {DIR} && cd {DIR} && {{ {text}\n}})\n"))
        .collect();
    see(shell, &prepare, &format!("cd {DIR}\n{command}"))
}

/// What a shape does, or why that cannot be told.
///
/// # Errors
/// The harness failed.
pub fn observed(
    shell: &mut dyn Subject,
    kind: &str,
    shape: &str,
) -> Result<Result<Row, String>, WorldError> {
    let begun = prepared(kind).unwrap_or_default();
    let with = |names: &[String; 2]| (vec![filled(&begun, names)], filled(shape, names));
    let names = NAMES.map(str::to_owned);
    let (prepare, command) = with(&names);
    let first = look(shell, &prepare, &command)?;
    let second = look(shell, &prepare, &command)?;
    let does = steady(&first.does);
    if steady(&second.does) != does || second.ok != first.ok {
        return Ok(Err(format!("{:?} and {:?}", first.does, second.does)));
    }
    if first.text.contains("command not found") {
        return Ok(Err(first.text));
    }
    let within = format!("{DIR}/");
    if let Some(path) = does.keys().find(|path| !path.starts_with(&within)) {
        return Ok(Err(format!("it reaches `{path}`")));
    }
    // A name that tells where it is would be another one elsewhere.
    let goes_by_place = |path: &&String| path.matches(DIR).count() > 1;
    if let Some(path) = does.keys().find(goes_by_place) {
        return Ok(Err(format!("it goes by where it is: `{path}`")));
    }
    let template: Vec<Line> = does
        .iter()
        .map(|(path, fate)| {
            let path = path.strip_prefix(&within).unwrap_or(path);
            let path = path.replace(NAMES[0], &HOLES[0].to_string());
            Line(path.replace(NAMES[1], &HOLES[1].to_string()), *fate)
        })
        .collect();
    let expected = |names: &[String; 2]| -> Does {
        let of = |line: &Line| (format!("{within}{}", filled(&line.0, names)), line.1);
        template.iter().map(of).collect()
    };
    let mut letters = String::new();
    for kind in Letters::ALL {
        let Some(names) = sample(kind) else { continue };
        let words = [word(&names[0], true), word(&names[1], false)];
        let (prepare, command) = with(&words);
        let seen = look(shell, &prepare, &command)?;
        if steady(&seen.does) == expected(&names) && seen.ok == first.ok {
            letters.push(kind.letter());
        }
    }
    let others = ["Nm1Qz-x".to_owned(), "Nm2Qz-x".to_owned()];
    let both = [filled(&begun, &names), filled(&begun, &others)];
    let in_loop = look(shell, &both, &each(shape, &names, &others))?;
    let mut of_both = expected(&names);
    for (path, fate) in expected(&others) {
        does::then(&mut of_both, path, fate);
    }
    let twice = look(shell, &prepare, &format!("{command}\n{command}"))?;
    Ok(Ok(Row {
        kind: kind.to_owned(),
        shape: shape.to_owned(),
        ok: first.ok,
        names: letters,
        // What fails the second time keeps what comes after it in a line from being run.
        each: shape.contains(HOLES[0])
            && steady(&in_loop.does) == steady(&of_both)
            && in_loop.ok == first.ok,
        again: steady(&twice.does) == does && twice.ok == first.ok,
        does: template.iter().map(ToString::to_string).collect(),
    }))
}

/// Two names with such letters.
fn sample(letters: Letters) -> Option<[String; 2]> {
    let name = |bytes: &[u8]| letters.name(&mut Unstructured::new(bytes)).ok();
    Some([
        name(&[1, 2, 1, 3, 0])?,
        format!("{}2", name(&[4, 5, 0, 1])?),
    ])
}

/// What is in the catalogue of a shape.
///
/// # Errors
/// It is not there.
pub fn recorded(kind: &str, shape: &str) -> Result<Row, String> {
    let all = rows(include_str!("../../../../vectors/benign-work.jsonl"))?;
    all.into_iter()
        .find(|row| row.kind == kind && row.shape == shape)
        .ok_or_else(|| format!("nothing is recorded of `{shape}` in `{kind}`"))
}
