//! What the shell of a command runs around it.

use std::borrow::Cow;

use hermitcrab_sandbox::net::{is_of_options, is_way_out, way_out_among};
use hermitcrab_sandbox::spawn::EXCHANGE_DIR;

use super::{super::agent_state::AgentState, CommandInput};

/// Whether a session's shell is as it was when it was opened. Only then does it
/// put aliases in: what is kept between commands is variables, not options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    New,
    Used,
}

impl Shell {
    /// The shell of an agent's next command.
    pub(super) fn of(state: &AgentState) -> Self {
        if state.shell_is_used || state.exported.is_some() {
            Self::Used
        } else {
            Self::New
        }
    }
}

/// What another shell under the name of this one says, before it goes round for ever in words
/// that are none of its own.
const NO_BASH: &str = "case ${BASH_VERSION-} in '') echo 'hermitcrab: what is called bash on this \
    machine (/usr/bin/bash) is another shell, and commands are run by bash; install it there' >&2; \
    exit 126;; esac; ";

/// What is said of a terminal that stands between a command and its user's own: what it
/// understands, whatever theirs does, and lines that are drawn by letters. What is said of
/// letters is only said where nobody has said anything.
const ON_TERMINAL: &str = "builtin export TERM=xterm-256color NCURSES_NO_UTF8_ACS=1; \
    [[ -n ${LC_ALL-}${LC_CTYPE-}${LANG-} ]] || builtin export LC_CTYPE=C.UTF-8; ";

/// The script around a command, which is read from a file. Messages of the shell
/// count its lines: the command stands as far down as if it were written out. Of a
/// directory that is gone at the end the shell says so, as it does under Hermes; of one
/// that is gone at the beginning, which of those above it is left.
pub(super) fn script(shell: Shell, command: &str, given: CommandInput<'_>) -> String {
    let terminal = match given {
        CommandInput::Terminal(_) => ON_TERMINAL,
        CommandInput::Nothing | CommandInput::File(_) => "",
    };
    let aliases = match shell {
        Shell::New => "shopt -s expand_aliases; ",
        Shell::Used => "",
    };
    let down = "\n".repeat(command.matches('\n').count());
    format!(
        "{NO_BASH}{aliases}source {EXCHANGE_DIR}/env >/dev/null 2>&1; {terminal}builtin set -- \"$(< {EXCHANGE_DIR}/base)\"; \
         until builtin cd -- \"${{1:-/}}\" 2>/dev/null || [[ $1 == \"${{1%/*}}\" ]]; do builtin set -- \"${{1%/*}}\" above; done\n\
         builtin cd -- \"$(< {EXCHANGE_DIR}/workdir)\" || {{ [[ -z ${{2-}} ]] || pwd -P > {EXCHANGE_DIR}/cwd.left; exit 126; }}; \
         builtin set --\n\
         {down}eval \"$(< {EXCHANGE_DIR}/command)\"\n\
         __hermitcrab_status=$?\n\
         umask 077\n\
         {{ export -p > {EXCHANGE_DIR}/env.after; pwd -P > {EXCHANGE_DIR}/cwd.after; }} 2>/dev/null || \
         {{ pwd -P >/dev/null 2> {EXCHANGE_DIR}/cwd.gone; builtin printf '%s\\n' \"$PWD\" > {EXCHANGE_DIR}/cwd.before; }}\n\
         exit $__hermitcrab_status\n"
    )
}

/// What a shell exported, without what pointed at its own way to its peers: whether
/// the next one has such a way, and where, it learns for itself. Shells begin with `env`;
/// what somebody added to options they found there is added to those the next one finds.
pub(super) fn without_way_out(exported: &[u8], env: &[(String, String)]) -> Vec<u8> {
    let lines = exported.split_inclusive(|byte| *byte == b'\n');
    lines
        .flat_map(|line| kept(line, env).into_owned())
        .collect()
}

/// What is kept of one line.
fn kept<'l>(line: &'l [u8], env: &[(String, String)]) -> Cow<'l, [u8]> {
    let variable = || {
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let (name, value) = line.strip_prefix("declare -x ")?.split_once("=\"")?;
        Some((name, value.strip_suffix('"')?))
    };
    match variable() {
        Some((name, value)) if is_of_options(name.as_bytes()) => {
            let found = found_there(name, value, env);
            match value.split_once(&found) {
                _ if found.is_empty() => Cow::Borrowed(line),
                None => Cow::Borrowed(line),
                Some(("", "")) => Cow::Borrowed(&[]),
                Some((before, after)) => Cow::Owned(
                    format!("declare -x {name}=\"{before}${{{name}}}{after}\"\n").into_bytes(),
                ),
            }
        }
        Some((name, value)) if is_way_out(name, value) => Cow::Borrowed(&[]),
        Some(_) | None => Cow::Borrowed(line),
    }
}

/// The options a shell found in this variable, as far as they are still in its value.
fn found_there(name: &str, value: &str, env: &[(String, String)]) -> String {
    let begun = env.iter().find(|(known, _)| known == name);
    let begun = begun.map_or("", |(_, begun)| begun.as_str());
    match way_out_among(value) {
        None => begun.to_owned(),
        Some(way_out) if begun.is_empty() => way_out.to_owned(),
        Some(way_out) => format!("{begun} {way_out}"),
    }
}

#[cfg(test)]
mod tests {
    use super::CommandInput;
    use super::{Shell, script, without_way_out};

    #[test]
    fn what_pointed_at_a_way_out_is_not_kept_and_all_else_is() {
        let before = "declare -x A=\"1\"\ndeclare -x ALL_PROXY=\"socks5h://127.31.28.2:3128\"\n\
                      declare -x http_proxy=\"http://127.0.0.1:3128\"\ndeclare -x B\n\
                      declare -x https_proxy=\"http://proxy.example:3128\"\n";
        let after = "declare -x A=\"1\"\ndeclare -x B\n\
                     declare -x https_proxy=\"http://proxy.example:3128\"\n";
        assert_eq!(without_way_out(before.as_bytes(), &[]), after.as_bytes());
        let odd = b"declare -x A=\"\xff\"\nno line";
        assert_eq!(without_way_out(odd, &[]), odd);
    }

    #[test]
    fn what_is_added_to_options_is_added_to_what_the_next_shell_finds() {
        let way_out = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 \
                       -Dhttps.proxyPort=3128 -Daether.connector.http.useSystemProperties=true";
        let env = [("MAVEN_OPTS".to_owned(), "-Da=b".to_owned())];
        for (name, value, kept) in [
            ("MAVEN_OPTS", format!("-Da=b {way_out}"), None),
            ("MAVEN_OPTS", "-Da=b".to_owned(), None),
            ("GRADLE_OPTS", way_out.to_owned(), None),
            (
                "MAVEN_OPTS",
                format!("-Xmx1g -Da=b {way_out}"),
                Some("-Xmx1g ${MAVEN_OPTS}"),
            ),
            (
                "MAVEN_OPTS",
                format!("-Da=b {way_out} -Dx=\\\"y\\\""),
                Some("${MAVEN_OPTS} -Dx=\\\"y\\\""),
            ),
            (
                "MAVEN_OPTS",
                "-Da=b -Xmx1g".to_owned(),
                Some("${MAVEN_OPTS} -Xmx1g"),
            ),
            (
                "GRADLE_OPTS",
                format!("{way_out} -Xmx1g"),
                Some("${GRADLE_OPTS} -Xmx1g"),
            ),
            ("GRADLE_OPTS", "-Xmx1g".to_owned(), Some("-Xmx1g")),
            ("OTHER", "-Da=b".to_owned(), Some("-Da=b")),
        ] {
            let line = format!("declare -x {name}=\"{value}\"\n");
            let kept = kept.map_or_else(String::new, |kept| {
                format!("declare -x {name}=\"{kept}\"\n")
            });
            let told = without_way_out(line.as_bytes(), &env);
            assert_eq!(String::from_utf8_lossy(&told), kept, "{name}={value}");
        }
    }

    #[test]
    fn only_a_new_shell_puts_aliases_in_and_long_commands_stand_further_down() {
        for (shell, command, puts_in, line) in [
            (Shell::New, "a", true, 3),
            (Shell::Used, "a", false, 3),
            (Shell::Used, "a\nb\nc", false, 5),
        ] {
            let script = script(shell, command, CommandInput::Nothing);
            assert_eq!(script.contains("expand_aliases"), puts_in);
            let eval = script.lines().position(|line| line.starts_with("eval "));
            assert_eq!(eval, Some(line - 1), "{command:?}");
        }
    }
}
