//! Every exit code of `hermitcrab`, in one place.
//!
//! `exec` ends with the command's own status if the command ran and what it
//! did stands.

/// The codes, for those who call the program from a script.
pub const HELP: &str = "\
Exit codes:
   0  done; `exec`: the command's own status, if it ran and what it did stands
   1  the tool reports a failure of its own; `chat`: the model came to no answer
      or called for more than was run
  64  the command line or the configuration means nothing
  69  this machine lacks something that is needed (`hermitcrab doctor` says
      what), or an output or a disk is full
  70  the agent's own machinery failed
  74  the ledger does not hold
  77  it was refused, or what it did was discarded; so is what a dry run of
      `exec` would have changed; `chat`, `cron tick`: nobody could be asked and
      a call of the model's was refused
 124  `exec` ended the command, because it took longer than it may
 130  you called `exec` off with ^C, and what it did was discarded; `chat` ends
      by the signal itself";

/// It ran.
pub const OK: u8 = 0;
/// The tool reports a failure of its own.
pub const TOOL_FAILED: u8 = 1;
/// The command line or the configuration means nothing.
pub const USAGE: u8 = 64;
/// This machine lacks something that is needed; `doctor` says what.
pub const ENVIRONMENT: u8 = 69;
/// The agent's own machinery failed.
pub const INTERNAL: u8 = 70;
/// The ledger does not hold.
pub const LEDGER: u8 = 74;
/// It was refused, or what it did was discarded.
pub const REFUSED: u8 = 77;
/// It took longer than it may.
pub const TIMED_OUT: u8 = 124;
/// Its user called it off.
pub const INTERRUPTED: u8 = 130;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_code_once() {
        let named: Vec<u8> = HELP
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        let all = [
            OK,
            TOOL_FAILED,
            USAGE,
            ENVIRONMENT,
            INTERNAL,
            LEDGER,
            REFUSED,
            TIMED_OUT,
            INTERRUPTED,
        ];
        assert_eq!(named, all);
    }
}
