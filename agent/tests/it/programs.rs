//! Programs a person has put into their home or their project, and what is said where a
//! command is not shown them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use crate::support::home::{Home, Ran, put_program};

/// The program run by somebody whose shell looks for programs in these directories first.
fn run(home: &Home, dirs: &[&Path], arguments: &[&str]) -> Ran {
    let mut path: Vec<&str> = dirs.iter().map(|dir| dir.to_str().unwrap()).collect();
    path.push("/usr/bin:/bin");
    let mut command = home.command(&home.project(), arguments);
    let output = command.env("PATH", path.join(":")).output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn where_a_program_is_that_commands_are_not_shown_is_said_and_then_it_is_found() {
    let home = Home::new();
    let dir = home.path().join("tools");
    std::fs::create_dir(&dir).unwrap();
    put_program(&dir.join("zqgreet"), "#!/bin/sh\necho hello\n");
    let ran = run(&home, &[&dir], &["exec", "--", "zqgreet"]);
    assert_eq!(ran.code, Some(127), "{ran:?}");
    let way = "`hermitcrab config add-directory ~/tools`";
    assert!(ran.err.contains(way), "{ran:?}");
    // Also where another program looked for it.
    let through = ["exec", "--", "printf 'all:\\n\\tzqgreet\\n' | make -f -"];
    let ran = run(&home, &[&dir], &through);
    assert!(ran.code != Some(0) && ran.err.contains(way), "{ran:?}");
    // Nothing is said of what is nobody's, nor of what is found.
    let ran = run(&home, &[&dir], &["exec", "--", "zqnobodys"]);
    assert!(
        ran.code == Some(127) && !ran.err.contains("add-directory"),
        "{ran:?}"
    );
    let ran = run(&home, &[&dir], &["exec", "--", "echo zqgreet: not found"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    // Done as it says.
    assert_eq!(
        home.run(&["config", "add-directory", "~/tools"]).code,
        Some(0)
    );
    let ran = run(&home, &[&dir], &["exec", "--", "zqgreet"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "hello\n"),
        "{ran:?}"
    );
    // Who does not look there themselves has no use for it.
    assert_eq!(run(&home, &[], &["exec", "--", "zqgreet"]).code, Some(127));
}

#[test]
fn programs_of_a_project_come_before_the_machines_where_they_do_for_their_person() {
    let home = Home::new();
    let dir = home.project().join(".venv/bin");
    std::fs::create_dir_all(&dir).unwrap();
    put_program(&dir.join("env"), "#!/bin/sh\necho of the project\n");
    let link = home.path().join("link");
    std::os::unix::fs::symlink(home.project(), &link).unwrap();
    for named in [dir.clone(), link.join(".venv/bin")] {
        let ran = run(&home, &[&named], &["exec", "--", "env"]);
        assert_eq!(ran.out, "of the project\n", "{named:?}: {ran:?}");
    }
    let ran = run(&home, &[], &["exec", "--", "env"]);
    assert!(ran.code == Some(0) && ran.out.contains("PATH="), "{ran:?}");
    // A directory named from where one happens to be is none of theirs.
    let ran = run(
        &home,
        &[Path::new(".venv/bin"), Path::new("")],
        &["exec", "--", "env"],
    );
    assert!(ran.out.contains("PATH=/usr/local/sbin:"), "{ran:?}");
}

#[test]
fn where_packages_lie_straight_in_the_home_not_all_of_it_is_shown() {
    let home = Home::new();
    let bin = home.path().join("bin");
    let odd = home.path().join("my tools");
    for dir in [&bin, &home.path().join("lib/node_modules/zqnpm"), &odd] {
        std::fs::create_dir_all(dir).unwrap();
    }
    put_program(&bin.join("zqnpm"), "#!/bin/sh\n");
    put_program(&odd.join("zqodd"), "#!/bin/sh\n");
    let dirs = [bin.as_path(), &odd];
    let ran = run(&home, &dirs, &["exec", "--", "zqnpm"]);
    assert!(ran.err.contains("add-directory ~/bin`"), "{ran:?}");
    // A word of a command line, whatever is in it.
    let ran = run(&home, &dirs, &["exec", "--", "zqodd"]);
    let way = format!("add-directory '{}'`", odd.display());
    assert!(ran.err.contains(&way), "{ran:?}");
}

#[test]
fn what_manages_releases_of_a_language_is_named_with_where_it_keeps_them() {
    let home = Home::new();
    let cargo = home.path().join(".cargo/bin");
    let node = home.path().join(".nvm/versions/node/v20.1.0");
    let shims = home.path().join(".pyenv/shims");
    for dir in [
        &cargo,
        &node.join("bin"),
        &node.join("lib/node_modules/zqnpm"),
        &shims,
    ] {
        std::fs::create_dir_all(dir).unwrap();
    }
    put_program(&cargo.join("rustup"), "#!/bin/sh\n");
    std::os::unix::fs::symlink("rustup", cargo.join("zqcargo")).unwrap();
    put_program(&node.join("lib/node_modules/zqnpm/cli"), "#!/bin/sh\n");
    std::os::unix::fs::symlink("../lib/node_modules/zqnpm/cli", node.join("bin/zqnpm")).unwrap();
    put_program(&shims.join("zqpython"), "#!/bin/sh\n");
    let dirs = [cargo.as_path(), &node.join("bin"), &shims];
    for (program, way) in [
        ("zqcargo", "add-directory ~/.cargo/bin ~/.rustup`"),
        ("zqnpm", "add-directory ~/.nvm/versions/node/v20.1.0`"),
        ("zqpython", "add-directory ~/.pyenv`"),
    ] {
        let ran = run(&home, &dirs, &["exec", "--", program]);
        assert_eq!(ran.code, Some(127), "{ran:?}");
        assert!(ran.err.contains(way), "{way}: {ran:?}");
    }
}

#[test]
fn what_a_program_fetches_goes_beside_a_home_in_which_nothing_can_be_made() {
    let home = Home::new();
    let told = |variables: &[(&str, &Path)]| {
        let line = "mkdir -p \"$XDG_CACHE_HOME\" \"$npm_config_cache\" \"$CARGO_HOME\" \"$GOPATH\" && \
                    echo \"$XDG_CACHE_HOME $npm_config_cache $CARGO_HOME $GOPATH $GRADLE_USER_HOME $RUSTUP_HOME\"";
        let mut command = home.command(&home.project(), &["exec", "--", line]);
        command.envs(variables.iter().copied());
        command.output().unwrap()
    };
    let out = |output: &std::process::Output| {
        let text = [output.stdout.clone(), output.stderr.clone()].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    let releases = home.path().join("releases");
    let cargo = home.path().join(".cargo");
    for dir in [&releases, &cargo.join("bin"), &cargo.join("registry")] {
        std::fs::create_dir_all(dir).unwrap();
    }
    let ran = told(&[("RUSTUP_HOME", &releases)]);
    assert_eq!(
        out(&ran),
        "/tmp/.cache /tmp/.npm /tmp/.cargo /tmp/go /tmp/.gradle \n"
    );
    assert_eq!(ran.status.code(), Some(0));
    // Programs are found by `PATH`; releases of them where they are shown.
    let show = |dir: &Path| {
        let added = home.run(&["config", "add-directory", dir.to_str().unwrap()]);
        assert_eq!(added.code, Some(0), "{added:?}");
    };
    show(&cargo.join("bin"));
    show(&releases);
    let expected = format!(
        "/tmp/.cache /tmp/.npm /tmp/.cargo /tmp/go /tmp/.gradle {}\n",
        releases.display()
    );
    assert_eq!(out(&told(&[("RUSTUP_HOME", &releases)])), expected);
    // What was fetched already is used, where it is shown.
    show(&cargo.join("registry"));
    let ran = home.run(&["exec", "--", "echo \"[$CARGO_HOME]\""]);
    assert_eq!(ran.out, "[]\n", "{ran:?}");
    let ran = told(&[("CARGO_HOME", &cargo)]);
    assert!(
        out(&ran).contains(&format!("/tmp/.npm {}", cargo.display())),
        "{ran:?}"
    );
}

#[test]
fn maven_keeps_what_it_fetches_and_goes_through_the_proxy_by_options_that_are_added() {
    let home = Home::new();
    let told = |arguments: &[&str]| {
        let line = "echo \"$MAVEN_OPTS\"; echo \"$GRADLE_OPTS\"";
        let ran = home.run(&[&["exec"], arguments, &["--", line]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    let kept = "-Dmaven.repo.local=/tmp/.m2/repository";
    assert_eq!(told(&[]), format!("{kept}\n\n"));
    let proxied = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 \
                   -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128";
    let system = "-Daether.connector.http.useSystemProperties=true";
    assert_eq!(
        told(&["--grant", "net.connect=example.org:443"]),
        format!("{kept} {proxied} {system}\n{proxied} {system}\n")
    );
    // What lies on the machine's loopback is reached that way, too.
    let everything = format!("{proxied} -Dhttp.nonProxyHosts= {system}");
    assert_eq!(
        told(&["--grant", "net.connect=127.0.0.1:9"]),
        format!("{kept} {everything}\n{everything}\n")
    );
    // Whoever shows their own has it used.
    std::fs::create_dir(home.path().join(".m2")).unwrap();
    let added = home.run(&["config", "add-directory", "~/.m2"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(told(&[]), "\n\n");
}
