//! Interpreters that are started before their script is known.
//!
//! What for: most commands are `bash -c`, `sh -c` or `python3 -c`, and loading
//! the interpreter is most of their cost. So a waiting sandbox may hold an
//! interpreter that is loaded already and blocks in a read; the script reaches
//! it in a memory file, and it runs it as if it had come after `-c`.
//!
//! Why so narrow: everything an interpreter learns when it starts (its own
//! name, arguments, environment, working directory) is the same in the command
//! that gets it, or it is not used. What `-c` would do differently with the
//! script, such as the words of a syntax error, is done by starting the
//! interpreter once more in the same process. What remains different is listed
//! in decision 0041.
//!
//! It must never hold anything of a command before that command's permit is
//! spent: a started interpreter has seen the opening lines below and no data.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::MemfdFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use super::root::EXCHANGE_DIR;
use super::spec::Program;
use crate::step::{AtStep, Step, StepError};

/// Where the interpreter finds the memory file with the script.
pub(crate) const SCRIPT_NUMBER: i32 = 8;
/// Where it waits for a line that says that the script is there.
pub(crate) const SIGNAL_NUMBER: i32 = 9;

/// A longer script gains nothing.
const SCRIPT_BYTES_MAX: usize = 1 << 20;

/// Reads the script into a function, which checks all of it, and calls that.
/// If it does not parse, the shell starts again and says so itself.
const DASH: &str = r#"read -r _h <&9 || exit 0; . /proc/self/fd/8; exec 9<&- 7>&2 2>/dev/null; trap 'exec 2>&7 7>&- 8<&-; exec PROGRAM -c "$_h" "$0" "$@"' EXIT; eval "_h() { exec 2>&7 7>&- 8<&-; trap - EXIT; unset -f _h; unset _h; $_h
}"; _h "$@""#;

/// The same, but the function is only the check: a script at the top level
/// of a shell and one in a function differ more in this one.
const BASH: &str = r#"read -r _h <&9 || exit 0; . /proc/self/fd/8; exec 9<&- 8<&-; if eval "_h() { :;"$'\n'"$_h"$'\n'"}" 2>/dev/null; then unset -f _h; SECONDS=0 BASH_EXECUTION_STRING=$_h; eval "unset _h;$_h"; else exec -a "$0" PROGRAM -c "$_h" "$0" "$@"; fi"#;

/// A traceback begins in the script, and newer versions, which show its lines,
/// start again.
const PYTHON: &str = r#"def _h():
    import os, sys
    if not os.read(9, 1):
        os._exit(0)
    text = os.pread(8, os.fstat(8).st_size, 0).decode()
    os.close(8)
    os.close(9)
    if sys.version_info >= (3, 13):
        os.execv("PROGRAM", ["PROGRAM", "-c", text] + sys.argv[1:])
    names = globals()
    del names["_h"]
    try:
        exec(compile(text, "<string>", "exec", dont_inherit=True), names)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        trace = error.__traceback__.tb_next
        error.__traceback__ = trace
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error, trace)
    else:
        return
    raise SystemExit(1)
_h()"#;

/// Which interpreters may be started before their script is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreters {
    /// `dash`, and `sh` where it is that.
    pub dash: bool,
    /// `bash`.
    pub bash: bool,
    /// `python3`.
    pub python: bool,
}

impl Interpreters {
    /// All of them.
    pub const ALL: Self = Self {
        dash: true,
        bash: true,
        python: true,
    };
    /// Every interpreter starts with its script.
    pub const NONE: Self = Self {
        dash: false,
        bash: false,
        python: false,
    };

    /// From names: `sh`, `dash`, `bash`, `python3`.
    ///
    /// # Errors
    /// The first name that is none of these.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        let mut these = Self::NONE;
        for name in names {
            match name {
                "sh" | "dash" => these.dash = true,
                "bash" => these.bash = true,
                "python3" => these.python = true,
                other => return Err(other),
            }
        }
        Ok(these)
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            dash: self.dash && other.dash,
            bash: self.bash && other.bash,
            python: self.python && other.python,
        }
    }

    fn has(self, language: Language) -> bool {
        match language {
            Language::Dash => self.dash,
            Language::Bash => self.bash,
            Language::Python => self.python,
        }
    }
}

/// The languages this can be done for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Dash,
    Bash,
    Python,
}

/// Which interpreter is started, and everything it learns from that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    language: Language,
    /// The command, with the opening lines for a script and no inputs.
    opening: Program,
}

/// A started interpreter, seen from outside.
#[derive(Debug)]
pub(crate) struct Started {
    recipe: Recipe,
    script: OwnedFd,
    signal: OwnedFd,
    /// Where its output comes from.
    pub stdout: OwnedFd,
    /// Where its errors come from, unless they are merged.
    pub stderr: Option<OwnedFd>,
}

/// The descriptors that go to a started interpreter, in the order it expects.
#[derive(Debug)]
pub(crate) struct Inside {
    descriptors: Vec<OwnedFd>,
}

impl Recipe {
    /// How the interpreter of this command would be started before, if it is
    /// one of these and can be, and what it would have to be sent.
    pub(crate) fn of(program: &Program, these: Interpreters) -> Option<(Self, Vec<u8>)> {
        let [name, option, script, ..] = program.argv.as_slice() else {
            return None;
        };
        if option != b"-c" || !program.env.iter().all(|(name, _)| harmless(name)) {
            return None;
        }
        let path = system_program(name, &program.env)?;
        let language = Language::of(&path).filter(|language| these.has(*language))?;
        let message = language.message(script, &program.inputs)?;
        let opening = language.opening().replace("PROGRAM", path.to_str()?);
        let mut argv = program.argv.clone();
        *argv.get_mut(2)? = opening.into_bytes();
        let opening = Program {
            argv,
            inputs: Vec::new(),
            interpreter: true,
            ..program.clone()
        };
        Some((Self { language, opening }, message))
    }

    /// What the waiting process is told to become.
    pub(crate) fn opening(&self) -> &Program {
        &self.opening
    }

    /// Makes what both ends need; `null` becomes its input.
    pub(crate) fn start(&self, null: OwnedFd) -> Result<(Started, Inside), StepError> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).at(Step::StartSpawner, "pipe");
        let (stdout, stdout_inside) = pipe()?;
        rustix::fs::fcntl_setfl(&stdout, rustix::fs::OFlags::NONBLOCK)
            .at(Step::StartSpawner, "pipe")?;
        let mut descriptors = vec![null, stdout_inside];
        let stderr = if self.opening.merge_stderr {
            None
        } else {
            let (stderr, stderr_inside) = pipe()?;
            rustix::fs::fcntl_setfl(&stderr, rustix::fs::OFlags::NONBLOCK)
                .at(Step::StartSpawner, "pipe")?;
            descriptors.push(stderr_inside);
            Some(stderr)
        };
        let script = rustix::fs::memfd_create(c"hermitcrab-script", MemfdFlags::CLOEXEC)
            .at(Step::StartSpawner, "script")?;
        descriptors.push(script.try_clone().at(Step::StartSpawner, "script")?);
        let (signal_inside, signal) = pipe()?;
        descriptors.push(signal_inside);
        let started = Started {
            recipe: self.clone(),
            script,
            signal,
            stdout,
            stderr,
        };
        Ok((started, Inside { descriptors }))
    }
}

impl Inside {
    /// To be sent along with [`Recipe::opening`].
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.descriptors.iter().map(AsFd::as_fd).collect()
    }
}

impl Started {
    /// Whether it was started as this command's interpreter would be.
    pub(crate) fn is_for(&self, recipe: &Recipe) -> bool {
        self.recipe == *recipe
    }

    /// Hands the message over and lets it go.
    pub(crate) fn run(&self, message: &[u8]) -> io::Result<()> {
        let mut done = 0_usize;
        while let Some(rest) = message.get(done..).filter(|rest| !rest.is_empty()) {
            let at = u64::try_from(done).unwrap_or(u64::MAX);
            done = done.saturating_add(rustix::io::pwrite(&self.script, rest, at)?);
        }
        match rustix::io::write(&self.signal, b"\n") {
            // One that has gone says why in its report.
            Ok(_) | Err(rustix::io::Errno::PIPE) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Language {
    fn of(path: &Path) -> Option<Self> {
        let name = |path: &Path| path.file_name()?.to_str().map(str::to_owned);
        match name(path)?.as_str() {
            "bash" => Some(Self::Bash),
            "dash" => Some(Self::Dash),
            // Which shell that is differs between systems.
            "sh" => {
                let link = std::fs::read_link(path).ok()?;
                (name(&link)? == "dash").then_some(Self::Dash)
            }
            "python3" => Some(Self::Python),
            _ => None,
        }
    }

    fn opening(self) -> &'static str {
        match self {
            Self::Dash => DASH,
            Self::Bash => BASH,
            Self::Python => PYTHON,
        }
    }

    /// What the opening lines read; nothing for what they could not carry out
    /// as `-c` does.
    fn message(self, script: &[u8], inputs: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u8>> {
        let length = inputs.iter().fold(script.len(), |length, (_, content)| {
            length.saturating_add(content.len())
        });
        if length > SCRIPT_BYTES_MAX || script.contains(&0) {
            return None;
        }
        match self {
            Self::Python => {
                (inputs.is_empty() && std::str::from_utf8(script).is_ok()).then(|| script.to_vec())
            }
            // A word of its own from the next line on, unless the lines were
            // read all at once.
            Self::Dash if contains(script, b"alias") => None,
            // Each line of a trace begins with as many marks as there are `eval`s around it.
            Self::Bash if traces(script) || inputs.iter().any(|(_, text)| traces(text)) => None,
            Self::Dash | Self::Bash => {
                let mut message = Vec::with_capacity(length.saturating_add(64));
                for (name, content) in inputs {
                    if !is_plain(name) || content.contains(&0) {
                        return None;
                    }
                    message.extend_from_slice(b"printf %s ");
                    quote(content, &mut message);
                    message.extend_from_slice(b" > ");
                    message.extend_from_slice(EXCHANGE_DIR.as_bytes());
                    message.push(b'/');
                    message.extend_from_slice(name);
                    message.push(b'\n');
                }
                message.extend_from_slice(b"_h=");
                quote(script, &mut message);
                message.push(b'\n');
                Some(message)
            }
        }
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// Whether a shell may be told in these lines to show what it carries out.
fn traces(text: &[u8]) -> bool {
    let is_option = |word: &[u8]| word.starts_with(b"-") && word.contains(&b'x');
    contains(text, b"xtrace")
        || text
            .split(|byte| {
                matches!(
                    byte,
                    b'\n' | b';' | b'&' | b'|' | b'(' | b'{' | b'\'' | b'"'
                )
            })
            .any(|part| {
                let mut words = part
                    .split(u8::is_ascii_whitespace)
                    .skip_while(|word| *word != b"set");
                words.next().is_some() && words.any(is_option)
            })
}

/// A file name that needs no quotes.
fn is_plain(name: &[u8]) -> bool {
    !name.is_empty()
        && !name.starts_with(b".")
        && !name.starts_with(b"-")
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// As one word of a shell, whatever it holds.
fn quote(text: &[u8], to: &mut Vec<u8>) {
    to.push(b'\'');
    for part in text.split_inclusive(|byte| *byte == b'\'') {
        match part.strip_suffix(b"'") {
            Some(part) => {
                to.extend_from_slice(part);
                to.extend_from_slice(b"'\\''");
            }
            None => to.extend_from_slice(part),
        }
    }
    to.push(b'\'');
}

/// Variables that change what the opening lines do.
fn harmless(name: &[u8]) -> bool {
    const CHANGING: &[&[u8]] = &[
        b"_h",
        b"ENV",
        b"BASH_ENV",
        b"BASHOPTS",
        b"BASH_COMPAT",
        b"BASH_XTRACEFD",
        b"IFS",
        b"POSIXLY_CORRECT",
        b"SHELLOPTS",
    ];
    const PYTHON: &[&[u8]] = &[
        b"PYTHONDONTWRITEBYTECODE",
        b"PYTHONHASHSEED",
        b"PYTHONIOENCODING",
        b"PYTHONPATH",
        b"PYTHONUNBUFFERED",
        b"PYTHONUTF8",
    ];
    !CHANGING.contains(&name)
        && !name.starts_with(b"BASH_FUNC_")
        && !name.starts_with(b"LD_")
        && (!name.starts_with(b"PYTHON") || PYTHON.contains(&name))
}

/// The program of the system this name leads to, inside as well as outside.
fn system_program(name: &[u8], env: &[(Vec<u8>, Vec<u8>)]) -> Option<PathBuf> {
    let name = std::str::from_utf8(name).ok()?;
    let of_the_system = |dir: &Path| {
        ["/usr", "/bin", "/sbin"]
            .iter()
            .any(|system| dir.starts_with(system))
            && !dir.components().any(|part| part.as_os_str() == "..")
    };
    if name.contains('/') {
        let path = PathBuf::from(name);
        return (of_the_system(path.parent()?)).then_some(path);
    }
    let path = env.iter().find(|(name, _)| name == b"PATH");
    let path = path.map_or(Some("/usr/bin:/bin"), |(_, value)| {
        std::str::from_utf8(value).ok()
    })?;
    for dir in path.split(':').filter(|dir| !dir.is_empty()) {
        let dir = Path::new(dir);
        if !of_the_system(dir) {
            return None;
        }
        let found = dir.join(name);
        if found.exists() {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(argv: &[&str]) -> Program {
        Program {
            argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
            env: vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())],
            cwd: b"/".to_vec(),
            inputs: Vec::new(),
            merge_stderr: false,
            on_terminal: false,
            interpreter: false,
            proxied: Default::default(),
        }
    }

    #[test]
    fn only_the_script_and_the_inputs_are_left_out_of_a_recipe() {
        let of =
            |program: &Program| Recipe::of(program, Interpreters::ALL).map(|(recipe, _)| recipe);
        let plain = program(&["bash", "-c", "true"]);
        let recipe = of(&plain).unwrap();
        assert_eq!(of(&program(&["bash", "-c", "false"])), Some(recipe.clone()));
        let mut other = plain.clone();
        other.inputs.push((b"in".to_vec(), b"x".to_vec()));
        assert_eq!(of(&other), Some(recipe.clone()));
        for changed in [
            program(&["/bin/bash", "-c", "true"]),
            program(&["bash", "-c", "true", "name"]),
            Program {
                cwd: b"/tmp".to_vec(),
                ..plain.clone()
            },
            Program {
                merge_stderr: true,
                ..plain.clone()
            },
            Program {
                env: Vec::new(),
                ..plain.clone()
            },
        ] {
            assert_ne!(of(&changed).unwrap(), recipe, "{changed:?}");
        }
    }

    #[test]
    fn what_is_no_interpreter_of_the_system_or_would_behave_otherwise_is_left_alone() {
        for argv in [
            &["ls", "-c", "x"][..],
            &["bash", "-lc", "x"],
            &["bash", "x"],
            &["/work/bash", "-c", "x"],
            &["/usr/../work/bash", "-c", "x"],
            &["dash", "-c", "alias x=y"],
            &["bash", "-c", "a\0b"],
            &["bash", "-c", "cd d && set -ex; a"],
            &["bash", "-c", "(set -u -x\na)"],
            &["bash", "-c", "set -o xtrace"],
        ] {
            assert!(
                Recipe::of(&program(argv), Interpreters::ALL).is_none(),
                "{argv:?}"
            );
        }
        for (name, value) in [
            ("PATH", "/work/bin:/usr/bin"),
            ("BASH_ENV", "/work/x"),
            ("BASH_FUNC_read%%", "() { true; }"),
            ("SHELLOPTS", "xtrace"),
            ("LD_PRELOAD", "/work/x.so"),
        ] {
            let mut command = program(&["bash", "-c", "x"]);
            command.env.retain(|(known, _)| known != name.as_bytes());
            command.env.push((name.into(), value.into()));
            assert!(Recipe::of(&command, Interpreters::ALL).is_none(), "{name}");
        }
        for (name, content) in [("a b", ""), ("command", "set -x")] {
            let mut command = program(&["bash", "-c", "x"]);
            command.inputs.push((name.into(), content.into()));
            assert!(Recipe::of(&command, Interpreters::ALL).is_none(), "{name}");
        }
        for quick in ["set -e; a -x", "grep -x set f", "echo set - x"] {
            let command = program(&["bash", "-c", quick]);
            assert!(Recipe::of(&command, Interpreters::ALL).is_some(), "{quick}");
        }
    }

    #[test]
    fn an_interpreter_that_was_not_chosen_is_started_with_its_script() {
        let bash = program(&["bash", "-c", "true"]);
        for (names, is_there) in [
            (&["bash"][..], true),
            (&["sh", "dash", "python3"], false),
            (&[], false),
        ] {
            let these = Interpreters::from_names(names.iter().copied()).unwrap();
            assert_eq!(Recipe::of(&bash, these).is_some(), is_there, "{names:?}");
        }
        assert_eq!(Interpreters::from_names(["bash", "perl"]), Err("perl"));
    }

    #[test]
    fn a_script_is_one_word_whatever_it_holds() {
        let mut word = Vec::new();
        quote(b"it's 'x' \\ $y `z`\n\xff'", &mut word);
        assert_eq!(word, b"'it'\\''s '\\''x'\\'' \\ $y `z`\n\xff'\\'''");
    }
}
