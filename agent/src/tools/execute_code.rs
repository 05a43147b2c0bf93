//! `execute_code`: runs a Python script that can call tools.

use hermitcrab_sandbox::spawn::{Captured, Ending};
use serde_json::{Map, Value};

use crate::{
    runtime::{Fate, Hands, ScriptRun, Stop, ToolResult},
    text::{
        ansi,
        args::{self, Declared},
        pyjson, pytext, redact,
    },
};

/// Bytes of output shown: so much of the beginning, so much of the end.
const STDOUT_BYTES: (usize, usize) = (20_000, 30_000);
/// Output is read, and the end of a long one kept, in pieces of this size.
const PIECE_BYTES: usize = 4096;
/// Bytes of complaints shown, from the beginning.
const STDERR_BYTES: usize = 10_000;

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(given, &[("code", Declared::Text)]);
    hands.state().reads.note_other_call();
    let code = match given.get("code") {
        Some(Value::String(code)) if !pytext::strip(code).is_empty() => code,
        None | Some(Value::Null | Value::String(_)) => {
            return Ok(ToolResult::error("No code provided."));
        }
        other if !args::truthy(other) => return Ok(ToolResult::error("No code provided.")),
        other => {
            return Ok(ToolResult::error(&format!(
                "[TOOL_ERROR] Tool execution failed: AttributeError: '{}' object has no attribute 'strip'",
                args::type_name(other)
            )));
        }
    };
    let run = hands.run_script(code)?;
    Ok(worded(&run))
}

fn cleaned(bytes: &[u8]) -> String {
    redact::masked(
        &ansi::strip(&String::from_utf8_lossy(bytes)),
        redact::Mask::Ends,
    )
}

/// The output, with its middle left out if it is long; and how much there was.
fn output(stdout: &Captured) -> (String, Map<String, Value>) {
    let total = usize::try_from(stdout.total_bytes()).unwrap_or(usize::MAX);
    let all = stdout.to_bytes();
    let first = STDOUT_BYTES.0;
    let last = tail_kept(total);
    let fits = total <= first + last;
    let (text, kept) = if fits {
        (cleaned(&all), total)
    } else {
        let omitted = total - first - last;
        let head = cleaned(all.get(..first).unwrap_or(&all));
        let tail = cleaned(
            all.get(all.len().saturating_sub(last)..)
                .unwrap_or_default(),
        );
        let notice = format!(
            "\n\n... [OUTPUT TRUNCATED - {} bytes omitted out of {} total] ...\n\n",
            pytext::thousands(omitted as u64),
            pytext::thousands(total as u64)
        );
        (format!("{head}{notice}{tail}"), first + last)
    };
    let mut facts = Map::new();
    facts.insert("stdout_truncated".into(), (!fits).into());
    facts.insert("stdout_bytes_captured".into(), kept.into());
    facts.insert("stdout_bytes_total".into(), total.into());
    facts.insert("stdout_bytes_omitted".into(), (total - kept).into());
    if !fits {
        let warning = "execute_code stdout was truncated; the script did run, but only the captured head/tail \
                       output is included. Re-run only with narrower output if the omitted data is required.";
        facts.insert("warning".into(), warning.into());
    }
    (text, facts)
}

/// Bytes kept of the end of an output: whole pieces, as they were read, that
/// fit. The first piece is what the beginning left over.
fn tail_kept(total: usize) -> usize {
    let (first, last) = STDOUT_BYTES;
    let mut left = total.saturating_sub(first);
    let mut piece = PIECE_BYTES - first % PIECE_BYTES;
    let mut kept = std::collections::VecDeque::new();
    let mut sum = 0;
    while left > 0 {
        let size = piece.min(left);
        left -= size;
        piece = PIECE_BYTES;
        kept.push_back(size);
        sum += size;
        while sum > last {
            sum -= kept.pop_front().unwrap_or(sum);
        }
    }
    sum
}

#[expect(
    clippy::cast_precision_loss,
    reason = "hundredths of seconds are small"
)]
fn worded(run: &ScriptRun) -> ToolResult {
    let (text, facts) = output(&run.stdout);
    let complaints = run.stderr.to_bytes();
    let complaints = cleaned(complaints.get(..STDERR_BYTES).unwrap_or(&complaints));
    let status = match run.ending {
        Ending::Exited(status) => status,
        Ending::Signalled(signal) => -signal,
        // One that is late is first asked to end, and most do.
        Ending::TimedOut => -15,
        Ending::OutOfMemory | Ending::OutOfRoom | Ending::Killed => -9,
    };
    let mut result = Map::new();
    result.insert("status".into(), "success".into());
    result.insert("output".into(), text.as_str().into());
    result.insert("exit_code".into(), status.into());
    result.insert("tool_calls_made".into(), run.calls.into());
    let hundredths = (run.elapsed.as_millis() / 10) as f64;
    result.insert("duration_seconds".into(), (hundredths / 100.0).into());
    result.extend(facts);
    if run.ending == Ending::TimedOut {
        let late = format!(
            "Script timed out after {}s and was killed.",
            run.timeout.as_secs()
        );
        let blank = if text.is_empty() { "" } else { "\n\n" };
        result.insert("status".into(), "timeout".into());
        result.insert(
            "output".into(),
            format!("{text}{blank}\u{23f0} {late}").into(),
        );
        result.insert("error".into(), late.into());
    } else if status != 0 {
        result.insert("status".into(), "error".into());
        if complaints.is_empty() {
            result.insert(
                "error".into(),
                format!("Script exited with code {status}").into(),
            );
        } else {
            let output = format!("{text}\n--- stderr ---\n{complaints}");
            result.insert("output".into(), output.into());
            result.insert("error".into(), complaints.into());
        }
    }
    for (key, why) in run.reasons.keyed() {
        result.insert(key.into(), why.into());
    }
    let mut fate = Fate::Ran;
    if let Some(denial) = &run.discarded {
        let code = denial.code();
        let words = format!(
            "The script ran on a copy and its changes were discarded ({code}): {denial}. What was kept before a tool it called stays. Next step: {}.",
            code.next_step()
        );
        result.insert("status".into(), "error".into());
        result.insert("error".into(), words.into());
        fate = Fate::RanDiscarded(code);
    }
    ToolResult {
        text: pyjson::text(&Value::Object(result)),
        fate,
    }
}

#[cfg(test)]
mod tests {
    use super::{STDOUT_BYTES, tail_kept};

    #[test]
    fn the_end_is_kept_in_whole_pieces() {
        let (first, last) = STDOUT_BYTES;
        assert_eq!(tail_kept(10), 0);
        assert_eq!(tail_kept(first + 100), 100);
        assert_eq!(tail_kept(first + last), last);
        assert_eq!(tail_kept(52_001), 27_425);
        assert_eq!(tail_kept(88_890), 27_450);
        for total in (0..400_000).step_by(977) {
            assert!(tail_kept(total) <= last);
            assert!(total <= first + last || tail_kept(total) > last - 4096);
        }
    }
}
