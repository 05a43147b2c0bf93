//! Python's own word on a text.
//!
//! Python reads the text, confined and with nothing else to see, and says what is
//! wrong with it; it runs nothing of it. Where there is no Python, or the agent
//! may run no programs, what is certain from the tokens alone has to do.

use std::time::Duration;

use hermitcrab_sandbox::spawn::Ending;

use super::python;
use crate::runtime::{Hands, checked_text};

/// How long a check may take.
const SECONDS_MAX: u64 = 30;
/// The system's own.
const PYTHON: &str = "/usr/bin/python3";
/// The status that says that the text is wrong, and how.
const WRONG: i32 = 95;

/// What is wrong with the text, if anything.
pub fn problem(hands: &mut Hands<'_>, text: &str) -> Option<String> {
    let program = format!(
        r#"import ast, os, sys
with open("{}", encoding="utf-8", newline="") as file:
    text = file.read()
try:
    ast.parse(text)
except SyntaxError as error:
    place = f" (line {{error.lineno}}, column {{error.offset}})" if error.lineno else ""
    wrong = f"{{type(error).__name__}}: {{error.msg}}{{place}}"
except Exception as error:
    wrong = f"{{type(error).__name__}}: {{error}}"
else:
    sys.exit(0)
sys.stdout.buffer.write(wrong.encode("utf-8", "replace"))
sys.stdout.flush()
os._exit({WRONG})
"#,
        checked_text()
    );
    let argv = [PYTHON, "-c", &program];
    match hands.check_text(&argv, text, Duration::from_secs(SECONDS_MAX)) {
        Some(run) if run.ending == Ending::Exited(0) => None,
        Some(run) if run.ending == Ending::Exited(WRONG) && !run.output.is_empty() => {
            Some(run.output)
        }
        Some(_) | None => python::problem(text),
    }
}
