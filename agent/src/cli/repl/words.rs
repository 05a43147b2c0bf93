//! What a line at the prompt means: one of the commands, or plain language.
//!
//! A command is one only in its own form, so that "explain the readme" and
//! "help me with this" are plain language. A slash in front makes a command of
//! a line in any case, and an exclamation mark a command for the sandbox; a path at the
//! beginning (`/etc/hosts is empty`) is none.
//!
//! A single word that is a command, but for what belongs to it or for a slip of
//! the finger, is held back, and so is one word behind `help` or `mode` that means
//! nothing there: it was hardly meant for the model.

use hermitcrab_core::approval::Asking;

use crate::{config::keys, slash};

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Nothing.
    Nothing,
    /// The commands, or this one, explained.
    Help(Option<&'static str>),
    /// What is below a directory of the workspace.
    Tree(Option<String>),
    /// What the agent sees.
    Mounts,
    /// What the agent holds.
    Caps,
    /// Another conversation.
    New,
    /// A conversation that was had before.
    Resume(String),
    /// Grants for this session.
    Grant(Vec<String>),
    /// When the agent asks: said, or set for this session.
    Mode(Option<Asking>),
    /// Ends a grant of this session.
    Revoke(String),
    /// Takes back the last so many commits.
    Undo(usize),
    /// Takes back this commit.
    UndoCommit(u64),
    /// A command of the program, with its arguments.
    Program(Vec<String>),
    /// The last so many records of the ledger.
    Audit(usize),
    /// A command, shown and not kept.
    DryRun(String),
    /// A request that is planned, or `--plan` and a file.
    Plan(String),
    /// A command on a copy.
    Run(String),
    /// The same with a terminal of its own; a shell, if none is named.
    OnTerminal(String),
    /// An empty screen.
    Clear,
    /// The end.
    Exit,
    /// Plain language.
    Say(String),
    /// A command in a form it does not have.
    Wrong(String),
}

/// Every command and what it does, in the order of the help.
pub const COMMANDS: [(&str, &str); 24] = [
    ("help [COMMAND]", "this list, or one of it"),
    ("tree [DIR]", "what is in the workspace"),
    (
        "mounts",
        "the directories the agent sees, and the isolation around it",
    ),
    ("caps", "what the agent holds now, and what is kept"),
    (
        "grant VERB=PATH",
        "grant something for this session, such as fs.modify=src",
    ),
    ("revoke GRANT", "end a grant, as `caps` names it"),
    (
        "mode [MODE]",
        "what becomes of what is not granted, for this session: prompt, approve_all or reject_all",
    ),
    (
        "undo [N]",
        "take back the last change, or the last N; `undo --list` shows them, `undo commit N` takes back that one",
    ),
    (
        "dry-run COMMAND",
        "run a command, show what it would change, keep nothing",
    ),
    (
        "plan \"REQUEST\"",
        "have it planned, see the plan, and carry it out; `plan --plan FILE` takes one of yours",
    ),
    ("!COMMAND", "run a command on a copy of the workspace"),
    (
        "!![COMMAND]",
        "the same with a terminal, for an editor, a pager or the like; `!!` alone is a shell",
    ),
    ("new", "begin another conversation with the model"),
    (
        "conversations [--all]",
        "those that are kept; `conversations show ID` prints one",
    ),
    ("resume ID", "go on with one of them"),
    (
        "explain VERB PATH",
        "what would become of an effect, and by which rule",
    ),
    (
        "config [show|set|reset|add-directory|remove-directory|backend|import]",
        "the configuration",
    ),
    ("model [list|check|load]", "the models you have"),
    ("servers", "the servers of tools outside"),
    (
        "cron [list|grant|remove]",
        "the jobs that are to be done later",
    ),
    (
        "audit [N]",
        "the last records of the ledger; `audit verify` checks it",
    ),
    ("doctor", "what isolates commands on this machine"),
    ("clear", "an empty screen"),
    ("exit", "leave; ^D does, too"),
];

/// The first words of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS
        .iter()
        .filter_map(|(form, _)| form.split(' ').next())
        .filter(|name| !name.starts_with('!'))
        .chain(["quit", "remembered", "settings"])
}

/// Commands of the program that work at the prompt, and how they may go on.
const PROGRAM: [(&str, &[&str]); 9] = [
    (
        "config",
        &[
            "show",
            "get",
            "path",
            "set",
            "reset",
            "add-directory",
            "remove-directory",
            "backend",
            "import",
        ],
    ),
    ("audit", &["verify", "head"]),
    ("doctor", &[]),
    ("model", &["list", "check", "load"]),
    ("servers", &[]),
    ("cron", &["list", "grant", "remove"]),
    ("remembered", &["list", "clear"]),
    ("conversations", &["show", "forget", "--all"]),
    ("caps", &["list", "grant", "confirm", "revoke", "share"]),
];

/// Reads a line.
#[must_use]
pub fn read(line: &str) -> Line {
    if let Some(command) = line.trim().strip_prefix("!!") {
        return Line::OnTerminal(command.trim().to_owned());
    }
    if let Some(command) = line.trim().strip_prefix('!') {
        return Line::Run(command.trim().to_owned());
    }
    // A backslash at the end of a line asked for the next one.
    let line = line.replace("\\\n", "\n");
    let line = line.trim();
    if line.is_empty() {
        return Line::Nothing;
    }
    let typed = line;
    let (line, is_command) = match line.strip_prefix('/') {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    if let Some(found) = command(line) {
        return found;
    }
    // Planning takes any words, and so does plain language: the slash tells.
    let request = line.strip_prefix("plan ").map(str::trim);
    if let Some(request) = request.filter(|request| is_command && !request.is_empty()) {
        return Line::Plan(request.to_owned());
    }
    if is_command && slash::begins_with_path(typed) {
        return Line::Say(typed.to_owned());
    }
    if is_command {
        let name = line.split_whitespace().next().unwrap_or_default();
        if let Some(why) = elsewhere(name) {
            return Line::Wrong(why);
        }
        let meant = keys::nearest(name, names());
        let hint = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        return Line::Wrong(format!("there is no command `/{name}` of this form{hint}"));
    }
    match slip(line) {
        Some(why) => Line::Wrong(why),
        None => Line::Say(line.to_owned()),
    }
}

/// The command a short line begins with and is no form of, so that it is plain language.
#[must_use]
pub fn in_no_form_of(line: &str) -> Option<&'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = words.first().filter(|_| words.len() <= SHORT)?;
    names().find(|known| known == name)
}

/// So many words may be a command that was meant otherwise; more are hardly one.
const SHORT: usize = 3;

/// What was meant, where a line is nearly a command and no plain language.
fn slip(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (first, second, third) = (words.next()?, words.next(), words.next());
    match (first, second) {
        // `help Rome` is a wish.
        ("help", Some(about)) if third.is_none() => {
            elsewhere(about).or_else(|| nearly(about, "help "))
        }
        ("mode", Some(mode)) if third.is_none() => Some(format!(
            "there is no mode `{mode}`, but prompt, approve_all and reject_all"
        )),
        // `grant fs.modify notes`: what follows is a verb, and its place stands apart.
        ("grant", Some(verb)) if GRANTED.iter().any(|kind| verb.starts_with(kind)) => {
            Some(format!(
                "a grant is VERB=PATH in one word, such as `grant {}=src`",
                verb.split('=').next().unwrap_or(verb)
            ))
        }
        (_, Some(_)) => None,
        (name, None) => {
            if let Some(why) = elsewhere(name) {
                return Some(why);
            }
            let form = COMMANDS
                .iter()
                .map(|(form, _)| *form)
                .find(|form| form.split(' ').next() == Some(name));
            if let Some(form) = form {
                return Some(format!("`{name}` alone says too little: `{form}`"));
            }
            nearly(name, "")
        }
    }
}

/// What is said of a word that is a command but for a slip of the finger, behind what was to be
/// done with it.
fn nearly(name: &str, behind: &str) -> Option<String> {
    let meant = names().find(|known| strsim::osa_distance(name, known) == 1)?;
    Some(format!(
        "there is no command `{name}`; did you mean `{behind}{meant}`? More words go to the model"
    ))
}

/// What is said of a command of the program that is none of the prompt's.
fn elsewhere(name: &str) -> Option<String> {
    let how = match name {
        "session" => "; `caps` shows what this session holds, and `mode` sets when you are asked",
        "exec" | "call" => "; here a command begins with `!`",
        "chat" => "; here your words are said to the model as they are",
        "run" => "; here it is `plan`",
        "acp" | "completions" | "man" => "",
        _ => return None,
    };
    Some(format!(
        "`{name}` is a command of the program, `hermitcrab {name}`, and none of the prompt{how}"
    ))
}

/// What a grant looks like.
const A_GRANT: &str = "a grant is VERB=PATH, such as `grant fs.modify=src`";

/// How a verb of a grant begins.
const GRANTED: [&str; 4] = ["fs.", "proc.", "net.", "model."];

fn command(line: &str) -> Option<Line> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    match (name, words.as_slice()) {
        ("help" | "?", []) => Some(Line::Help(None)),
        ("help" | "?", [about]) => help_on(about.trim_start_matches('/')),
        ("exit" | "quit", []) => Some(Line::Exit),
        ("clear", []) => Some(Line::Clear),
        ("mounts", []) => Some(Line::Mounts),
        ("tree", []) => Some(Line::Tree(None)),
        ("tree", [dir]) => Some(Line::Tree(Some(dir.clone()))),
        ("caps", []) => Some(Line::Caps),
        ("new", []) => Some(Line::New),
        ("resume", [id]) if id.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Some(Line::Resume(id.clone()))
        }
        ("settings", []) => Some(Line::Program(vec!["config".into(), "show".into()])),
        ("audit", []) => Some(Line::Audit(10)),
        ("audit", [number]) if number.parse::<usize>().is_ok() => {
            number.parse().ok().map(Line::Audit)
        }
        ("undo", []) => Some(Line::Undo(1)),
        ("undo", [list]) if list == "--list" || list == "list" => Some(Line::Undo(0)),
        ("undo", [commit, id]) if commit == "commit" => id.parse().ok().map(Line::UndoCommit),
        ("undo", [number]) => number
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .map(Line::Undo),
        ("grant", [_, ..]) if words.iter().all(|word| word.contains('=')) => {
            Some(Line::Grant(words))
        }
        ("grant", []) => Some(Line::Wrong(A_GRANT.to_owned())),
        ("mode", []) => Some(Line::Mode(None)),
        ("mode", [mode]) => Asking::parse(mode).map(|mode| Line::Mode(Some(mode))),
        ("revoke", [grant]) => Some(Line::Revoke(grant.clone())),
        ("plan", [flag, _]) if flag == "--plan" => Some(Line::Plan(rest.to_owned())),
        ("plan", [first, ..]) if first.starts_with(['"', '\'']) => match split(rest).as_slice() {
            [request] => Some(Line::Plan(request.clone())),
            _ => None,
        },
        ("dry-run", [_, ..]) => Some(Line::DryRun(rest.trim_start_matches('!').to_owned())),
        ("exec" | "run", [dashes, _, ..]) if dashes == "--" => {
            Some(Line::Run(rest.trim_start_matches("--").trim().to_owned()))
        }
        ("explain", [verb, _]) if verb.contains('.') => Some(program(name, words)),
        _ => {
            let (_, follow) = PROGRAM.iter().find(|(known, _)| *known == name)?;
            let goes_on = words
                .first()
                .is_none_or(|first| follow.contains(&first.as_str()) || first.starts_with('-'));
            goes_on.then(|| program(name, split(rest)))
        }
    }
}

/// One line of the help, or what a command of the program says of itself.
fn help_on(name: &str) -> Option<Line> {
    let is_program = PROGRAM.iter().any(|(known, _)| *known == name) || name == "explain";
    if is_program {
        return Some(program(name, vec!["--help".to_owned()]));
    }
    let mut names = COMMANDS
        .iter()
        .filter_map(|(form, _)| form.split(' ').next());
    // `help !` names it by its marks alone.
    let marks = |known: &str| known.starts_with('!') && known.trim_end_matches(IN_A_FORM) == name;
    names
        .find(|known| *known == name || marks(known))
        .map(|name| Line::Help(Some(name)))
}

/// What stands for words in a form.
const IN_A_FORM: [char; 9] = ['C', 'O', 'M', 'A', 'N', 'D', '[', ']', ' '];

fn program(name: &str, words: Vec<String>) -> Line {
    Line::Program(std::iter::once(name.to_owned()).chain(words).collect())
}

/// Words as a person quotes them; nothing else of a shell means anything here.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_begun) = (String::new(), None, false);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                is_begun = true;
            }
            (None, letter) if letter.is_whitespace() => {
                if is_begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                    is_begun = false;
                }
            }
            (None, letter) => word.push(letter),
        }
    }
    if is_begun || !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::approval::Asking;

    use super::{Line, in_no_form_of, read};

    #[test]
    fn a_short_line_that_begins_like_a_command_is_told_of() {
        for (line, name) in [
            ("undo 3 x", Some("undo")),
            ("undo that", Some("undo")),
            ("help me please", Some("help")),
            ("grant me access", Some("grant")),
            ("help me with this", None),
            ("hello there", None),
        ] {
            assert_eq!(read(line), Line::Say(line.to_owned()));
            assert_eq!(in_no_form_of(line), name, "{line}");
        }
    }

    #[test]
    fn one_word_behind_a_command_that_means_nothing_there_is_held_back() {
        for (line, said) in [
            ("help grnat", "did you mean `help grant`?"),
            ("help session", "is a command of the program"),
            ("mode foo", "no mode `foo`"),
            ("grant fs.modify", "VERB=PATH"),
        ] {
            let Line::Wrong(why) = read(line) else {
                panic!("{line} is worked on");
            };
            assert!(why.contains(said), "{line}: {why}");
        }
    }

    #[test]
    fn commands_are_commands_only_in_their_own_form() {
        let check = |line: &str, expected: Line| assert_eq!(read(line), expected, "{line}");
        let say = |line: &str| check(line, Line::Say(line.to_owned()));
        check("  ", Line::Nothing);
        check("help", Line::Help(None));
        check("?", Line::Help(None));
        check("/help", Line::Help(None));
        check("mode", Line::Mode(None));
        check("mode reject_all", Line::Mode(Some(Asking::Refuse)));
        check("cron", Line::Program(vec!["cron".into()]));
        check("servers", Line::Program(vec!["servers".into()]));
        say("mode of transport: which is best?");
        say("servers are down");
        say("session notes, please");
        say("cron tick");
        for name in ["session", "/session", "exec", "chat", "/acp"] {
            let Line::Wrong(why) = read(name) else {
                panic!("{name} is worked on");
            };
            assert!(why.contains("is a command of the program"), "{name}: {why}");
        }
        check("help grant", Line::Help(Some("grant")));
        check("? /undo", Line::Help(Some("undo")));
        let of_its_own = ["config", "--help"].map(str::to_owned);
        check("help config", Line::Program(of_its_own.to_vec()));
        check("quit", Line::Exit);
        check("undo 3", Line::Undo(3));
        check("undo commit 3", Line::UndoCommit(3));
        check("undo --list", Line::Undo(0));
        check("!ls -l", Line::Run("ls -l".into()));
        check(" !!vim a.txt ", Line::OnTerminal("vim a.txt".into()));
        check("!!", Line::OnTerminal(String::new()));
        check("help !", Line::Help(Some("!COMMAND")));
        check("help !!", Line::Help(Some("!![COMMAND]")));
        check(
            "grant fs.modify=src",
            Line::Grant(vec!["fs.modify=src".into()]),
        );
        check("audit 5", Line::Audit(5));
        check("new", Line::New);
        check("resume 1f2e3d4c", Line::Resume("1f2e3d4c".into()));
        check("plan \"sort it\"", Line::Plan("sort it".into()));
        check("/plan sort it", Line::Plan("sort it".into()));
        check("plan --plan a.json", Line::Plan("--plan a.json".into()));
        check(
            "config set models.planner.model 'my model'",
            Line::Program(
                ["config", "set", "models.planner.model", "my model"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
        );
        for line in [
            "help me with this",
            "help me",
            "help Rome",
            "explain the readme",
            "audit my code for bugs",
            "clear the cache directory",
            "undo what you did to a.txt",
            "grant me a wish",
            "tree of life, what is it",
            "exit strategies",
            "plan a trip to Rome",
            "model the data",
            "grant it",
            "hello",
            "yes",
            "thanks",
            "continue",
            "new file, please",
            "resume the work",
            "conversations with my father",
            "helo me",
            "why?",
            "/etc/hosts is what?",
            "/tmp is full",
        ] {
            say(line);
        }
        let wrong = |line: &str, part: &str| {
            let read = read(line);
            assert!(
                matches!(&read, Line::Wrong(why) if why.contains(part)),
                "{line}: {read:?}"
            );
        };
        wrong("plan", "`plan \"REQUEST\"`");
        wrong("revoke", "`revoke GRANT`");
        wrong("dry-run", "`dry-run COMMAND`");
        wrong("explain", "`explain VERB PATH`");
        wrong("hlp", "`help`");
        wrong("cap", "`caps`");
        wrong("udno", "`undo`");
        wrong("quti", "`quit`");
        wrong("grant fs.modify notes.txt", "`grant fs.modify=src`");
        wrong("grant fs.read=a b", "`grant fs.read=src`");
        check("one \\\n two", Line::Say("one \n two".into()));
        assert!(matches!(read("/hlep"), Line::Wrong(why) if why.contains("`help`")));
    }
}
