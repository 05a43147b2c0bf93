//! busybox: one program that is hundreds, by their names as its first word.
//!
//! What looks for a program by its name finds another one here, and its wrappers take other
//! options than the ones everybody knows. Its shell prefers its own programs to those of the
//! system, so what is asked of it is either one of these by their common options, or a shell
//! that is not.

use super::wrappers::{found_once, parts, wrap, wrap_text};
use crate::generate::operator::{Apply, Class, Operator};
use crate::generate::script::{Script, Simple, Word, single_quoted};

use Class::{Find, Interpreter, ScriptFile, Shadow, ShellArgument, ShellInput, Wrapper, Xargs};

const NEEDS: &[&str] = &["busybox", "bash"];

const fn command(
    name: &'static str,
    class: Class,
    rewrite: fn(&Simple, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, NEEDS, Apply::Command(rewrite))
}

const fn whole(
    name: &'static str,
    class: Class,
    rewrite: fn(&Script, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, NEEDS, Apply::Whole(rewrite))
}

/// Programs of its own that do with short options what the system's do.
const OWN: &[&str] = &[
    "cat", "chmod", "cp", "dd", "ln", "mkdir", "mv", "rm", "sed", "shred", "tee", "touch",
    "truncate", "unlink",
];

/// Whether it does what the command does under its own name for the program.
fn is_its_own(simple: &Simple) -> bool {
    let is_long = |word: &Word| word.value().starts_with("--");
    parts(simple)
        .is_some_and(|(program, rest)| OWN.contains(&program.value()) && !rest.iter().any(is_long))
}

/// The command by busybox, found by `name`.
fn by(simple: &Simple, name: &str) -> Option<Script> {
    is_its_own(simple).then(|| wrap(simple, &[name]))?
}

/// A program's arguments behind words of busybox that run the rest.
fn behind(simple: &Simple, front: &[&str]) -> Option<Script> {
    // It would take one of its own of that name, which may know fewer options.
    let (program, _) = parts(simple)?;
    let is_stand_in = bisim_world::template::is_stand_in(program.value());
    (is_its_own(simple) && !is_stand_in).then(|| wrap(simple, front))?
}

/// A script for a shell of its own that hands all to one that is not.
fn for_its_shell(script: &Script) -> String {
    format!("exec bash -c {}", single_quoted(&script.print()))
}

/// A program of its awk that runs what is between quotation marks.
fn awk(script: &Script, code: fn(&str) -> String) -> Option<Script> {
    let text = for_its_shell(script);
    let is_plain = !text.contains(['\\', '"', '\n']);
    is_plain.then(|| Script::command(&["busybox", "awk", &code(&text)]))
}

pub(super) const TABLE: &[Operator] = &[
    command("busybox-program", Wrapper, |c, _| by(c, "busybox")),
    command("busybox-program-by-path", Wrapper, |c, _| {
        by(c, "/bin/busybox")
    }),
    command("busybox-under-a-programs-name", Shadow, |c, n| {
        let (program, _) = parts(c).filter(|_| is_its_own(c))?;
        let link = format!("/tmp/{n}/{}", program.value());
        let mut out = c.clone();
        *out.words.first_mut()? = Word::plain(&link);
        let made = format!("mkdir -p /tmp/{n}; ln -s /bin/busybox {link}");
        Some(Script::Simple(out).after(made))
    }),
    command("busybox-env", Wrapper, |c, _| {
        behind(c, &["busybox", "env"])
    }),
    command("busybox-time", Wrapper, |c, _| {
        behind(c, &["busybox", "time"])
    }),
    command("busybox-timeout", Wrapper, |c, _| {
        behind(c, &["busybox", "timeout", "5"])
    }),
    whole("busybox-env-bash", Wrapper, |s, _| {
        wrap_text(s, &["busybox", "env", "A=1", "bash", "-c"])
    }),
    whole("busybox-timeout-bash", Wrapper, |s, _| {
        wrap_text(s, &["busybox", "timeout", "5", "bash", "-c"])
    }),
    whole("busybox-start-stop-daemon", Wrapper, |s, _| {
        wrap_text(
            s,
            &[
                "busybox",
                "start-stop-daemon",
                "-S",
                "-p",
                "/tmp/none",
                "-x",
                "/bin/bash",
                "--",
                "-c",
            ],
        )
    }),
    whole("busybox-sh", ShellArgument, |s, _| {
        Some(Script::command(&["busybox", "sh", "-c", &for_its_shell(s)]))
    }),
    whole("busybox-ash", ShellArgument, |s, _| {
        Some(Script::command(&[
            "busybox",
            "ash",
            "-c",
            &for_its_shell(s),
        ]))
    }),
    whole("busybox-sh-from-input", ShellInput, |s, _| {
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &for_its_shell(s)]),
            Script::command(&["busybox", "sh"]),
        ]))
    }),
    whole("busybox-sh-from-a-file", ScriptFile, |s, n| {
        let text = single_quoted(&for_its_shell(s));
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} > /tmp/{n}; busybox sh /tmp/{n}"
        )))
    }),
    whole("busybox-run-parts", ScriptFile, |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "mkdir /tmp/{n}; printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}/a; chmod +x /tmp/{n}/a; busybox run-parts /tmp/{n}"
        )))
    }),
    whole("busybox-awk-system", Interpreter, |s, _| {
        awk(s, |text| format!("BEGIN {{ system(\"{text}\") }}"))
    }),
    whole("busybox-awk-pipe", Interpreter, |s, _| {
        awk(s, |text| {
            format!("BEGIN {{ while ((\"{text}\" | getline l) > 0) print l }}")
        })
    }),
    whole("busybox-xargs-bash", Xargs, |s, _| {
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\0", &s.print()]),
            Script::command(&["busybox", "xargs", "-0", "bash", "-c"]),
        ]))
    }),
    command("busybox-find-exec", Find, |c, _| {
        parts(c).filter(|_| is_its_own(c))?;
        let front = ["busybox", "find", "/tmp", "-maxdepth", "0", "-exec"];
        Some(found_once(&front, c, "\\;"))
    }),
    whole("busybox-find-exec-bash", Find, |s, _| {
        let front = ["busybox", "find", "/tmp", "-maxdepth", "0", "-exec"];
        let bash = Simple::of(&["bash", "-c", &s.print()]);
        Some(found_once(&front, &bash, "\\;"))
    }),
];
