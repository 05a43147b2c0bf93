//! A running session, looked at and ended from another terminal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Stdio},
    time::Instant,
};

use hermitcrab::{
    control::{Connection, Reply, Request},
    runtime::{GrantWords, Proposed},
};
use hermitcrab_core::{outcome::DenialCode, session::Asking, time::Millis};

use crate::support::{
    Bench,
    home::{Home, until},
};

/// A session in which a command runs that takes long.
fn working(home: &Home) -> Child {
    let session = home
        .command(
            &home.project(),
            &["exec", "--", "echo x > made.txt; sleep 600"],
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until(|| {
        let listed = home.run(&["session"]);
        listed.out.contains("1 call running").then_some(())
    });
    session
}

/// Its exit code and what it said.
fn end_of(mut session: Child) -> (Option<i32>, String) {
    let status = until(|| session.try_wait().unwrap());
    let said = std::io::read_to_string(session.stderr.take().unwrap()).unwrap();
    (status.code(), said)
}

/// The listed grant whose line has these words, such as `grant4`.
fn named(home: &Home, words: &str) -> String {
    let listed = home.ok(&["session"]);
    let line = listed.lines().find(|line| line.contains(words));
    let line = line.unwrap_or_else(|| panic!("no `{words}` in\n{listed}"));
    line.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn of_two_sessions_in_one_workspace_each_is_told_by_where_it_runs() {
    let home = Home::new();
    let mut both = [working(&home), working(&home)];
    until(|| {
        let listed = home.run(&["session"]).out;
        (listed.matches("1 call running").count() == 2).then_some(())
    });
    let told = home.run(&["session", "end"]).err;
    assert!(told.contains("several sessions run"), "{told}");
    for session in &mut both {
        let process = format!("(process {})", session.id());
        assert!(told.contains(&process), "{process}: {told}");
        let listed = home.ok(&["session"]);
        assert!(listed.contains(&process), "{process}: {listed}");
        session.kill().unwrap();
        session.wait().unwrap();
    }
}

#[test]
fn a_session_is_reached_from_and_in_a_container_that_does_not_see_the_other_end() {
    let home = Home::new();
    let inside = |arguments: &[&str]| {
        let whole = ["-Urpf", "--mount-proc", env!("CARGO_BIN_EXE_hermitcrab")];
        let mut command = std::process::Command::new("unshare");
        command
            .args(whole)
            .args(arguments)
            .current_dir(home.project())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin");
        command
    };
    // Whoever lists is inside, and the session is in no process namespace of its.
    let mut session = working(&home);
    let listed = inside(&["session"]).output().unwrap();
    let told = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.status.success(), "{listed:?}");
    assert!(
        told.contains("(its process is not seen from here)"),
        "{told}"
    );
    assert!(told.contains("1 call running"), "{told}");
    session.kill().unwrap();
    session.wait().unwrap();

    // The other way round whoever lists has a number nowhere inside.
    let mut session = inside(&[]);
    let mut session = session
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let listed = until(|| {
        let listed = home.run(&["session"]);
        listed.out.contains("(process ").then_some(listed.out)
    });
    assert!(!listed.contains("not seen"), "{listed}");
    assert_eq!(home.ok(&["session", "end"]), "done\n");
    drop(session.stdin.take());
    assert!(session.wait().unwrap().success());
}

#[test]
fn a_grant_of_a_running_session_is_listed_and_revoked_and_what_ran_on_it_is_gone() {
    let home = Home::new();
    let session = working(&home);
    let grant = named(&home, "live  proc.exec");
    let listed = home.ok(&["session"]);
    assert!(listed.contains("11 hours left"), "{listed}");
    assert!(listed.contains("29 days left"), "{listed}");
    let asked = Instant::now();
    let done = home.ok(&["session", "revoke", &grant, "--drain"]);
    assert_eq!(done.trim_end(), format!("done; ended: {grant}"));
    println!("drained {:?} after the command was given", asked.elapsed());
    let (code, said) = end_of(session);
    assert_eq!(code, Some(77), "{said}");
    assert!(said.contains("revoked"), "{said}");
    assert!(!home.project().join("made.txt").exists());
    for kind in ["revoked", "stopped", "drained"] {
        assert!(
            home.ledger().contains(&format!("\"kind\":\"{kind}\"")),
            "{kind}"
        );
    }
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
    // A list of none is a list; what is to be done to one that is not there is a mistake.
    for (arguments, code) in [
        (&["session"][..], 0),
        (&["session", "list"], 0),
        (&["session", "--session", "12ab"], 64),
        (&["session", "end"], 64),
    ] {
        let none = home.run(arguments);
        assert_eq!(none.code, Some(code), "{none:?}");
        assert!(none.err.contains("no session runs"), "{}", none.err);
    }
}

#[test]
fn a_session_is_ended_from_elsewhere_with_everything_that_runs_in_it() {
    let home = Home::new();
    let session = working(&home);
    home.ok(&["session", "end"]);
    let (code, said) = end_of(session);
    assert_eq!(code, Some(77), "{said}");
    assert!(!home.project().join("made.txt").exists());
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
}

#[test]
fn a_grant_ends_with_the_program_that_gave_it_or_is_an_orphan_when_that_dies() {
    let home = Home::new();
    let session = working(&home);
    let grant = |home: &Home| {
        let mut granter = home
            .command(&home.project(), &["session", "grant", "fs.create=./src"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(granter.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        (granter, said.split_whitespace().next().unwrap().to_owned())
    };
    let state_of = |name: &str| {
        let listed = home.ok(&["session"]);
        let line = listed
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{name} ")));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };

    let (mut granter, name) = grant(&home);
    assert_eq!(state_of(&name), "live");
    drop(granter.stdin.take());
    assert!(granter.wait().unwrap().success());
    assert_eq!(state_of(&name), "revoked");

    // `setsid` replaces itself by the program, so it is the granter that dies.
    let (mut granter, name) = grant(&home);
    assert_eq!(state_of(&name), "live");
    granter.kill().unwrap();
    granter.wait().unwrap();
    until(|| (state_of(&name) == "orphaned").then_some(()));
    assert!(
        home.ok(&["session"])
            .contains("its granter is gone; it ends in")
    );
    assert!(home.ledger().contains("\"kind\":\"orphaned\""));
    // It can still be ended by the person.
    home.ok(&["session", "revoke", &name]);
    assert_eq!(state_of(&name), "revoked");
    home.ok(&["session", "end"]);
    end_of(session);
}

/// A session of this process, reachable, and a conversation with it.
fn reachable(laxest: Asking) -> (Bench, Connection) {
    let mut bench = Bench::new();
    bench.runtime.be_reachable(&bench.state, laxest).unwrap();
    let connection = Connection::open(&bench.state).unwrap();
    (bench, connection)
}

#[track_caller]
fn done(to: &mut Connection, request: &Request) -> Vec<u32> {
    match to.ask(request).unwrap() {
        Reply::Done { grants } => grants,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn code(to: &mut Connection, request: &Request) -> String {
    match to.ask(request).unwrap() {
        Reply::Refused { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_proposal_is_nothing_until_exactly_it_is_accepted() {
    let (mut bench, mut to) = reachable(Asking::ApproveAll);
    let first = bench.runtime.first_agent();
    let place = bench.workspace.join("a.txt");
    let words = GrantWords::new("fs.create", place.to_str().unwrap());
    let write = serde_json::json!({"path": place, "content": "x\n"});
    let before = bench.runtime.held_by(first).len();
    let Proposed::Waiting(id) = bench.runtime.propose("judge-1", first, &words).unwrap() else {
        panic!("nobody was there to look at it");
    };
    assert_eq!(
        bench.runtime.held_by(first).len(),
        before,
        "a proposal grants nothing"
    );
    bench.call("write_file", write.clone());
    assert!(!place.exists());

    let Reply::Listing(listing) = to.ask(&Request::List).unwrap() else {
        panic!("no listing");
    };
    let shown = listing.proposals.first().unwrap();
    assert_eq!(
        (shown.proposal, shown.judge.as_str()),
        (id.get(), "judge-1")
    );
    let accept = |digest: &str| Request::Accept {
        proposal: id.get(),
        digest: digest.to_owned(),
    };
    let other = "0".repeat(shown.digest.len());
    assert_eq!(code(&mut to, &accept(&other)), "changed-since-shown");
    assert_eq!(done(&mut to, &accept(&shown.digest)).len(), 1);
    bench.call("write_file", write);
    assert!(place.exists());
    assert_eq!(code(&mut to, &accept(&shown.digest)), "unknown-proposal");
}

#[test]
fn a_holder_accepts_a_proposal_only_as_far_as_it_holds_itself() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let from = bench.grant("fs.create", "src");
    let child = bench.runtime.spawn(first, &[]).unwrap();
    let mut propose = |below: &str| {
        let on = bench.workspace.join(below).to_string_lossy().into_owned();
        match bench
            .runtime
            .propose("judge-1", child, &GrantWords::new("fs.create", &on))
        {
            Ok(Proposed::Waiting(id)) => bench.runtime.accept_as_holder(id, first, from),
            other => panic!("{other:?}"),
        }
    };
    assert!(propose("src/a.txt").is_ok());
    assert!(
        propose("docs/a.txt").is_err(),
        "no more than the holder has"
    );
    assert_eq!(bench.runtime.held_by(child).len(), 1);
}

#[test]
fn the_mode_is_changed_for_a_running_session_but_never_laxer_than_the_administrator_says() {
    let (mut bench, mut to) = reachable(Asking::Prompt);
    let mode = |mode: &str| Request::Mode {
        mode: mode.to_owned(),
    };
    bench.put("a.txt", "a\n");
    let remove = serde_json::json!({"command": "rm a.txt"});
    done(&mut to, &mode("reject_all"));
    let report = bench.call("terminal", remove.clone());
    assert!(report.questions.is_empty(), "nobody is asked any more");
    assert!(bench.text("a.txt").is_some());
    done(&mut to, &mode("approve_all"));
    let report = bench.call("terminal", remove);
    assert_eq!(report.questions.len(), 1, "it is asked about, not allowed");
    assert!(bench.text("a.txt").is_some());
    assert_eq!(code(&mut to, &mode("yes")), "bad-arguments");
}

#[test]
fn a_grant_is_forwarded_to_an_agent_and_ends_with_it() {
    let (mut bench, mut to) = reachable(Asking::ApproveAll);
    let first = bench.runtime.first_agent();
    let from = bench.grant("fs.create", "src");
    let looking = bench.runtime.harmless_grants(first);
    let child = bench.runtime.spawn(first, &looking).unwrap();
    let path = bench.workspace.join("src/a.txt");
    let write = serde_json::json!({"path": path, "content": "x\n"});
    bench.runtime.call(child, "write_file", &write);
    assert!(!path.exists());
    let forward = Request::Forward {
        grant: from.get(),
        agent: child.get(),
    };
    assert_eq!(done(&mut to, &forward).len(), 1);
    bench.runtime.call(child, "write_file", &write);
    assert!(path.exists());
    let ended = done(&mut to, &Request::EndAgent { agent: child.get() });
    assert_eq!(ended.len(), looking.len() + 1, "what it held");
    std::fs::remove_file(&path).unwrap();
    bench.runtime.call(child, "write_file", &write);
    assert!(!path.exists());
    assert_eq!(
        code(&mut to, &Request::EndAgent { agent: child.get() }),
        DenialCode::UnknownAgent.as_str()
    );
    // The parent still has what it passed on.
    bench.call("write_file", write);
    assert!(path.exists());
}

#[test]
fn noise_on_the_socket_is_refused_and_harms_nothing() {
    let (bench, mut to) = reachable(Asking::ApproveAll);
    let name = bench.state.join(hermitcrab::control::SOCKET_NAME);
    for noise in ["\n", "{}\n", "{\"do\":\"own\"}\n", "\u{0}\n", "[1,2\n"] {
        let mut raw = std::os::unix::net::UnixStream::connect(&name).unwrap();
        raw.write_all(noise.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(raw).read_line(&mut answer).unwrap();
        assert!(answer.contains("\"bad-arguments\""), "{noise:?}: {answer}");
    }
    for grant in [
        ("fs.create", "relative"),
        ("fs.create", "/elsewhere/entirely"),
        ("config.change", "*"),
        ("fs.fly", "/"),
    ] {
        let request = Request::Grant {
            verb: grant.0.to_owned(),
            on: grant.1.to_owned(),
            seconds: None,
        };
        assert_eq!(code(&mut to, &request), "bad-arguments", "{grant:?}");
    }
    for request in [
        Request::Revoke {
            grant: 4_000_000,
            drain: true,
        },
        Request::Forward {
            grant: 4_000_000,
            agent: 0,
        },
    ] {
        assert_eq!(code(&mut to, &request), "unknown-grant");
    }
}

#[test]
fn who_waits_for_a_model_learns_at_once_that_what_it_goes_on_has_ended() {
    for (by_deadline, code) in [(false, DenialCode::Revoked), (true, DenialCode::Expired)] {
        let (mut bench, mut to) = reachable(Asking::ApproveAll);
        let first = bench.runtime.first_agent();
        let mut words = GrantWords::new("model.send", "m");
        words.lifetime = Some(Millis::from_minutes(1));
        let grant = bench.runtime.grant(first, &words).unwrap().get();
        let clock = bench.clock.clone();
        let mut is_told = false;
        let came = bench.runtime.converse(first, "m", b"hello", |over| {
            assert!(!over.is_thrown());
            if by_deadline {
                clock.set(Millis::from_minutes(2).get());
                until(|| over.is_thrown().then_some(()));
            } else {
                let drain = false;
                done(&mut to, &Request::Revoke { grant, drain });
            }
            is_told = over.is_thrown();
        });
        assert!(is_told);
        assert_eq!(came.unwrap_err().code(), code);
    }
}
