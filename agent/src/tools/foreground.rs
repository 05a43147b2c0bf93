//! Advice for commands that would never come back.
//!
//! A foreground call waits for its command. Lines that visibly start a server
//! or put work in the background are answered with advice instead of being
//! run. This is about usefulness only: nothing here protects anything.

use std::sync::LazyLock;

use regex::Regex;

static WRAPPERS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?im)(?:^|[;&|]\s*|\$\(\s*)(?:nohup|disown|setsid)\b").ok());
static AMPERSAND: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\s&\s|\s&\s*(?:#.*)?$").ok());
static SERVERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:dev|start|serve|watch)\b",
        r"|docker\s+compose\s+up\b|next\s+dev\b|vite(?:\s|$)|nodemon\b|uvicorn\b|gunicorn\b",
        r"|python3?\s+-m\s+http\.server\b)"
    ))
    .ok()
});

fn found(expression: &Option<Regex>, text: &str) -> bool {
    expression
        .as_ref()
        .is_some_and(|expression| expression.is_match(text))
}

/// The command with quoted parts emptied.
fn without_quoted(command: &str) -> String {
    let mut out = command.to_owned();
    for (quote, escapes) in [('\'', false), ('"', true), ('`', false)] {
        let mut next = String::with_capacity(out.len());
        let mut rest = out.as_str();
        while let Some(start) = rest.find(quote) {
            let (before, quoted) = rest.split_at(start);
            let body = quoted.get(1..).unwrap_or_default();
            let mut escaped = false;
            let end = body.char_indices().find(|(_, letter)| {
                let closes = *letter == quote && !escaped;
                escaped = escapes && *letter == '\\' && !escaped;
                closes
            });
            let Some((end, _)) = end else { break };
            next.push_str(before);
            next.push(quote);
            next.push(quote);
            rest = body.get(end + 1..).unwrap_or_default();
        }
        next.push_str(rest);
        out = next;
    }
    out
}

/// Why the command should not run in the foreground, if it should not.
#[must_use]
pub fn advice(command: &str) -> Option<&'static str> {
    let words = command
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let asks_for_help = words.contains(" --help")
        || words.ends_with(" -h")
        || words.contains(" --version")
        || words.ends_with(" -v");
    if asks_for_help {
        return None;
    }
    let bare = without_quoted(command);
    if found(&WRAPPERS, &bare) {
        return Some(
            "Foreground command uses shell-level background wrappers (nohup/disown/setsid). Use \
             terminal(background=true) so Hermes can track the process, then run readiness checks and tests in \
             separate commands.",
        );
    }
    if found(&AMPERSAND, &bare) {
        return Some(
            "Foreground command uses '&' backgrounding. Use terminal(background=true) for long-lived processes, then \
             run health checks and tests in follow-up terminal calls.",
        );
    }
    found(&SERVERS, &bare).then_some(
        "This foreground command appears to start a long-lived server/watch process. Run it with background=true, \
         verify readiness (health endpoint/log signal), then execute tests in a separate command.",
    )
}

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn background_work_and_servers_get_advice() {
        for command in [
            "sleep 1 & echo x",
            "nohup make",
            "a; setsid b",
            "npm run dev",
            "sleep 9 &",
            "python3 -m http.server",
        ] {
            assert!(advice(command).is_some(), "{command}");
        }
    }

    #[test]
    fn ordinary_lines_quoted_words_and_help_do_not() {
        for command in [
            "a && b",
            "echo 'nohup x' \"a & b\"",
            "make 2>&1",
            "uvicorn --help",
            "ls",
            "a &> f",
        ] {
            assert_eq!(advice(command), None, "{command}");
        }
    }
}
