//! The program of a job: where it lies, and what it says about the model.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use crate::{
    runtime::{lexical, real},
    text::pytext,
};

/// The longest program, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// The program of a job as it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What reads it: `bash` or `python3`.
    pub program: &'static str,
    /// Its text.
    pub text: String,
}

impl Script {
    /// Reads a job's program, which lies below the scripts' directory.
    ///
    /// # Errors
    /// It does not, or there is none, in words for whoever looks after the job.
    pub fn read(scripts: &Path, home: &Path, name: &str) -> Result<Self, String> {
        let wanted = match name.strip_prefix("~/") {
            Some(below) => home.join(below),
            None => scripts.join(name),
        };
        // Both as they really are: no link leads out of the directory, and what
        // is read below is the very path that was looked at.
        let root = real(scripts);
        let (file, found) = match wanted.canonicalize() {
            Ok(file) => (file, Ok(())),
            Err(error) => {
                let file = real(&wanted);
                (lexical(&file).unwrap_or(file), Err(error))
            }
        };
        if !file.starts_with(&root) {
            return Err(format!(
                "Blocked: script path resolves outside the scripts directory ({}): {}",
                root.display(),
                pytext::quoted(name)
            ));
        }
        let read = found.and_then(|()| content(&file, BYTES_MAX));
        let bytes = read.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("Script not found: {}", file.display()),
            io::ErrorKind::InvalidInput => {
                format!("Script path is not a file: {}", file.display())
            }
            io::ErrorKind::FileTooLarge => format!(
                "Script execution failed: {} is longer than {BYTES_MAX} bytes",
                file.display()
            ),
            _ => format!("Script execution failed: {error}"),
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|error| format!("Script execution failed: {error}"))?;
        let program = read_by(&file);
        Ok(Self { program, text })
    }

    /// What reads it, where that is not what a program of its name is read by: a link has a name
    /// of its own, and whoever makes it lead elsewhere changes nothing else.
    #[must_use]
    pub fn read_otherwise(&self, name: &str) -> Option<&'static str> {
        (read_by(Path::new(name)) != self.program).then_some(self.program)
    }
}

/// What reads a program, by the ending of its name.
fn read_by(file: &Path) -> &'static str {
    let ending = file
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        Some("sh" | "bash") => "bash",
        _ => "python3",
    }
}

/// What a file holds that is no link and no longer than this.
///
/// # Errors
/// `InvalidInput` if it is no regular file, `FileTooLarge`, or what the system says.
pub fn content(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // A pipe without a writer would be waited for without end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Whether what a program printed lets the model be asked: its last line may say
/// that there is nothing to do.
#[must_use]
pub fn wakes(output: &str) -> bool {
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    let said = last.and_then(|line| serde_json::from_str::<Value>(line.trim()).ok());
    said.is_none_or(|said| said.get("wakeAgent") != Some(&Value::Bool(false)))
}

#[cfg(test)]
mod tests {
    use super::{Script, wakes};

    #[test]
    fn a_program_is_read_only_below_its_directory() {
        let home = tempfile::tempdir().unwrap();
        let scripts = home.path().join("scripts");
        std::fs::create_dir(&scripts).unwrap();
        std::fs::write(scripts.join("a.SH"), "echo 1").unwrap();
        std::fs::write(scripts.join("b"), "print(1)").unwrap();
        std::fs::write(home.path().join("outside.sh"), "echo 2").unwrap();
        std::os::unix::fs::symlink("../outside.sh", scripts.join("link.sh")).unwrap();
        let read = |name: &str| Script::read(&scripts, home.path(), name);
        assert_eq!(read("a.SH").unwrap().program, "bash");
        assert_eq!(read("b").unwrap().program, "python3");
        assert_eq!(read("~/scripts/b").unwrap().text, "print(1)");
        for (name, why) in [
            ("../outside.sh", "Blocked: script path resolves outside"),
            ("link.sh", "Blocked: script path resolves outside"),
            ("/etc/passwd", "Blocked: script path resolves outside"),
            ("none.sh", "Script not found: "),
            (".", "Script path is not a file: "),
        ] {
            let said = read(name).unwrap_err();
            assert!(said.starts_with(why), "{name}: {said}");
        }
    }

    #[test]
    fn only_the_last_line_may_say_that_there_is_nothing_to_do() {
        for (output, expected) in [
            ("", true),
            ("text", true),
            ("{\"wakeAgent\": false}", false),
            ("data\n{\"wakeAgent\": false}\n\n", false),
            ("{\"wakeAgent\": false}\nmore", true),
            ("{\"wakeAgent\": null}", true),
            ("[false]", true),
        ] {
            assert_eq!(wakes(output), expected, "{output}");
        }
    }
}
