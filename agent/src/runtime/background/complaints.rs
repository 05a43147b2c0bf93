//! What an interactive shell says when it finds no terminal.
//!
//! A background command is started by the user's own kind of shell, which
//! complains first. That is not the command's output: it is neither shown nor
//! looked through for words a model waits for, in however many pieces it comes.

/// What the complaints have in them.
const COMPLAINTS: [&str; 3] = [
    "cannot set terminal process group",
    "no job control in this shell",
    "tcsetattr: Inappropriate ioctl for device",
];
/// No complaint is longer. A line without an end that begins like one is the command's own from
/// there on: it must not be held back for as long as a command likes to go on with it.
const COMPLAINT_BYTES_MAX: usize = 4096;
/// What they begin with.
const SPEAKERS: [&str; 2] = ["bash: ", "/usr/bin/bash: "];

/// The output without the complaints it begins with.
pub(super) fn without(mut output: &str) -> &str {
    while let Some((line, rest)) = output.split_once('\n')
        && COMPLAINTS.iter().any(|words| line.contains(words))
    {
        output = rest;
    }
    output
}

/// The beginning of an output, until something in it is the command's own.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginning {
    held: String,
    past: bool,
}

impl Beginning {
    /// A piece of output came; what of all that came is the command's own, and
    /// has not been returned before.
    pub(super) fn own(&mut self, piece: &str) -> String {
        if self.past {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let rest = without(&self.held);
        // An unfinished line may still become a complaint.
        let open = rest.len() <= COMPLAINT_BYTES_MAX
            && !rest.contains('\n')
            && SPEAKERS
                .iter()
                .any(|name| rest.starts_with(name) || name.starts_with(rest));
        let rest = rest.to_owned();
        if open {
            self.held = rest;
            return String::new();
        }
        self.past = true;
        self.held.clear();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::{Beginning, without};

    const SAID: &str = "bash: cannot set terminal process group (7): Inappropriate ioctl for device\nbash: no job control in this shell\n";

    #[test]
    fn complaints_are_taken_from_the_beginning_only() {
        assert_eq!(without(&format!("{SAID}ready\n")), "ready\n");
        let later = format!("ready\n{SAID}");
        assert_eq!(without(&later), later);
    }

    #[test]
    fn complaints_are_never_the_commands_own_in_however_many_pieces_they_come() {
        for size in 1..SAID.len() {
            let whole = format!("{SAID}bash: no_such: command not found\nready\n");
            let mut beginning = Beginning::default();
            let own: String = whole
                .as_bytes()
                .chunks(size)
                .map(|piece| beginning.own(std::str::from_utf8(piece).unwrap()))
                .collect();
            assert_eq!(own, "bash: no_such: command not found\nready\n", "{size}");
        }
        // Nor is what only begins like one, and goes on without an end.
        let mut endless = Beginning::default();
        assert_eq!(endless.own("bash: "), "");
        let mut own = 0;
        for _ in 0..1000 {
            own += endless.own(&"x".repeat(1000)).len();
            assert!(endless.held.len() <= super::COMPLAINT_BYTES_MAX);
        }
        assert_eq!(own, "bash: ".len() + 1_000_000);
        let mut other = Beginning::default();
        assert_eq!(other.own("re"), "re");
        assert_eq!(other.own("ady"), "ady");
    }
}
