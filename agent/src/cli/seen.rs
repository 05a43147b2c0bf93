//! What a model does, on the screen as it does it: a line for each call when it
//! begins, and one more where it did not come to its end.

use std::{cell::Cell, rc::Rc};

use hermitcrab_core::{grant::AgentId, outcome::DenialCode, tool::Tool};
use serde_json::Value;

use super::tell_aside;
use crate::{
    cancel::Cancel,
    chat::{Then, Watch},
    model::ProposedCall,
    runtime::{Fate, Runtime, ToolResult},
    screen::{Screen, Tone, visible},
    text::unnumbered,
    tools::title::title,
};

/// Letters of a reason that are shown; the model is told all of it.
const REASON_LETTERS_MAX: usize = 300;

/// Shows the calls of a turn.
pub struct Seen {
    screen: Screen,
    cancel: Cancel,
    /// Whether a model's call is being made: what it prints may be long.
    is_models: Rc<Cell<bool>>,
    /// The calls that began and did not end, the first of them first, and whose they are.
    open: Vec<(AgentId, String)>,
    /// The call whose line is the last on the screen.
    last: Option<String>,
    /// The calls that came to nothing because the turn was called off.
    called_off: usize,
    /// The directories of which it was said how they are opened.
    told_of: Vec<&'static str>,
}

impl Seen {
    pub fn new(screen: Screen, cancel: Cancel, is_models: Rc<Cell<bool>>) -> Self {
        Self {
            screen,
            cancel,
            is_models,
            open: Vec::new(),
            last: None,
            called_off: 0,
            told_of: Vec::new(),
        }
    }

    /// How many calls came to nothing because the turn was called off: nobody refused these.
    pub fn called_off(&self) -> usize {
        self.called_off
    }

    /// The line of a call that begins.
    fn begun(&mut self, agent: AgentId, call: &ProposedCall, arguments: &Value) -> String {
        let mut line = title(&call.tool, arguments);
        if call.tool == "terminal" && !arguments.is_null() {
            line = format!("$ {line}");
        }
        if agent != AgentId::FIRST {
            line = format!("{agent}: {line}");
        }
        let line = visible(&line);
        self.open.push((agent, line.clone()));
        self.last = Some(line.clone());
        self.is_models.set(true);
        line
    }

    /// What there is to say of one that ended.
    fn over(
        &mut self,
        agent: AgentId,
        call: &ProposedCall,
        result: &ToolResult,
    ) -> Option<(Tone, String)> {
        // Calls of one agent end in the order in which they began; those of work that was
        // handed out begin and end while the call that handed it out goes on.
        let first = self.open.iter().position(|(by, _)| *by == agent);
        let line = first.map(|first| self.open.remove(first).1);
        self.is_models.set(!self.open.is_empty());
        let was_refused = matches!(
            result.fate,
            Fate::RanDiscarded(_) | Fate::Refused(_) | Fate::AskedRefused(_)
        );
        if was_refused && self.cancel.is_thrown() {
            // Whoever called it off reads that it was, once.
            self.called_off += 1;
            self.last = None;
            return None;
        }
        let tone = match &result.fate {
            Fate::Ran => status(result)
                .filter(|_| call.tool == "terminal")
                .map(|_| Tone::Dim)?,
            Fate::RanDiscarded(_) | Fate::Refused(_) | Fate::AskedRefused(_) => Tone::Warn,
            Fate::ToolError | Fate::Failed(_) => Tone::Bad,
        };
        let told = reason(result);
        let told = match line.filter(|line| self.last.as_ref() != Some(line)) {
            Some(line) => format!("    {line}: {told}"),
            None => format!("    {told}"),
        };
        self.last = None;
        Some((tone, told))
    }
}

impl Seen {
    /// How its user lets a tool into the directory that is there for it, where that was what
    /// was lacking; once for each.
    fn how_it_is_opened(&mut self, call: &ProposedCall, result: &ToolResult) -> Option<String> {
        let dir = match Tool::offered(&call.tool)? {
            Tool::Memory => "~/.hermes/memories",
            Tool::SkillsList | Tool::SkillView | Tool::SkillManage => "~/.hermes/skills",
            Tool::Cronjob => "~/.hermes/cron",
            _ => return None,
        };
        // A place in a directory that is open is not told from the home.
        let is_shut = result.fate == Fate::Refused(DenialCode::NoCap)
            && result.text.contains(&format!("`{dir}"));
        if !is_shut || self.told_of.contains(&dir) {
            return None;
        }
        self.told_of.push(dir);
        Some(format!(
            "    `mkdir -p {dir}` and `hermitcrab config add-directory {dir}` let it in from the next session on"
        ))
    }
}

impl Watch for Seen {
    fn begins(
        &mut self,
        _runtime: &mut Runtime,
        agent: AgentId,
        call: &ProposedCall,
        arguments: &Value,
    ) {
        let line = self.begun(agent, call, arguments);
        tell_aside(&self.screen, Tone::Mark, &format!("  {line}"));
    }

    fn ended(&mut self, agent: AgentId, call: &ProposedCall, result: &mut ToolResult) -> Then {
        if let Some((tone, told)) = self.over(agent, call, result) {
            tell_aside(&self.screen, tone, &told);
        }
        if let Some(how) = self.how_it_is_opened(call, result) {
            tell_aside(&self.screen, Tone::Dim, &how);
        }
        Then::Done
    }

    fn noted(&mut self, agent: AgentId, words: &str) {
        let whose = match agent {
            AgentId::FIRST => String::new(),
            agent => format!("{agent}: "),
        };
        tell_aside(&self.screen, Tone::Dim, &format!("  {whose}{words}"));
        self.last = None;
    }

    fn goes_on(&mut self) -> bool {
        !self.cancel.is_thrown()
    }
}

/// What became of a call, in words.
pub fn fate(fate: &Fate) -> String {
    match fate {
        Fate::Ran => "done".to_owned(),
        Fate::RanDiscarded(code) => format!("discarded ({code})"),
        Fate::Refused(code) => format!("refused ({code})"),
        Fate::AskedRefused(code) => format!("refused when asked ({code})"),
        Fate::ToolError => "failed".to_owned(),
        Fate::Failed(why) => format!("broke: {}", visible(why)),
    }
}

/// Why a call did not come to its end: what became of it, and what the model is told.
fn reason(result: &ToolResult) -> String {
    if let Some(status) = status(result).filter(|_| result.fate == Fate::Ran) {
        return format!("ended with status {status}");
    }
    let fate = fate(&result.fate);
    let error = match serde_json::from_str::<Value>(&result.text) {
        Ok(told) => told.get("error").and_then(Value::as_str).map(str::to_owned),
        // Of a tool there is none of, a sentence; which there are is for the model.
        Err(_) if result.fate == Fate::ToolError => {
            result.text.split(". ").next().map(str::to_owned)
        }
        Err(_) => None,
    };
    let Some(error) = error.filter(|error| !error.trim().is_empty()) else {
        return fate;
    };
    let shown = |text: &str| {
        let text: String = text.chars().take(REASON_LETTERS_MAX).collect();
        visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    match result.fate {
        Fate::AskedRefused(DenialCode::RejectedByUser)
        | Fate::RanDiscarded(DenialCode::RejectedByUser) => "you said no".to_owned(),
        Fate::AskedRefused(DenialCode::NoAnswer) | Fate::RanDiscarded(DenialCode::NoAnswer) => {
            "no answer came".to_owned()
        }
        Fate::AskedRefused(DenialCode::UnknownAnswer)
        | Fate::RanDiscarded(DenialCode::UnknownAnswer) => {
            "none of the answers offered came, which counts as no".to_owned()
        }
        // The step that is next is the model's.
        Fate::Refused(_) | Fate::AskedRefused(_) | Fate::RanDiscarded(_) => {
            let error = error.split(". Next step: ").next().unwrap_or(&error);
            shown(unnumbered(error))
        }
        Fate::Ran | Fate::ToolError | Fate::Failed(_) => format!("{fate}: {}", shown(&error)),
    }
}

/// The status of a command that says that something went wrong.
fn status(result: &ToolResult) -> Option<i64> {
    serde_json::from_str::<Value>(&result.text)
        .ok()?
        .get("exit_code")?
        .as_i64()
        .filter(|status| *status != 0)
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::cap::CapTable;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_its_user_called_off_was_refused_by_nobody() {
        let cancel = Cancel::default();
        let mut seen = Seen::new(Screen::default(), cancel.clone(), Rc::default());
        let call = ProposedCall {
            id: String::new(),
            tool: "terminal".to_owned(),
            arguments: String::new(),
        };
        let stopped = ToolResult {
            fate: Fate::RanDiscarded(DenialCode::RejectedByUser),
            ..ToolResult::error("x")
        };
        seen.begun(AgentId::FIRST, &call, &json!({}));
        let told = seen.over(AgentId::FIRST, &call, &stopped);
        assert_eq!(
            told.map(|(_, told)| told).as_deref(),
            Some("    you said no")
        );
        cancel.throw();
        seen.begun(AgentId::FIRST, &call, &json!({}));
        assert!(seen.over(AgentId::FIRST, &call, &stopped).is_none());
        assert_eq!(seen.called_off(), 1);
    }

    #[test]
    fn how_a_tools_own_directory_is_opened_is_said_once() {
        let mut seen = Seen::new(Screen::default(), Cancel::default(), Rc::default());
        let call = |tool: &str| ProposedCall {
            id: String::new(),
            tool: tool.to_owned(),
            arguments: String::new(),
        };
        let shut = |place: &str| ToolResult {
            fate: Fate::Refused(DenialCode::NoCap),
            ..ToolResult::error(&format!("no capability held for this: `{place}`"))
        };
        let notes = shut("~/.hermes/memories/USER.md");
        let how = seen.how_it_is_opened(&call("memory"), &notes);
        assert!(how.is_some_and(|how| how.contains("config add-directory ~/.hermes/memories`")));
        assert_eq!(seen.how_it_is_opened(&call("memory"), &notes), None);
        let skills = shut("~/.hermes/skills");
        assert!(
            seen.how_it_is_opened(&call("skill_view"), &skills)
                .is_some()
        );
        // What is refused elsewhere, or was let in.
        for (tool, place) in [
            ("read_file", "~/.hermes/cron/jobs.json"),
            ("cronjob", "fs.modify /home/u/.hermes/cron/jobs.json"),
        ] {
            assert_eq!(seen.how_it_is_opened(&call(tool), &shut(place)), None);
        }
    }

    #[test]
    fn what_became_of_a_call_is_said_of_that_call_also_where_work_was_handed_out() {
        let mut seen = Seen::new(Screen::default(), Cancel::default(), Rc::default());
        let call = |tool: &str| ProposedCall {
            id: String::new(),
            tool: tool.to_owned(),
            arguments: String::new(),
        };
        let failed = ToolResult::error("no such file");
        let ran = ToolResult::ran(&json!({}));
        let (first, other) = (AgentId::FIRST, CapTable::new().add_agent().unwrap());
        seen.begun(first, &call("delegate_task"), &json!({}));
        seen.begun(other, &call("read_file"), &json!({"path": "a"}));
        let told = seen.over(other, &call("read_file"), &failed);
        let told = told.map(|(_, told)| told).unwrap_or_default();
        assert!(!told.contains("Hand out"), "{told}");
        assert!(seen.over(first, &call("delegate_task"), &ran).is_none());
        assert!(!seen.is_models.get());
        // Calls beside each other: each is named that is not the last one shown.
        seen.begun(first, &call("read_file"), &json!({"path": "b"}));
        seen.begun(first, &call("read_file"), &json!({"path": "c"}));
        let no_tool = ToolResult {
            text: "Tool 'x' does not exist. Available tools: patch".to_owned(),
            fate: Fate::ToolError,
        };
        let told = super::reason(&no_tool);
        assert_eq!(told, "failed: Tool 'x' does not exist");
        let told = seen.over(first, &call("read_file"), &failed);
        assert!(told.is_some_and(|(_, told)| told.starts_with("    Read b: ")));
    }
}
