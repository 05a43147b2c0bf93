//! `skills_list`, `skill_view`, `skill_manage`, `memory` and `todo`.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{document, service};
use crate::vectors::draft::Draft;
use crate::vectors::emit::Suite;

const SEED: &str = "skills-1";
const SKILLS: &str = "/home/u/.hermes/skills";
const MEMORIES: &str = "/home/u/.hermes/memories";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for _ in 0..25 {
        cases.push(list(&mut draw)?);
    }
    for _ in 0..90 {
        cases.push(view(&mut draw)?);
    }
    for _ in 0..120 {
        cases.push(manage(&mut draw)?);
    }
    for _ in 0..80 {
        cases.push(memory(&mut draw)?);
    }
    for _ in 0..50 {
        cases.push(todo(&mut draw)?);
    }
    let mut defaults = super::defaults(SEED);
    if let Some(defaults) = defaults.as_object_mut() {
        defaults.insert(
            "held".into(),
            json!([
                {"id": "skills", "verb": "fs.*", "on": SKILLS},
                {"id": "memories", "verb": "fs.*", "on": MEMORIES},
            ]),
        );
        defaults.insert(
            "world".into(),
            json!({"cwd": super::WORKSPACE, "files": [{"path": SKILLS, "dir": true}]}),
        );
    }
    Ok(Suite {
        name: "skills",
        description: "Skills listed, read and managed, notes kept and tasks noted: each in a directory that is held, or in the session alone.",
        flags: vec![
            service("skills-list", "a call of skills_list"),
            service("skill-view", "a call of skill_view"),
            service(
                "skill-manage",
                "a call of skill_manage, and what is seen after it",
            ),
            service("memory", "calls of memory"),
            service("todo", "calls of todo"),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("skills", cases),
        left_out: Vec::new(),
    })
}

struct Skill {
    dir: String,
    name: String,
    /// Directories of files that belong to it.
    parts: Vec<&'static str>,
}

fn heading(draw: &mut Draw, name: &str) -> anyhow::Result<String> {
    let mut text = String::from("---\n");
    text.push_str(&format!("name: {name}\n"));
    if !draw.chance(10)? {
        text.push_str(&format!(
            "description: How to {} the {}\n",
            document::word(draw)?,
            document::word(draw)?
        ));
    }
    match draw.below(6)? {
        0 => text.push_str("tags: [one, 'two']\n"),
        1 => text.push_str("tags: one, two\nversion: 1.2.0\n"),
        2 => text.push_str("metadata:\n  hermes:\n    tags: [a, b]\n    related_skills: [other]\n"),
        3 => text.push_str("license: MIT\ncompatibility: any shell\n"),
        4 => text.push_str("platforms: [linux, macos]\n"),
        _ => {}
    }
    text.push_str("---\n\n");
    Ok(text)
}

fn body(draw: &mut Draw) -> anyhow::Result<String> {
    Ok(format!(
        "# {}\n\n1. Look at the {}.\n2. Then {} it with care.\n{}",
        document::word(draw)?,
        document::word(draw)?,
        document::word(draw)?,
        draw.one(&[
            "",
            "\nFiles are in ${HERMES_SKILL_DIR}.\n",
            "\n```sh\necho \u{e9}\n```\n"
        ])?,
    ))
}

/// A few skills with their files, and the world they are in.
fn shelf(draw: &mut Draw) -> anyhow::Result<(Vec<Skill>, Value)> {
    let mut skills: Vec<Skill> = Vec::new();
    let mut files = Vec::new();
    let mut put = |dir: &str, name: &str, text: String| {
        files.push(json!({"path": format!("{SKILLS}/{dir}/{name}"), "text": text}))
    };
    for _ in 0..1 + draw.below(3)? {
        let folder = format!("{}-{}", document::word(draw)?, draw.below(9)?).replace('_', "");
        let category = draw.one(&["", "", "tools/", "notes/"])?;
        let dir = format!("{category}{folder}");
        let name = if draw.chance(20)? {
            format!("{folder}-named")
        } else {
            folder
        };
        if skills
            .iter()
            .any(|known| known.dir == dir || known.name == name)
        {
            continue;
        }
        let text = format!("{}{}", heading(draw, &name)?, body(draw)?);
        put(&dir, "SKILL.md", text);
        let mut parts = Vec::new();
        for (part, file, text, percent) in [
            ("references", "references/api.md", "# api\n", 50),
            ("scripts", "scripts/run.sh", "echo run\n", 25),
            ("templates", "templates/page.md", "title\n", 25),
        ] {
            if draw.chance(percent)? {
                put(&dir, file, text.to_owned());
                parts.push(part);
            }
        }
        if draw.chance(15)? {
            put(&dir, "notes.md", "more\n".to_owned());
        }
        skills.push(Skill { dir, name, parts });
    }
    Ok((skills, json!({"files": files})))
}

fn list(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (_, world) = shelf(draw)?;
    let args = draw.one(&[
        json!({}),
        json!({"category": "tools"}),
        json!({"category": "none"}),
        json!({"category": ""}),
        json!({"x": 1}),
    ])?;
    let draft = Draft::made().flag("skills-list");
    let draft = if draw.chance(12)? {
        draft
    } else {
        draft.field("world", world)
    };
    Ok(draft.call("skills_list", &args))
}

fn one<'s>(draw: &mut Draw, skills: &'s [Skill]) -> anyhow::Result<&'s Skill> {
    let at = draw.below(skills.len())?;
    skills
        .get(at)
        .ok_or_else(|| anyhow::anyhow!("no skill was made"))
}

fn view(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (skills, world) = shelf(draw)?;
    let skill = one(draw, &skills)?;
    let folder = skill
        .dir
        .rsplit('/')
        .next()
        .unwrap_or(&skill.dir)
        .to_owned();
    let name = match draw.below(8)? {
        0 => skill.dir.clone(),
        1 => skill.name.clone(),
        2 => skill.dir.replace('/', ":"),
        3 => draw
            .one(&["absent", "../x", "/etc", "", "tools", "a b", "tools/absent"])?
            .to_owned(),
        _ => folder,
    };
    let mut args = json!({"name": name});
    if draw.chance(45)? {
        args["file_path"] = json!(draw.one(&[
            "references/api.md",
            "scripts/run.sh",
            "templates/page.md",
            "notes.md",
            "SKILL.md",
            "references/none.md",
            "../other",
            "/etc/passwd",
            "references",
            "",
            "./notes.md",
        ])?);
    }
    Ok(Draft::made()
        .flag("skill-view")
        .field("world", world)
        .call("skill_view", &args))
}

fn manage(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (skills, world) = shelf(draw)?;
    let skill = one(draw, &skills)?;
    let folder = skill
        .dir
        .rsplit('/')
        .next()
        .unwrap_or(&skill.dir)
        .to_owned();
    let name = if draw.chance(10)? {
        "absent".to_owned()
    } else {
        folder
    };
    let fresh = format!("fresh-{}", draw.below(9)?);
    let text = format!("{}{}", heading(draw, &fresh)?, body(draw)?);
    let path = draw.one(&[
        "references/new.md",
        "references/api.md",
        "scripts/run.sh",
        "assets/deep/x.txt",
        "other/x.md",
        "references",
        "../x",
        "/abs",
        "SKILL.md.bak",
    ])?;
    let args = match draw.below(10)? {
        0 => json!({"action": "create", "name": fresh, "content": text}),
        1 => {
            json!({"action": "create", "name": fresh, "content": text, "category": draw.one(&["tools", "brand-new", "Bad Name", "a/b", ""])?})
        }
        2 => {
            json!({"action": "create", "name": draw.one(&["Bad", "", "x y", "-a", "ok.name"])?, "content": draw.one(&[
            text.clone(), "no heading".to_owned(), "---\nname: a\n".to_owned(), "---\nname: a\n---\nx\n".to_owned(),
            "---\ndescription: a\n---\nx\n".to_owned(), "---\n- a\n---\nx\n".to_owned(), "---\nname: a\ndescription: b\n---\n\n".to_owned(), String::new(), "  \n".to_owned(),
        ])?})
        }
        3 => json!({"action": "edit", "name": name, "content": text}),
        4 => {
            json!({"action": "patch", "name": name, "old_string": draw.one(&["Then", "1. Look", "with  care", "zzz", "", "the"])?, "new_string": draw.one(&["Now", ""])?, "replace_all": draw.chance(30)?})
        }
        5 => {
            json!({"action": "patch", "name": name, "file_path": path, "old_string": "api", "new_string": "API"})
        }
        6 => {
            json!({"action": "delete", "name": name, "absorbed_into": draw.one(&[json!(null), json!(""), json!("absent"), json!(name)])?})
        }
        7 => {
            json!({"action": "write_file", "name": name, "file_path": path, "file_content": draw.one(&["text\n", ""])?})
        }
        // What is there instead is told in no fixed order if there is more than one part.
        8 if skill.parts.len() > 1 => {
            json!({"action": "remove_file", "name": name, "file_path": draw.one(&["other/x.md", "references", "../x"])?})
        }
        8 => json!({"action": "remove_file", "name": name, "file_path": path}),
        _ => draw.one(&[
            json!({"action": "unknown", "name": name}),
            json!({"action": "create", "name": fresh}),
            json!({"action": "edit", "name": name}),
            json!({"action": "write_file", "name": name, "file_path": "references/x.md"}),
            json!({"action": "remove_file", "name": name}),
            json!({"action": "patch", "name": name, "old_string": "x"}),
        ])?,
    };
    let draft = Draft::made()
        .flag("skill-manage")
        .field("world", world)
        .call("skill_manage", &args);
    Ok(if draw.chance(30)? {
        draft.call("skill_view", &json!({"name": name}))
    } else {
        draft
    })
}

const NOTES: &[&str] = &[
    "the user likes tea",
    "tests run with make check",
    "caf\u{e9} is spelled so",
    "line one\nline two",
    " padded ",
    "the user likes coffee",
];

fn note(draw: &mut Draw) -> anyhow::Result<String> {
    Ok(match draw.below(8)? {
        0 => "long ".repeat(draw.one(&[100, 300, 440, 500])?),
        1 => String::new(),
        _ => draw.one(NOTES)?.to_owned(),
    })
}

fn memory(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut kept = Vec::new();
    for _ in 0..draw.below(4)? {
        kept.push(draw.one(NOTES)?.trim().to_owned());
    }
    let mut draft = Draft::made().flag("memory");
    if !kept.is_empty() {
        let name = draw.one(&["MEMORY.md", "USER.md"])?;
        draft = draft.field("world", json!({"files": [{"path": format!("{MEMORIES}/{name}"), "text": kept.join("\n\u{a7}\n")}]}));
    }
    for _ in 0..1 + draw.below(4)? {
        let target = draw.one(&[
            json!("memory"),
            json!("memory"),
            json!("user"),
            json!(null),
            json!("other"),
        ])?;
        let old = draw.one(&["likes", "tea", "make", "nothing like it", "", "m"])?;
        let args = match draw.below(7)? {
            0 | 1 => json!({"action": "add", "target": target, "content": note(draw)?}),
            2 => {
                json!({"action": "replace", "target": target, "old_text": old, "content": note(draw)?})
            }
            3 => json!({"action": "remove", "target": target, "old_text": old}),
            4 => draw.one(&[
                json!({"action": "unknown", "target": "memory"}),
                json!({"target": "memory"}),
                json!({"action": "add", "target": "user"}),
            ])?,
            _ => {
                let mut operations = Vec::new();
                for _ in 0..1 + draw.below(3)? {
                    let content = note(draw)?;
                    operations.push(draw.one(&[
                        json!({"action": "add", "content": content}),
                        json!({"action": "remove", "old_text": old}),
                        json!({"action": "replace", "old_text": old, "content": content}),
                        json!({"action": "odd"}),
                    ])?);
                }
                json!({"target": target, "operations": operations})
            }
        };
        draft = draft.call("memory", &args);
    }
    Ok(draft)
}

fn todo(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut draft = Draft::made().flag("todo");
    for _ in 0..1 + draw.below(4)? {
        let mut items = Vec::new();
        for _ in 0..draw.below(4)? {
            let id = draw.one(&[
                json!("1"),
                json!("2"),
                json!("3"),
                json!(""),
                json!(4),
                json!(null),
                json!(" 5 "),
            ])?;
            let status = draw.one(&[
                "pending",
                "in_progress",
                "completed",
                "cancelled",
                "DONE",
                " Completed ",
            ])?;
            let mut item = json!({"id": id, "content": format!("{} the {}", document::word(draw)?, document::word(draw)?), "status": status});
            if draw.chance(20)? {
                let key = draw.one(&["id", "content", "status"])?;
                if let Some(map) = item.as_object_mut() {
                    map.remove(key);
                }
            }
            items.push(item);
        }
        let todos = json!(items);
        let args = match draw.below(7)? {
            0 => json!({}),
            1 => json!({"todos": todos.to_string()}),
            2 => draw.one(&[
                json!({"todos": "x"}),
                json!({"todos": 5}),
                json!({"todos": {"id": "1"}}),
                json!({"todos": null}),
                json!({"todos": ["word"]}),
            ])?,
            3 | 4 => json!({"todos": todos, "merge": true}),
            _ => json!({"todos": todos}),
        };
        draft = draft.call("todo", &args);
    }
    Ok(draft)
}
