//! `doctor`: what isolates commands, when the user is asked, and whether the
//! ledger and the store hold; with `--repair`, putting these in order.

mod apparmor;
mod container;
mod listed;
mod place;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use hermitcrab_core::{rules::Isolation, standing::Kept};
use hermitcrab_sandbox::{
    profile::{IsolationProfile, Mechanism, Row},
    spawn::SpawnError,
};

use super::{Trouble, Where, as_json::print_json, caps, open, say, tell};
use crate::{
    ambient,
    audit::{
        self, LedgerError,
        beside::{self, Place, Whose},
    },
    exit,
    model::llama,
    person::TerminalUser,
    runtime::{builder, prefer},
    screen::visible,
    state_dir::own_file::OwnFileError,
    store::{State, contents::KeptGrant, repair},
    text::rows,
};

const SYSTEM_CALLS: &str = "# The system call filter

Made by `cargo xtask filter-table`; do not edit. What a command without a network
capability is refused on x86-64: `kill` ends the process, `refuse` fails with
EPERM, `absent` with ENOSYS. Numbers nobody reviewed are absent as well, and so
is every call in the 32-bit and x32 forms. With a network capability internet
sockets are added, and nothing else.

| Call | When | What happens | Why |
|---|---|---|---|
";

/// What `doctor` is to do.
#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    place: Where,
    /// Print what the system call filter refuses to a command, and why
    #[arg(long)]
    system_calls: bool,
    /// Print the profile with which AppArmor lets this program make user namespaces, or the one
    /// that is installed there
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, require_equals = true)]
    apparmor: Option<Option<PathBuf>>,
    /// Put ledger and store in order; everything found is kept in a copy
    #[arg(long)]
    repair: bool,
    /// Print what isolates commands here as JSON, for programs, and nothing else
    #[arg(long, conflicts_with_all = ["repair", "system_calls", "apparmor"])]
    json: bool,
}

pub fn doctor(doctor: &Doctor) -> u8 {
    if doctor.system_calls {
        print!("{}", system_calls());
        return exit::OK;
    }
    if let Some(program) = &doctor.apparmor {
        return apparmor(program.as_deref());
    }
    let ground = match open::seen_from(&doctor.place) {
        Ok(ground) => ground,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    if doctor.repair {
        return match repaired(&ground) {
            Ok(code) => code,
            Err((message, code)) => {
                say(&message);
                code
            }
        };
    }
    if doctor.json {
        return match probed(&ground) {
            Ok(profile) => {
                print_json(&listed::profile(&profile));
                match profile.isolation {
                    Isolation::Isolated => exit::OK,
                    Isolation::Unisolated | Isolation::Unknown => exit::ENVIRONMENT,
                }
            }
            Err((message, code)) => {
                say(&message);
                code
            }
        };
    }
    let isolation = match isolation(&ground) {
        Ok(isolation) => isolation,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    let works = match (isolation, ground.no_workspace()) {
        // A person's home, most of the time: nothing is wrong with the machine.
        (_, Some(why)) => {
            tell(&format!("workspace: none here: {why}; {}", open::GO_THERE));
            Ok(())
        }
        (Isolation::Isolated, None) => place::tried(&ground, isolation),
        // It is said already that none run.
        (Isolation::Unisolated | Isolation::Unknown, None) => Ok(()),
    };
    variables();
    programs(&ground);
    mode(&ground);
    models(&ground);
    let records = place::records(&ground.state_dir);
    let kept = kept(&ground, isolation);
    match (isolation, kept) {
        (Isolation::Isolated, Ok(())) => works.and(records).err().unwrap_or(exit::OK),
        (Isolation::Unisolated | Isolation::Unknown, _) => exit::ENVIRONMENT,
        (Isolation::Isolated, Err(code)) => code,
    }
}

/// The profile AppArmor is given for this program, or for another.
fn apparmor(program: Option<&Path>) -> u8 {
    let program = program.map_or_else(
        || {
            let own = ambient::own_program();
            own.map_err(|error| format!("the kernel does not say where this program is: {error}"))
        },
        |program| Ok(program.to_path_buf()),
    );
    match program.and_then(|program| apparmor::profile(&program)) {
        Ok(profile) => {
            print!("{profile}");
            exit::OK
        }
        Err(why) => {
            say(&why);
            exit::ENVIRONMENT
        }
    }
}

/// What was seen of each mechanism, as it is used here.
fn probed(ground: &open::Ground) -> Result<IsolationProfile, Trouble> {
    let own = hermitcrab_sandbox::SpawnerProgram::Own;
    let ceilings = ground.config.ceilings(&ground.admin);
    let prefer = prefer(ceilings.layers, &ground.state_dir, &ground.workspace);
    let (builder, why) = builder(&own, &ground.state_dir, &ceilings, prefer);
    if let Some(why) = why {
        say(&why);
    }
    ambient::probe_as(builder).map_err(|error| {
        (
            format!("cannot try out the sandbox: {error}"),
            exit::ENVIRONMENT,
        )
    })
}

/// The first axis: what was seen to isolate.
fn isolation(ground: &open::Ground) -> Result<Isolation, Trouble> {
    let profile = probed(ground)?;
    // The reason is what can be mended; below the table nobody looks for it.
    if let Some(failure) = &profile.failure {
        say(&failure.to_string());
        if let (Some(held), Ok(program)) = (apparmor::held(), ambient::own_program()) {
            say(&apparmor::advice(&held, &program));
        }
        if let SpawnError::Step(refused) = failure
            && let Some(sign) = container::sign(refused.step(), refused.errno())
        {
            say(&container::advice(sign));
        }
        say("so nothing of this could be tried out:");
    }
    let columns = ambient::screen().columns_of(&std::io::stdout());
    print!("{}", table(&profile.rows, columns));
    tell(match profile.isolation {
        Isolation::Isolated => "isolation: isolated; commands run",
        Isolation::Unisolated => "isolation: unisolated; commands are refused",
        Isolation::Unknown => "isolation: unknown, so commands are refused",
    });
    Ok(profile.isolation)
}

/// Where the last column begins, and in a narrow terminal what stands below the others.
const LOST: usize = 42;
const LOST_BELOW: usize = 4;
/// A terminal narrower than this has no room for the last column.
const COLUMNS_OF_ALL: usize = 80;

/// One line for each mechanism; what was seen of it, where that says more.
fn table(rows: &[Row], columns: Option<usize>) -> String {
    let is_narrow = columns.is_some_and(|columns| columns < COLUMNS_OF_ALL);
    let lost = |text: &str| match is_narrow {
        true => format!(
            "\n{:LOST_BELOW$}{}",
            "",
            rows::folded(text, columns, LOST_BELOW)
        ),
        false => format!("  {}", rows::folded(text, columns, LOST)),
    };
    let mut text = format!(
        "{:<25} {:<9} {:<4}{}\n",
        "mechanism",
        "available",
        "used",
        lost("lost without it")
    );
    let mut remarks = String::new();
    for row in rows {
        let available = match row.available {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not seen",
        };
        let used = if row.used { "yes" } else { "no" };
        let name = row.mechanism.as_str();
        let not_required = if row.mandatory { "" } else { " (not required)" };
        let lost = lost(&format!("{}{not_required}", row.lost_without));
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{name:<25} {available:<9} {used:<4}{lost}");
        let graded = matches!(
            row.mechanism,
            Mechanism::ControlGroups | Mechanism::Landlock | Mechanism::CopyOnWrite
        );
        // Of what was not looked at there is nothing to tell.
        if row.available.is_some() && (row.available != Some(true) || !row.used || graded) {
            let _written = writeln!(remarks, "{name}: {}", row.seen);
        }
    }
    text + &rows::told(&remarks, columns)
}

/// The system call filter, as a page of the documents.
fn system_calls() -> String {
    let mut text = String::from(SYSTEM_CALLS);
    for call in hermitcrab_sandbox::spawn::refused_calls() {
        let when = if call.when.is_empty() {
            "always"
        } else {
            &call.when
        };
        // Writing to a String cannot fail.
        let _written = writeln!(
            text,
            "| `{}` | {when} | {} | {} |",
            call.name, call.action, call.reason
        );
    }
    text
}

/// Says which variables of the person's are not gone by.
fn variables() {
    for (name, said) in ambient::unused_dirs() {
        tell(&format!(
            "variables: {name} is `{}`, which is no absolute path, so it is not used",
            visible(&said.to_string_lossy())
        ));
    }
}

/// Says where programs of the person's are that commands do not find.
fn programs(ground: &open::Ground) {
    let hidden: Vec<String> = ground
        .programs_hidden()
        .iter()
        .map(|dir| format!("`{}`", visible(&dir.display().to_string())))
        .collect();
    if !hidden.is_empty() {
        tell(&format!(
            "programs: of your PATH commands are not shown {}; `config add-directory DIR` shows one to them",
            hidden.join(", ")
        ));
    }
}

/// Says which model works for the person, and whether the program can run one itself.
fn models(ground: &open::Ground) {
    match ground.config.models().planner.as_ref() {
        Some(words) => tell(&format!(
            "model: `{}`; `hermitcrab model check` tries it out",
            visible(&words.model)
        )),
        None => tell(
            "model: none; `hermitcrab config backend http --model NAME --base-url URL` names one",
        ),
    }
    if llama::is_built_in() {
        tell("models: those in GGUF files can be run here, each in a process of its own");
    } else {
        tell(&format!("models: {}", llama::NOT_BUILT_IN));
    }
}

/// The second axis: when the user is asked.
fn mode(ground: &open::Ground) {
    let somebody = TerminalUser::open().is_some();
    let asking = ground.asking(None, somebody);
    let from = match (ground.admin.mode(), ground.config.mode()) {
        (Some(admin), _) if admin == asking => "the administrator's file",
        (_, Some(user)) if user == asking => "your file",
        _ if !somebody => "no terminal is there to ask at",
        _ => "nothing else is configured",
    };
    tell(&format!("mode: {asking} ({from}); {}", asking.sentence()));
}

/// Whether what is kept holds.
fn kept(ground: &open::Ground, isolation: Isolation) -> Result<(), u8> {
    let dir = &ground.state_dir;
    if !dir.exists() {
        tell(&format!(
            "ledger and store: none yet in `{}`",
            dir.display()
        ));
        return Ok(());
    }
    let mut result = Ok(());
    let mut bad = |message: &str| {
        say(message);
        result = Err(exit::LEDGER);
    };
    let places = match beside::every(dir) {
        Ok(places) => places,
        Err((above, error)) => {
            bad(&format!(
                "cannot tell which ledgers there are in `{}`: {error}; see who changed it",
                above.display()
            ));
            vec![Place::first(dir)]
        }
    };
    let mut first = None;
    let mut whole = [(Whose::Editor, 0_usize), (Whose::Job, 0)];
    for place in places {
        let state = match State::look(&place.dir) {
            Ok(state) => state,
            Err(error) => {
                bad(&match place.is_first() {
                    true => error.to_string(),
                    false => format!("{}: {error}", place.name),
                });
                None
            }
        };
        let known: Vec<_> = state
            .as_ref()
            .and_then(|state| state.anchor.place())
            .map(|place| place.head)
            .into_iter()
            .collect();
        let called = match place.is_first() {
            true => "ledger".to_owned(),
            false => format!("ledger {}", place.name),
        };
        let of_many = whole.iter_mut().find(|(whose, _)| *whose == place.whose);
        match (audit::verify_against(&place.dir, &known), of_many) {
            // There may be hundreds; only what is to be told of one is.
            (Ok(verified), Some((_, count))) if verified.is_all_well() => {
                *count = count.saturating_add(1);
            }
            (Ok(verified), _) => tell(&format!("{called}: {verified}")),
            (Err(LedgerError::Own(error)), of_many) if error.is_missing() && known.is_empty() => {
                if of_many.is_none() {
                    tell(&format!("{called}: none yet"));
                }
            }
            (Err(error), _) => bad(&error.to_string()),
        }
        first = first.or(state.filter(|_| place.is_first()));
    }
    for (whose, count) in whole.into_iter().filter(|(_, count)| *count > 0) {
        let them = match whose {
            Whose::Job => "jobs",
            Whose::Own | Whose::Editor => "editors' sessions",
        };
        tell(&format!("ledgers of {them}: {count}, whole"));
    }
    let state = first;
    if let Some(state) = state {
        match ground.keeper(state, isolation) {
            Ok(keeper) => {
                let all = keeper.contents();
                let live = |kept: &&KeptGrant| kept.standing.kept == Kept::Confirmed;
                let standing = all.standing.iter().filter(live).count();
                let remembered = all.remembered.len();
                let more = |count: usize| if count == 1 { "" } else { "s" };
                tell(&format!(
                    "store: holds; {standing} standing grant{}, {} counting here, {} to be confirmed, \
                     {remembered} remembered answer{}",
                    more(standing),
                    keeper.live().count(),
                    keeper.due().count(),
                    more(remembered)
                ));
            }
            Err((message, _)) => bad(&message),
        }
    }
    result
}

fn repaired(ground: &open::Ground) -> Result<u8, Trouble> {
    let dir: &Path = &ground.state_dir;
    if !dir.exists() {
        tell(&format!(
            "there is nothing to repair in `{}`",
            dir.display()
        ));
        return Ok(exit::OK);
    }
    let stamp = ambient::wall_time().as_millis() / 1000;
    let failed = |error: OwnFileError| (error.to_string(), exit::LEDGER);
    let mut repaired = repair::repair(dir, stamp).map_err(failed)?;
    let mut copies: Vec<_> = repaired.copy.take().into_iter().collect();
    let mut code = exit::OK;
    let places = beside::every(dir).map_err(|(above, error)| {
        let above = above.display();
        let message = format!(
            "cannot tell which ledgers there are in `{above}`: {error}; see who changed it"
        );
        (message, exit::LEDGER)
    })?;
    for place in places.into_iter().filter(|place| !place.is_first()) {
        // A session of an editor may run, with a ledger that holds: it is left alone.
        if place.whose != Whose::Own && (super::audit::is_nothing(&place.dir) || holds(&place.dir))
        {
            continue;
        }
        match repair::repair(&place.dir, stamp) {
            Ok(one) => {
                let named = |line: String| format!("{}: {line}", place.name);
                repaired.done.extend(one.done.into_iter().map(named));
                copies.extend(one.copy);
            }
            // What is wrong with one keeps nobody from the others.
            Err(error) => {
                say(&format!("{}: {error}", place.name));
                code = exit::LEDGER;
            }
        }
    }
    if repaired.done.is_empty() && code != exit::OK {
        return Ok(code);
    }
    if repaired.done.is_empty() {
        tell("ledger and store hold; nothing was changed");
        return Ok(exit::OK);
    }
    for line in &repaired.done {
        tell(line);
    }
    for copy in &copies {
        tell(&format!("everything as it was found: `{}`", copy.display()));
    }
    caps::recorded(ground, "repaired by command", || {
        Ok(format!("repaired: {}", repaired.done.join("; ")))
    })?;
    Ok(code)
}

/// Whether a ledger is what its anchor says.
fn holds(dir: &Path) -> bool {
    State::look(dir).is_ok_and(|state| {
        let known = state.and_then(|state| state.anchor.place());
        let known: Vec<_> = known.map(|place| place.head).into_iter().collect();
        audit::verify_against(dir, &known).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use hermitcrab_sandbox::profile::{Mechanism, Row};

    use super::table;

    #[test]
    fn the_table_has_whole_words_in_a_terminal_of_any_width() {
        let row = |mechanism, used| Row {
            mechanism,
            available: Some(true),
            used,
            mandatory: false,
            seen: "so many words that they take more than a row of a terminal".to_owned(),
            lost_without: "a second line, behind the filter, against commands that want powers",
        };
        let rows = [
            row(Mechanism::Landlock, true),
            row(Mechanism::UserNamespace, false),
        ];
        let plain = table(&rows, None);
        assert_eq!(plain.lines().count(), 5, "{plain}");
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        for columns in [41, 60, 79, 80, 120, 200] {
            let told = table(&rows, Some(columns));
            assert_eq!(words(&told), words(&plain));
            assert!(told.lines().all(|row| row.len() < columns), "{told}");
        }
        assert_eq!(table(&rows, Some(200)), plain);
    }
}
