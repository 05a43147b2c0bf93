//! What the agent keeps for itself beyond the workspace: notes, skills, jobs.
//!
//! Their tools name the files themselves, so the pairs of names are theirs alone. Who
//! calls one holds the directory, and it is opened before anything changes places. What
//! they change is in no journal, so there is nothing of it to take back.

use serde_json::{Value, json};

use super::super::paths::{Action, action};
use super::super::surroundings::{JOBS, MEMORIES, SKILLS};
use super::swap::{Swap, own};

/// Calls that keep something, and the names that change places below where it is kept.
pub(super) struct Own {
    /// What is held beside the workspace.
    pub(super) on: &'static str,
    pub(super) operations: &'static [Action],
    pub(super) swaps: &'static [Swap],
}

const SKILL: &str =
    "---\nname: flipped\ndescription: How to flip\n---\n\n# Flip\n\n1. Look inside.\n";

fn note(_: &str) -> Value {
    json!({ "action": "add", "target": "memory", "content": "noted" })
}

fn renote(_: &str) -> Value {
    json!({ "action": "replace", "target": "memory", "old_text": "inside", "content": "noted" })
}

fn unnote(_: &str) -> Value {
    json!({ "action": "remove", "target": "memory", "old_text": "inside" })
}

fn new_skill(_: &str) -> Value {
    json!({
        "action": "create", "name": "fresh",
        "content": "---\nname: fresh\ndescription: How to begin\n---\n\n# Begin\n\n1. Begin.\n",
    })
}

fn skill_edit(_: &str) -> Value {
    json!({
        "action": "edit", "name": "flipped",
        "content": "---\nname: flipped\ndescription: How to turn\n---\n\n# Turn\n\n1. Turn.\n",
    })
}

fn skill_patch(_: &str) -> Value {
    json!({
        "action": "patch", "name": "flipped",
        "old_string": "Look inside", "new_string": "Look again",
    })
}

fn skill_file(_: &str) -> Value {
    json!({
        "action": "write_file", "name": "flipped",
        "file_path": "references/new.md", "file_content": "# new\n",
    })
}

fn skill_delete(_: &str) -> Value {
    json!({ "action": "delete", "name": "flipped" })
}

fn new_job(_: &str) -> Value {
    json!({
        "action": "create", "schedule": "every 2h", "prompt": "Summarise the notes of the day.",
        "model": { "model": "m-1", "provider": "p" },
    })
}

/// All of them, in a fixed order.
pub(super) const OWN: &[Own] = &[
    Own {
        on: MEMORIES,
        operations: &[
            action("note-add", "memory", note),
            action("note-replace", "memory", renote),
            action("note-remove", "memory", unnote),
        ],
        swaps: &[
            own(
                "notes-to-key",
                "/home/u/.hermes/memories/MEMORY.md",
                ("/home/u/.hermes/memories/MEMORY.md", "inside\n"),
                "/home/u/.ssh/id_rsa",
            ),
            own(
                "notes-to-data",
                "/home/u/.hermes/memories/MEMORY.md",
                ("/home/u/.hermes/memories/MEMORY.md", "inside\n"),
                "/srv/data/db.sqlite",
            ),
        ],
    },
    Own {
        on: SKILLS,
        operations: &[
            action("skill-create", "skill_manage", new_skill),
            action("skill-edit", "skill_manage", skill_edit),
            action("skill-patch", "skill_manage", skill_patch),
            action("skill-file", "skill_manage", skill_file),
            action("skill-delete", "skill_manage", skill_delete),
        ],
        swaps: &[
            own(
                "skill-text-to-key",
                "/home/u/.hermes/skills/flipped/SKILL.md",
                ("/home/u/.hermes/skills/flipped/SKILL.md", SKILL),
                "/home/u/.ssh/id_rsa",
            ),
            own(
                "skill-to-keys",
                "/home/u/.hermes/skills/flipped",
                ("/home/u/.hermes/skills/flipped/SKILL.md", SKILL),
                "/home/u/.ssh",
            ),
            own(
                "skills-to-data",
                SKILLS,
                ("/home/u/.hermes/skills/flipped/SKILL.md", SKILL),
                "/srv/data",
            ),
        ],
    },
    Own {
        on: JOBS,
        operations: &[action("job-create", "cronjob", new_job)],
        swaps: &[
            own(
                "jobs-to-key",
                "/home/u/.hermes/cron/jobs.json",
                ("/home/u/.hermes/cron/jobs.json", "{\"jobs\": []}\n"),
                "/home/u/.ssh/id_rsa",
            ),
            own(
                "jobs-to-data",
                "/home/u/.hermes/cron/jobs.json",
                ("/home/u/.hermes/cron/jobs.json", "{\"jobs\": []}\n"),
                "/srv/data/db.sqlite",
            ),
        ],
    },
];
