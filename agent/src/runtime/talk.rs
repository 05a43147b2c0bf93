//! What bounds a conversation and the agents it starts, as configured.
//!
//! The runtime only keeps it, for the conversation that asks: the counts say when a
//! turn ends and how much work may be handed out, never what that work may do.

/// What bounds a conversation and the agents it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Talk {
    /// A model that goes round in circles.
    pub guard: Guard,
    /// Work that is handed out.
    pub work: WorkLimits,
    /// Whether files that a turn was to change and did not are named.
    pub names_unwritten: bool,
    /// A model that ends without a check of what it changed.
    pub reminder: Reminder,
}

impl Default for Talk {
    fn default() -> Self {
        Self {
            guard: Guard::default(),
            work: WorkLimits::default(),
            names_unwritten: true,
            reminder: Reminder::default(),
        }
    }
}

/// When a model is told that it goes round in circles, and when it is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Whether it is told.
    pub warns: bool,
    /// Whether it is ended.
    pub stops: bool,
    /// From which count on it is told.
    pub told: Counts,
    /// From which count on it is ended.
    pub ended: Counts,
}

/// How often something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Failures of exactly the same call.
    pub same_call: u32,
    /// Failures of the same tool in a row.
    pub same_tool: u32,
    /// Times that the same question got the same answer.
    pub same_answer: u32,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            warns: true,
            stops: false,
            told: Counts {
                same_call: 2,
                same_tool: 3,
                same_answer: 2,
            },
            ended: Counts {
                same_call: 5,
                same_tool: 8,
                same_answer: 5,
            },
        }
    }
}

/// Whether a model is reminded, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// It is.
    pub is_wanted: bool,
    /// With advice on checking and cleaning.
    pub advises: bool,
}

impl Default for Reminder {
    fn default() -> Self {
        Self {
            is_wanted: true,
            advises: true,
        }
    }
}

/// The bounds of handing out work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// How deep agents may start agents; 1 is the first one only.
    pub depth_max: u32,
    /// Tasks one call may hand out, and calls of one answer that may hand out some.
    pub tasks_max: usize,
    /// Answers a child's work may take.
    pub rounds_max: u32,
}

impl Default for WorkLimits {
    fn default() -> Self {
        Self {
            depth_max: 1,
            tasks_max: 3,
            rounds_max: 50,
        }
    }
}
