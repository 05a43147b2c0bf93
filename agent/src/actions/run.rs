//! `run_command`: a program and a list of words, in the sandbox.

use std::time::Duration;

use hermitcrab_core::plan::{Datum, Failure, Level, Raw, interp::ToolCall};
use hermitcrab_sandbox::spawn::Ending;

use super::{Acted, Did, Trouble, record, stopped, text, texts};
use crate::runtime::Hands;

/// Seconds a command may take if the plan does not say, and at most.
const SECONDS: (i64, i64) = (60, 600);
/// Bytes of output that are kept.
const OUTPUT_BYTES_MAX: usize = 4 << 20;

/// Programs that read their words as a program: those come from the plan alone.
const READS_PROGRAMS: [&str; 17] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "env", "xargs", "python", "python3", "perl",
    "ruby", "node", "php", "lua", "awk", "sed",
];

pub(super) fn run(hands: &mut Hands<'_>, call: &ToolCall) -> Acted {
    let program = text(call, "program")?;
    let args = texts(call, "args");
    let has_nul = std::iter::once(program)
        .chain(args.iter().map(String::as_str))
        .any(|word| word.contains('\0'));
    if program.is_empty() || program.starts_with('-') || has_nul {
        return Err(Trouble::new(Failure::Refused, "that is no program"));
    }
    // A command runs unasked on a copy, and could hand on what it is given.
    if let Some(concern) = call.concerns.iter().find(|one| one.reader.is_some()) {
        let argument = concern.argument.as_deref().unwrap_or("that it runs at all");
        return Err(Trouble::new(
            Failure::Refused,
            format!(
                "`{argument}` is not for commands to see; a step `confirm` can give it to you to decide"
            ),
        ));
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    let written = call
        .arg("args")
        .is_none_or(|args| args.whole_tag().level() == Level::User);
    if !written && READS_PROGRAMS.contains(&name) {
        return Err(Trouble::new(
            Failure::Refused,
            format!("`{name}` reads its words as a program, and some of them are data"),
        ));
    }
    let seconds = match call.arg("seconds").map(|value| &value.datum) {
        Some(Datum::Whole(seconds)) => (*seconds).clamp(1, SECONDS.1),
        _ => SECONDS.0,
    };
    let timeout = Duration::from_secs(u64::try_from(seconds).unwrap_or(1));
    let run = hands.run_argv(program, &args, timeout).map_err(stopped)?;
    if let Some((denial, _)) = &run.discarded {
        return Err(Trouble::new(
            Failure::Refused,
            format!(
                "it ran on a copy and its changes were discarded: {denial} ({})",
                denial.code()
            ),
        ));
    }
    let mut output = run.output;
    if output.len() > OUTPUT_BYTES_MAX {
        let mut end = OUTPUT_BYTES_MAX;
        while !output.is_char_boundary(end) {
            end -= 1;
        }
        output.truncate(end);
    }
    match run.ending {
        Ending::Exited(0) => {
            let told = format!("{name}, {} bytes of output", output.len());
            let result = record(vec![
                ("output", Raw::Text(output)),
                ("status", Raw::Whole(0)),
            ]);
            Ok(Did::new(result, told).undone_by("`hermitcrab undo`, if it changed anything"))
        }
        Ending::Exited(status) => Err(Trouble::new(
            Failure::Status(status),
            format!(
                "`{name}` ended with status {status}: {}",
                first_line(&output)
            ),
        )),
        Ending::Signalled(_) | Ending::Killed => Err(Trouble::new(
            Failure::Killed,
            format!("`{name}` was killed"),
        )),
        Ending::OutOfMemory => Err(Trouble::new(
            Failure::TooMuch,
            format!(
                "`{name}` needed more memory than it may have: run it again if it changes much, which is kept on disk from now on unless `sandbox.layers` says otherwise, or raise `limits.memory_max_mb`"
            ),
        )),
        Ending::OutOfRoom => Err(Trouble::new(
            Failure::TooMuch,
            format!(
                "`{name}` wrote more than its changes may take on disk, and none is kept: have it write less, or raise `limits.changes_max_mb` if the disk has room"
            ),
        )),
        Ending::TimedOut => Err(Trouble::new(
            Failure::TimedOut,
            format!("`{name}` took longer than {seconds} s"),
        )),
    }
}

/// For a person; nothing is read from it.
fn first_line(output: &str) -> String {
    let line = output.lines().find(|line| !line.trim().is_empty());
    let mut line = line.unwrap_or("no output").to_owned();
    line.truncate(
        line.char_indices()
            .nth(160)
            .map_or(line.len(), |(at, _)| at),
    );
    line
}
