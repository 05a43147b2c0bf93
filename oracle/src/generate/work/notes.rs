//! What a model keeps for itself: lists of what is to be done, notes, skills.

use bisim_world::protocol::Step;
use serde_json::{Value, json};

use super::{
    draw::Draw,
    errands::{Files, call},
    text::word,
};
use crate::generate::surroundings::{MEMORIES, SKILLS};

/// A list of what is to be done, made, changed and read, now and then as a text that
/// holds the list.
pub fn todo(draw: &mut Draw, _: &mut Files) -> Vec<Step> {
    (0..2 + draw.below(4))
        .map(|at| todo_call(draw, at > 0))
        .collect()
}

/// One call; `again`: there may be a list by then.
pub fn todo_call(draw: &mut Draw, again: bool) -> Step {
    let many = 1 + draw.below(4);
    let items: Vec<Value> = (0..many)
        .map(|at| {
            let id = match draw.below(8) {
                0 => json!(at + 1),
                1 => json!(format!(" {} ", at + 1)),
                2 => json!(format!("step-{}", word(draw))),
                _ => json!((at + 1).to_string()),
            };
            let status = draw.one(&[
                "pending",
                "pending",
                "in_progress",
                "completed",
                "completed",
                "cancelled",
                "done",
                "In_Progress",
            ]);
            let content = format!("{} the {}", word(draw), word(draw));
            let mut item = json!({"id": id, "content": content, "status": status});
            // A change of a status alone, as a merge allows it.
            if again
                && draw.chance(30)
                && let Some(item) = item.as_object_mut()
            {
                item.shift_remove("content");
            }
            item
        })
        .collect();
    let todos = match draw.below(8) {
        0 => json!(json!(items).to_string()),
        1 => items.first().cloned().unwrap_or_default(),
        _ => json!(items),
    };
    let args = match draw.below(6) {
        0 => json!({}),
        1 | 2 if again => json!({"todos": todos, "merge": true}),
        3 => json!({"todos": todos, "merge": draw.one(&[json!("true"), json!("false"), json!(1)])}),
        _ => json!({ "todos": todos }),
    };
    call("todo", args)
}

/// What people have noted; none of it is what Hermes keeps out of notes.
const NOTES: &[&str] = &[
    "The project builds with make; tests are run with make check.",
    "The user writes British English and likes short answers.",
    "Tabs in Makefiles, four blanks elsewhere.",
    "caf\u{e9} \u{2013} na\u{ef}ve \u{1f600}",
    "one\ntwo\n  three",
    "  blanks around  ",
    "Python 3.11, no type hints before 3.9.",
    "\u{a7} stands between notes",
    "The server listens on port 8080.",
];

fn note(draw: &mut Draw) -> String {
    match draw.below(9) {
        0 => format!("{} ", word(draw)).repeat(draw.one(&[40, 120, 300])),
        1 => format!("{} is {}", word(draw), word(draw)),
        _ => draw.one(NOTES).to_owned(),
    }
}

/// Notes made, changed and taken away, one by one and several at once.
pub fn notes(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    if draw.chance(50) {
        let kept: Vec<String> = (0..1 + draw.below(4))
            .map(|_| note(draw).trim().to_owned())
            .collect();
        let name = draw.one(&["MEMORY.md", "USER.md"]);
        let end = draw.one(&["", "\n"]);
        let text = format!("{}{end}", kept.join("\n\u{a7}\n"));
        files.push((format!("{MEMORIES}/{name}"), text));
    }
    (0..2 + draw.below(4)).map(|_| notes_call(draw)).collect()
}

/// One call.
pub fn notes_call(draw: &mut Draw) -> Step {
    let target = draw.one(&["memory", "memory", "user"]);
    let old = draw.one(&[
        "make",
        "The",
        "user",
        "is",
        "caf\u{e9}",
        "nothing like it",
        "t",
    ]);
    let one = |draw: &mut Draw| match draw.below(5) {
        0 | 1 => json!({"action": "add", "content": note(draw)}),
        2 => json!({"action": "replace", "old_text": old, "content": note(draw)}),
        3 => json!({"action": "remove", "old_text": old}),
        _ => json!({"action": "add", "content": draw.one(NOTES)}),
    };
    if draw.chance(30) {
        let operations: Vec<Value> = (0..1 + draw.below(4)).map(|_| one(draw)).collect();
        let operations = match draw.below(6) {
            0 => json!(json!(operations).to_string()),
            _ => json!(operations),
        };
        return call(
            "memory",
            json!({"target": target, "operations": operations}),
        );
    }
    let mut args = one(draw);
    if let Some(args) = args.as_object_mut()
        && draw.chance(85)
    {
        args.insert("target".to_owned(), json!(target));
    }
    call("memory", args)
}

fn skill(draw: &mut Draw, name: &str) -> String {
    let tags = draw.one(&[
        "",
        "tags: [one, two]\n",
        "version: 1.2.0\n",
        "platforms: [linux]\n",
        "metadata:\n  hermes:\n    tags: [a]\n    category: tools\n",
    ]);
    format!(
        "---\nname: {name}\ndescription: How to {} the {}\n{tags}---\n\n# {}\n\n1. Look at the {}.\n2. Then {} it.\n",
        word(draw),
        word(draw),
        word(draw),
        word(draw),
        word(draw)
    )
}

/// Skills listed, read, made and changed.
pub fn skills(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let names: Vec<String> = (0..1 + draw.below(3))
        .map(|at| format!("{}-{at}", word(draw)))
        .collect();
    for name in &names {
        let folder = draw.one(&["", "", "tools/"]);
        let text = skill(draw, name);
        files.push((format!("{SKILLS}/{folder}{name}/SKILL.md"), text));
        if draw.chance(50) {
            let part = draw.one(&["references/api.md", "scripts/run.sh", "templates/page.md"]);
            files.push((
                format!("{SKILLS}/{folder}{name}/{part}"),
                "# part\n".to_owned(),
            ));
        }
    }
    let fresh = format!("{}-new", word(draw));
    (0..2 + draw.below(4))
        .map(|_| {
            let name = if draw.chance(25) {
                fresh.clone()
            } else {
                draw.one(&names)
            };
            match draw.below(9) {
                0 => call("skills_list", json!({})),
                1 => call("skills_list", json!({"category": draw.one(&["tools", "none"])})),
                2 => call("skill_view", json!({ "name": name })),
                3 => call(
                    "skill_view",
                    json!({"name": name, "file_path": draw.one(&["references/api.md", "scripts/run.sh"])}),
                ),
                4 => call(
                    "skill_manage",
                    json!({"action": "create", "name": fresh, "content": skill(draw, &fresh)}),
                ),
                5 => call(
                    "skill_manage",
                    json!({"action": "patch", "name": name, "old_string": draw.one(&["2. Then", "1. Look at the", "Look  at"]), "new_string": "3. Now"}),
                ),
                6 => call(
                    "skill_manage",
                    json!({"action": "edit", "name": name, "content": skill(draw, &name)}),
                ),
                7 => call(
                    "skill_manage",
                    json!({"action": "write_file", "name": name, "file_path": "references/new.md", "file_content": "# new\n"}),
                ),
                _ => call("skill_manage", json!({"action": "delete", "name": name})),
            }
        })
        .collect()
}
