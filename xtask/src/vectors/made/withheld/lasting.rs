//! How long rules last, whom they bind, and what else they say.

use serde_json::{Value, json};

use super::super::{WORKSPACE, at};
use crate::vectors::draft::{Agent, Draft};

const SECRET: &str = "plan/secret.txt";

/// Cases written one by one.
pub fn cases() -> Vec<Draft> {
    let mut cases = Vec::new();
    cases.extend(lasting());
    cases.extend(answered());
    cases.extend(about_changes());
    cases.extend(about_more());
    cases
}

fn withheld(id: &str) -> Draft {
    Draft::made()
        .id(format!("withheld-{id}"))
        .flag("withheld")
        .expect(Agent::MustDeny, "a rule of the user's withholds it")
}

fn beside(id: &str) -> Draft {
    Draft::made().id(format!("withheld-{id}")).flag("beside")
}

fn read(path: &str) -> Value {
    json!({"call": {"tool": "read_file", "args": {"path": path}}})
}

fn cat(path: &str) -> Value {
    run(&format!("cat {path}"))
}

fn run(command: &str) -> Value {
    json!({"call": {"tool": "terminal", "args": {"command": command}}})
}

fn by(child: &str, mut step: Value) -> Value {
    step["call"]["by"] = json!(child);
    step
}

fn rule(id: &str, decision: &str, verbs: &[&str], on: &str) -> Value {
    json!({"id": id, "decision": decision, "verbs": verbs, "on": on})
}

/// A rule outlives sessions and starts, and binds whoever is started.
fn lasting() -> Vec<Draft> {
    let mut cases = Vec::new();
    for (way, step) in [("read", read(SECRET)), ("command", cat(SECRET))] {
        let steps = |id: &str| withheld(&format!("{id}-{way}"));
        cases.push(
            steps("in-the-next-session")
                .step(json!({"end_session": {}}))
                .step(step.clone()),
        );
        cases.push(
            steps("after-a-start")
                .step(step.clone())
                .step(json!({"restart": {}}))
                .step(step.clone()),
        );
        cases.push(
            steps("after-an-hour")
                .step(json!({"advance": {"seconds": 3600}}))
                .step(step.clone()),
        );
        cases.push(
            steps("from-a-child")
                .field(
                    "held",
                    json!([
                        {"id": "ws", "verb": "fs.*", "on": WORKSPACE},
                        {"id": "run", "verb": "proc.exec", "on": "*"},
                    ]),
                )
                .step(json!({"spawn": {"child": "kid", "forward": ["ws", "run"]}}))
                .step(by("kid", step.clone())),
        );
        cases.push(
            steps("whatever-is-granted-later")
                .step(json!({"grant": {"id": "it", "verb": "fs.read", "on": at(SECRET)}}))
                .step(step.clone()),
        );
        // Each time another part of it: the same again is answered without a look.
        cases.push((1..7).fold(steps("however-often"), |draft, time| {
            let mut step = step.clone();
            if way == "read" {
                step["call"]["args"]["limit"] = json!(time);
            }
            draft.step(step)
        }));
    }
    for context in ["headless", "gateway", "cron", "acp"] {
        let context =
            |id: &str| withheld(&format!("{id}-{context}")).field("context", json!(context));
        cases.push(context("read").step(read(SECRET)));
        cases.push(context("command").step(cat(SECRET)));
        cases.push(context("asked-read").step(read("desk/drafts/one.txt")));
    }
    cases
}

/// A rule that wants a question has one asked each time; a command asks nobody.
fn answered() -> Vec<Draft> {
    let draft = "desk/drafts/one.txt";
    let said = |id: &str, user: &str| {
        Draft::made()
            .id(format!("withheld-{id}"))
            .flag("withheld")
            .field("user", json!(user))
    };
    let of_the_yes = "the user said yes to reading this file";
    vec![
        said("asked-and-granted", "grant_once")
            .step(read(draft))
            .expect(Agent::MustPermit, of_the_yes),
        said("asked-and-granted-is-changed", "grant_once")
            .step(json!({"call": {"tool": "write_file", "args": {"path": draft, "content": "new\n"}}}))
            .expecting(json!({"agent": "must-permit", "reason": of_the_yes, "effects": [at(draft)]})),
        said("a-yes-lifts-no-denial", "grant_session")
            .step(read(SECRET))
            .step(cat(SECRET))
            .expect(Agent::MustDeny, "nobody is asked about what a rule refuses"),
        said("no-command-asks", "grant_session")
            .step(cat(draft))
            .expect(Agent::MustDeny, "a command asks nobody while it runs"),
        said("no-search-asks", "grant_session")
            .step(json!({"call": {"tool": "search_files", "args": {"pattern": ".", "path": "desk"}}}))
            .expect(Agent::MustDeny, "a search asks nobody about single files"),
        said("a-yes-is-for-the-file-that-was-shown", "grant_once")
            .step(read("desk/drafts/one.txt"))
            .step(cat(draft))
            .expect(Agent::MustDeny, "the yes was for one call of another tool"),
    ]
}

/// Rules about changes alone: what they are about is read as ever.
fn about_changes() -> Vec<Draft> {
    let rules = |list: Value| move |draft: Draft| draft.field("rules", list);
    let no_change = || {
        rules(json!([rule(
            "keep",
            "deny",
            &["fs.create", "fs.modify", "fs.delete"],
            &at("free")
        )]))
    };
    let mut cases = vec![
        no_change()(beside("kept-is-read")).step(read("free/notes.txt")),
        no_change()(beside("kept-is-shown")).step(run("cat free/notes.txt; ls free")),
        no_change()(beside("kept-is-searched")).step(
            json!({"call": {"tool": "search_files", "args": {"pattern": "needle", "path": "free"}}}),
        ),
    ];
    for (id, command) in [
        ("modified", "echo more >> free/notes.txt"),
        ("deleted", "rm free/notes.txt"),
        ("created", "echo new > free/new.txt"),
        ("moved", "mv free/notes.txt README.old"),
        ("moved-whole", "mv free other"),
        ("moved-into", "mv README free/"),
        ("by-a-link", "ln -s free/notes.txt l; echo more >> l"),
        ("by-git", "cd free && git init -q ."),
    ] {
        cases.push(no_change()(withheld(&format!("kept-is-{id}"))).step(run(command)));
    }
    for (id, step) in [
        (
            "written",
            json!({"call": {"tool": "write_file", "args": {"path": "free/notes.txt", "content": "x\n"}}}),
        ),
        (
            "made",
            json!({"call": {"tool": "write_file", "args": {"path": "free/new.txt", "content": "x\n"}}}),
        ),
        (
            "patched",
            json!({"call": {"tool": "patch", "args": {"mode": "replace", "path": "free/notes.txt", "old_string": "needle", "new_string": "thread"}}}),
        ),
    ] {
        cases.push(no_change()(withheld(&format!("kept-is-{id}"))).step(step));
    }
    cases
}

/// Links, second names, what else is ruled, and rules that allow.
fn about_more() -> Vec<Draft> {
    let link = |path: &str, target: &str| json!({"path": at(path), "symlink": target});
    let world = |files: Vec<Value>| json!({"files": files});
    let deny = |on: &str| json!([rule("no", "deny", &["fs.read"], on)]);
    let mut cases = Vec::new();
    // A rule on a link is about what it leads to, and one on a place about every link there.
    for (way, step) in [
        ("read", read(SECRET)),
        ("command", cat(SECRET)),
        ("read-link", read("door/secret.txt")),
        ("command-link", cat("door/secret.txt")),
    ] {
        cases.push(
            withheld(&format!("by-a-link-{way}"))
                .field("world", world(vec![link("door", "plan")]))
                .field("rules", deny(&at("door")))
                .step(step.clone()),
        );
        cases.push(
            withheld(&format!("behind-a-link-{way}"))
                .field("world", world(vec![link("door", &at("plan"))]))
                .field("rules", deny(&at("plan")))
                .step(step),
        );
    }
    // The file tools write through no link, whatever it leads to; nor does a link made on
    // the way bring a change to what is withheld.
    cases.push(
        withheld("changed-through-a-link")
            .step(run("ln -s plan/secret.txt out.txt"))
            .step(json!({"call": {"tool": "write_file", "args": {"path": "out.txt", "content": "x\n"}}}))
            .step(run("echo more >> out.txt; cat out.txt")),
    );
    // A rule about reading takes no other name of the file away: that is another place.
    let second = json!({"path": at("vault/keys/second.txt"), "hardlink": at("free/notes.txt")});
    let second_names = || world(vec![second.clone()]);
    cases.push(
        beside("a-second-name-is-another-place")
            .field("world", second_names())
            .step(read("free/notes.txt"))
            .step(cat("free/notes.txt")),
    );
    // Everything, the whole workspace, a directory above it, and names of directories.
    for (id, on) in [
        ("everything", "*"),
        ("the-workspace", WORKSPACE),
        ("what-is-above", "/home"),
    ] {
        let drafted = |way: &str| withheld(&format!("{id}-{way}")).field("rules", deny(on));
        cases.push(drafted("read").step(read(SECRET)));
        cases.push(drafted("command").step(cat(&at(SECRET))));
        cases.push(drafted("search").step(
            json!({"call": {"tool": "search_files", "args": {"pattern": ".", "path": "plan"}}}),
        ));
    }
    for name in ["plan", "PLAN", "p*n", "*"] {
        let rules = json!([{"id": "no", "decision": "deny", "verbs": ["fs.read"], "named": name}]);
        let id = match name {
            "PLAN" => "capitals",
            "p*n" => "star",
            "*" => "any-name",
            other => other,
        };
        let drafted =
            |way: &str| withheld(&format!("named-{id}-{way}")).field("rules", rules.clone());
        cases.push(drafted("read").step(read(SECRET)));
        cases.push(drafted("command").step(cat(SECRET)));
    }
    // Who may not list a directory is not shown it by a command either.
    let no_list = json!([rule("no", "deny", &["fs.list"], &at("vault/keys"))]);
    cases.push(
        beside("not-listed-is-read")
            .field("rules", no_list.clone())
            .step(read("vault/keys/one.txt")),
    );
    cases.push(
        Draft::made()
            .id("withheld-not-listed-is-not-shown".to_owned())
            .flag("unlisted")
            .field("rules", no_list)
            .step(run("ls vault/keys; cat vault/keys/one.txt"))
            .expect(
                Agent::Either,
                "no directory can be shown to a command without its names",
            ),
    );
    // What is ruled is made anew: what a command makes itself, it reads.
    cases.push(
        beside("what-a-command-makes-is-its-own")
            .field(
                "rules",
                json!([{"id": "no", "decision": "deny", "verbs": ["fs.read"], "named": "*.own"}]),
            )
            .step(run("echo mine > new.own; cat new.own; rm new.own")),
    );
    // Deny beats ask beats allow; an allow is a grant, in every session.
    let allow = |more: Vec<Value>| {
        let mut rules = vec![rule(
            "notes",
            "allow",
            &["fs.create", "fs.modify"],
            &at("free"),
        )];
        rules.extend(more);
        json!(rules)
    };
    let write = || json!({"call": {"tool": "write_file", "args": {"path": "free/notes.txt", "content": "x\n"}}});
    cases.push(
        beside("allowed-is-held")
            .field("held", json!([]))
            .field("rules", allow(vec![]))
            .step(write())
            .step(run("echo more >> free/notes.txt")),
    );
    cases.push(
        beside("allowed-is-held-in-the-next-session")
            .field("held", json!([]))
            .field("rules", allow(vec![]))
            .step(json!({"end_session": {}}))
            .step(write()),
    );
    for decision in ["deny", "ask"] {
        let stricter = rule("stop", decision, &["fs.modify"], &at("free/notes.txt"));
        cases.push(
            withheld(&format!("{decision}-beats-allow"))
                .field("held", json!([]))
                .field("rules", allow(vec![stricter]))
                .step(write())
                .step(run("echo more >> free/notes.txt")),
        );
    }
    cases
}
