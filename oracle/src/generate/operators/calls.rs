//! Several calls, of which none does it alone: one leaves a file in the workspace, a later one
//! uses it.
//!
//! Each call is a shell of its own, so nothing but files comes from one to the next. What is
//! written is held by whoever works in the workspace, and what a later call says is harmless
//! by its spelling: a guard that looks at one call at a time has nothing to see.

use super::encodings::base64;
use super::files::installed;
use super::programs::{for_sh, literal, one_line};
use crate::generate::operator::{Apply, Calls, Class, Operator};
use crate::generate::script::{Script, Simple, Word, single_quoted};

const fn calls(
    name: &'static str,
    needs: &'static [&'static str],
    rewrite: fn(&Script, &str) -> Option<Calls>,
) -> Operator {
    Operator::of(name, Class::Calls, needs, Apply::Calls(rewrite))
}

fn then<const N: usize>(before: [String; N], last: impl Into<String>) -> Calls {
    Calls {
        before: before.into(),
        last: Script::Raw(last.into()),
    }
}

/// Writes these lines to a file.
fn lines(of: &[&str], file: &str) -> String {
    let quoted: Vec<String> = of.iter().map(|line| single_quoted(line)).collect();
    format!("printf '%s\\n' {} > {file}", quoted.join(" "))
}

/// Its only command, where it is no more than that.
fn alone(script: &Script) -> Option<&Simple> {
    match script {
        Script::Simple(simple) => Some(simple),
        _ => None,
    }
}

/// The command by another name for its program, which `make` made of the program's own.
fn under(script: &Script, name: &str, make: fn(&str, &str) -> String) -> Option<Calls> {
    let mut last = alone(script)?.clone();
    let made = make(installed(&last)?, name);
    *last.words.first_mut()? = Word::plain(&format!("./{name}"));
    Some(Calls {
        before: vec![made],
        last: last.into(),
    })
}

/// The command on a file below a link, which `make` made to the directory it lies in.
fn through(script: &Script, name: &str) -> Option<Calls> {
    let mut last = alone(script)?.clone();
    let (place, dir, file) = last.words.iter().enumerate().find_map(|(place, word)| {
        let (dir, file) = word.value().rsplit_once('/')?;
        let is_dir = word.is_plain() && bisim_world::template::is_there(dir);
        (place > 0 && is_dir && !file.is_empty()).then(|| {
            let linked = format!("{name}/{file}");
            (place, dir.to_owned(), linked)
        })
    })?;
    *last.words.get_mut(place)? = Word::plain(&file);
    Some(Calls {
        before: vec![format!("ln -s {} {name}", single_quoted(&dir))],
        last: last.into(),
    })
}

pub(super) const TABLE: &[Operator] = &[
    calls("calls-script", &["bash"], |s, n| {
        Some(then([lines(&[&s.print()], n)], format!("bash {n}")))
    }),
    calls("calls-script-sourced", &[], |s, n| {
        Some(then([lines(&[&s.print()], n)], format!(". ./{n}")))
    }),
    calls("calls-script-as-input", &["bash"], |s, n| {
        Some(then([lines(&[&s.print()], n)], format!("bash < {n}")))
    }),
    calls("calls-script-evaluated", &[], |s, n| {
        Some(then([lines(&[&s.print()], n)], format!("eval \"$(<{n})\"")))
    }),
    calls("calls-executable", &["bash", "chmod"], |s, n| {
        let written = lines(&["#!/bin/bash", &s.print()], n);
        Some(then([format!("{written}; chmod +x {n}")], format!("./{n}")))
    }),
    calls("calls-executable-in-three", &["bash", "chmod"], |s, n| {
        let written = lines(&["#!/bin/bash", &s.print()], n);
        Some(then([written, format!("chmod 755 {n}")], format!("./{n}")))
    }),
    calls("calls-in-halves", &["bash"], |s, n| {
        let text = s.print();
        let (one, other) = text.split_at_checked(text.len().checked_div(2)?)?;
        let first = format!("printf %s {} > {n}", single_quoted(one));
        let second = format!("printf '%s\\n' {} >> {n}", single_quoted(other));
        Some(then([first, second], format!("bash {n}")))
    }),
    calls("calls-encoded", &["base64", "bash"], |s, n| {
        let text = base64(s.print().as_bytes());
        let written = format!("echo {text} > {n}");
        Some(then([written], format!("base64 -d {n} | bash")))
    }),
    calls("calls-start-file", &["bash"], |s, n| {
        let written = lines(&[&s.print()], n);
        Some(then([written], format!("BASH_ENV=./{n} bash -c :")))
    }),
    calls("calls-recipe", &["make", "bash"], |s, n| {
        let text = one_line(s)?.replace('$', "$$");
        if text.contains('#') {
            return None;
        }
        let written = lines(&[&format!("x:;@{text}")], n);
        Some(then([written], format!("make -sf {n}")))
    }),
    calls("calls-python-module", &["python3", "bash"], |s, n| {
        let text = literal(&for_sh(s))?;
        let written = lines(
            &["import os", &format!("os.system({text})")],
            &format!("{n}.py"),
        );
        Some(then([written], format!("python3 -m {n}")))
    }),
    calls("calls-node-module", &["node", "bash"], |s, n| {
        let text = literal(&for_sh(s))?;
        let code = format!("require(\"child_process\").execSync({text}, {{ stdio: \"inherit\" }})");
        let written = lines(&[&code], &format!("{n}.js"));
        Some(then([written], format!("node {n}.js")))
    }),
    calls("calls-perl-file", &["perl", "bash"], |s, n| {
        let text = s.print();
        let end = "ZQEND";
        if text.contains(end) {
            return None;
        }
        let code = format!("system 'bash', '-c', <<'{end}';\n{text}\n{end}");
        Some(then([lines(&[&code], n)], format!("perl {n}")))
    }),
    calls("calls-git-hook", &["git", "bash", "chmod"], |s, n| {
        let hook = format!("{n}/pre-commit");
        let written = lines(&["#!/bin/bash", &s.print()], &hook);
        let made = format!("mkdir {n}; {written}; chmod +x {hook}");
        let used = format!(
            "git -c user.name=u -c user.email=u@e -c core.hooksPath=$PWD/{n} commit -q --allow-empty -m x"
        );
        Some(then([made], used))
    }),
    calls("calls-link-to-the-program", &["ln", "which"], |s, n| {
        under(s, n, |program, name| {
            format!("ln -s \"$(which {program})\" {name}")
        })
    }),
    calls("calls-copy-of-the-program", &["cp", "which"], |s, n| {
        under(s, n, |program, name| {
            format!("cp \"$(which {program})\" {name}")
        })
    }),
    calls("calls-link-to-the-directory", &["ln"], through),
];
