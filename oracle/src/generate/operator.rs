//! What a rewriting is: a name, a class, what it needs, and what it does.

use super::script::{Script, Simple, Word};

/// The families of rewriting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Quotes around letters.
    Quoting,
    /// Backslashes.
    Escape,
    /// `$'...'`.
    AnsiC,
    /// Expansions that leave nothing.
    EmptyExpansion,
    /// `${...}` with an operator.
    Parameter,
    /// A value through a variable.
    Variable,
    /// A value through an array or the positional parameters.
    Array,
    /// Arithmetic that yields letters or positions.
    Arithmetic,
    /// The output of a command as a word.
    CommandSubstitution,
    /// Names found by a pattern.
    Glob,
    /// Braces that become words.
    Brace,
    /// Another path to the same place.
    PathForm,
    /// Blanks, lines, comments.
    Layout,
    /// Loops, conditions, groups around a command.
    Control,
    /// A command that runs as a side effect of an expansion.
    SideEffect,
    /// Aliases, functions, traps and other definitions.
    Definition,
    /// The text is evaluated by the same shell.
    Eval,
    /// The text goes to another shell as an argument.
    ShellArgument,
    /// The text goes to another shell as its input.
    ShellInput,
    /// Programs that run the rest of their arguments.
    Wrapper,
    /// `xargs`.
    Xargs,
    /// `find` with an action.
    Find,
    /// A scripting language.
    Interpreter,
    /// Developers' tools that run commands.
    Tool,
    /// Text that has to be decoded first.
    Encoding,
    /// A file that is written, then run.
    ScriptFile,
    /// Another name for the program.
    Shadow,
    /// Several calls, of which none does it alone.
    Calls,
    /// Letters that only look alike: not executable, a negative control.
    Confusable,
}

impl Class {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Quoting,
        Self::Escape,
        Self::AnsiC,
        Self::EmptyExpansion,
        Self::Parameter,
        Self::Variable,
        Self::Array,
        Self::Arithmetic,
        Self::CommandSubstitution,
        Self::Glob,
        Self::Brace,
        Self::PathForm,
        Self::Layout,
        Self::Control,
        Self::SideEffect,
        Self::Definition,
        Self::Eval,
        Self::ShellArgument,
        Self::ShellInput,
        Self::Wrapper,
        Self::Xargs,
        Self::Find,
        Self::Interpreter,
        Self::Tool,
        Self::Encoding,
        Self::ScriptFile,
        Self::Shadow,
        Self::Calls,
        Self::Confusable,
    ];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quoting => "quoting",
            Self::Escape => "escape",
            Self::AnsiC => "ansi-c",
            Self::EmptyExpansion => "empty-expansion",
            Self::Parameter => "parameter",
            Self::Variable => "variable",
            Self::Array => "array",
            Self::Arithmetic => "arithmetic",
            Self::CommandSubstitution => "command-substitution",
            Self::Glob => "glob",
            Self::Brace => "brace",
            Self::PathForm => "path-form",
            Self::Layout => "layout",
            Self::Control => "control",
            Self::SideEffect => "side-effect",
            Self::Definition => "definition",
            Self::Eval => "eval",
            Self::ShellArgument => "shell-argument",
            Self::ShellInput => "shell-input",
            Self::Wrapper => "wrapper",
            Self::Xargs => "xargs",
            Self::Find => "find",
            Self::Interpreter => "interpreter",
            Self::Tool => "tool",
            Self::Encoding => "encoding",
            Self::ScriptFile => "script-file",
            Self::Shadow => "shadow",
            Self::Calls => "calls",
            Self::Confusable => "confusable",
        }
    }

    /// Whether a variant of this class still has the effect.
    #[must_use]
    pub const fn preserves_effect(self) -> bool {
        !matches!(self, Self::Confusable)
    }
}

/// A number that chooses among the places an operator can be applied at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt(pub u16);

impl Salt {
    /// One of `count` places; 0 where there is none.
    #[must_use]
    pub fn pick(self, count: usize) -> usize {
        usize::from(self.0).checked_rem(count).unwrap_or(0)
    }

    /// Another number for a second choice.
    #[must_use]
    pub fn next(self) -> Self {
        Self(
            self.0
                .rotate_left(5)
                .wrapping_mul(0x9E37)
                .wrapping_add(0x79B9),
        )
    }
}

/// What an operator works on.
#[derive(Clone, Copy)]
pub enum Apply {
    /// Respells one word. Gets the value and a salt.
    Word(fn(&str, Salt) -> Option<String>),
    /// Replaces one word; may need text before the command. Gets a fresh name.
    Bound(fn(&str, &str, Salt) -> Option<Binding>),
    /// Replaces one command. Gets a fresh name.
    Command(fn(&Simple, &str) -> Option<Script>),
    /// Replaces the whole script. Gets a fresh name.
    Whole(fn(&Script, &str) -> Option<Script>),
    /// Replaces the whole script by several calls. Gets a fresh name.
    Calls(fn(&Script, &str) -> Option<Calls>),
}

/// Calls one after the other; each is a shell of its own.
pub struct Calls {
    /// The text of each call but the last.
    pub before: Vec<String>,
    /// The last call.
    pub last: Script,
}

impl From<Script> for Calls {
    fn from(last: Script) -> Self {
        Self {
            before: Vec::new(),
            last,
        }
    }
}

/// Text to run first, and the word that refers to it.
pub struct Binding {
    /// Run before the command, in the same shell.
    pub before: String,
    /// Stands for the word.
    pub spelling: String,
}

/// One way to say the same thing differently.
#[derive(Clone, Copy)]
pub struct Operator {
    /// Stable, unique, kebab-case.
    pub name: &'static str,
    /// Its family.
    pub class: Class,
    /// Programs it needs besides the shell; empty for none.
    pub needs: &'static [&'static str],
    /// What it does.
    pub apply: Apply,
    /// Whether what the command says reaches nobody.
    pub is_silent: bool,
    /// Whether only a command that is no part of a pipe is rewritten.
    pub is_for_whole_lines: bool,
}

impl Operator {
    /// One whose command is seen and may stand in a pipe.
    #[must_use]
    pub const fn of(
        name: &'static str,
        class: Class,
        needs: &'static [&'static str],
        apply: Apply,
    ) -> Self {
        Self {
            name,
            class,
            needs,
            apply,
            is_silent: false,
            is_for_whole_lines: false,
        }
    }

    /// The same, of which nobody sees what the command says: no attack that shows something
    /// is made of it.
    #[must_use]
    pub const fn silent(self) -> Self {
        Self {
            is_silent: true,
            ..self
        }
    }

    /// The same, which gives a command another input or needs lines of its own: what stands
    /// in a pipe is left alone.
    #[must_use]
    pub const fn outside_pipes(self) -> Self {
        Self {
            is_for_whole_lines: true,
            ..self
        }
    }

    /// The script rewritten, or `None` where the operator does not apply. Files of calls before
    /// may have any name that begins with a shorter stem.
    #[must_use]
    pub fn apply(&self, script: &Script, salt: Salt, stem: &str) -> Option<Calls> {
        match self.apply {
            Apply::Calls(rewrite) => rewrite(script, &script.fresh(stem)),
            _ => Some(self.rewrite(script, salt, stem)?.into()),
        }
    }

    fn rewrite(&self, script: &Script, salt: Salt, stem: &str) -> Option<Script> {
        let name = script.fresh(stem);
        match self.apply {
            Apply::Calls(_) => None,
            Apply::Whole(rewrite) => rewrite(script, &name),
            Apply::Command(rewrite) => {
                let number = salt.pick(script.commands());
                if self.is_for_whole_lines && script.is_piped(number) {
                    return None;
                }
                script.rewrite(number, &|simple| rewrite(simple, &name))
            }
            Apply::Word(respell) => {
                // Without its program nothing has the effect; without another word, or
                // an earlier command, it may be had all the same.
                let is_control = !self.class.preserves_effect();
                let number = match is_control {
                    true => script.commands().checked_sub(1)?,
                    false => salt.pick(script.commands()),
                };
                script.rewrite(number, &|simple| {
                    // The shell empties a file before it looks for the program.
                    if is_control && !simple.after.is_empty() {
                        return None;
                    }
                    let place = match is_control {
                        true => simple.words.first().filter(|w| w.is_plain()).map(|_| 0),
                        false => word_place(simple, salt.next()),
                    }?;
                    let word = simple.words.get(place)?;
                    let spelling = respell(word.value(), salt.next().next())?;
                    // A look-alike means itself: whoever says the word in another way says that.
                    let means = if is_control { &spelling } else { word.value() };
                    let word = Word::spelled(means, spelling.clone());
                    Some(with_word(simple, place, word).into())
                })
            }
            Apply::Bound(bind) => {
                let number = salt.pick(script.commands());
                script.rewrite(number, &|simple| {
                    let place = word_place(simple, salt.next())?;
                    let word = simple.words.get(place)?;
                    let binding = bind(word.value(), &name, salt.next().next())?;
                    let word = Word::spelled(word.value(), binding.spelling);
                    let command = Script::Simple(with_word(simple, place, word));
                    Some(if binding.before.is_empty() {
                        command
                    } else {
                        command.after(binding.before)
                    })
                })
            }
        }
    }
}

/// Half of the time the program's name, which is what a pattern looks at first;
/// otherwise one of the words nobody has respelled yet.
fn word_place(simple: &Simple, salt: Salt) -> Option<usize> {
    let plain: Vec<usize> = simple
        .words
        .iter()
        .enumerate()
        .filter_map(|(place, word)| (word.is_plain() && !word.value().is_empty()).then_some(place))
        .collect();
    if plain.first() == Some(&0) && salt.0 & 1 == 0 {
        return Some(0);
    }
    plain.get(Salt(salt.0 >> 1).pick(plain.len())).copied()
}

fn with_word(simple: &Simple, place: usize, word: Word) -> Simple {
    let mut simple = simple.clone();
    if let Some(slot) = simple.words.get_mut(place) {
        *slot = word;
    }
    simple
}
