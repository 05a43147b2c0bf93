//! An interpreter that was started before its script was known runs it as if
//! it had come after `-c`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::spawn::{Command, Ending, Finished, PoolSize, Sandbox};
use support::time::out_of_time;
use support::{Workspace, sandbox, spawner, text, with_permits};

/// One that starts no interpreter before.
fn plain() -> &'static Sandbox {
    static PLAIN: OnceLock<Sandbox> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let size = PoolSize {
            interpreters_max: 0,
            ..PoolSize::default()
        };
        Sandbox::builder().spawner(spawner()).pool(size).build()
    })
}

fn run_in(sandbox: &Sandbox, command: &Command<'_>) -> Finished {
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    with_permits(Tool::Terminal, vec![action], |mut permits| {
        sandbox.run(permits.pop().unwrap(), command).unwrap()
    })
}

/// Runs the same twice: once with a started interpreter, once without.
fn both(command: &Command<'_>) -> (Finished, Finished) {
    (run_in(sandbox(), command), run_in(plain(), command))
}

/// A command, after a few of its kind: the next finds one started.
fn prepared<'w>(workspace: &'w Workspace, argv: &[&str]) -> Command<'w> {
    let mut command = workspace.command("");
    command.merge_stderr = false;
    command.argv = argv.iter().map(|word| word.as_bytes().to_vec()).collect();
    run_in(sandbox(), &command);
    run_in(sandbox(), &command);
    command
}

fn told(finished: &Finished) -> (Ending, String, String) {
    (
        finished.ending,
        text(finished),
        String::from_utf8_lossy(&finished.stderr.to_bytes()).into_owned(),
    )
}

const SHELL: &[&str] = &[
    "",
    "# nothing",
    "echo \"$0 [$-] $# <$1> <$2>\"",
    "exit 7",
    "false",
    "set -e\nfalse\necho no",
    "set -u\necho $nothing\necho no",
    "echo ${1:?}; echo ${9:?missing}; echo no",
    "no-such-program; echo $?",
    "\n\nno-such-program\necho $LINENO",
    "cd /no/such/place; echo $?",
    "echo a\nif",
    "echo a\n}",
    "echo a\n}; x() {",
    "echo 'open",
    ")",
    "& echo",
    "; echo",
    "cat <<END\na $1 'b'\nEND",
    "cat <<END\nnever ended",
    "trap 'echo bye $?' EXIT; exit 3",
    "trap 'echo term' TERM; kill -TERM $$; echo after",
    "kill -TERM $$",
    "kill -KILL $$",
    "cat; echo read $?",
    "read x; echo $? \"<$x>\"",
    "f() { echo \"in $1\"; return 4; }; f a; echo $? $#",
    "set -- x y z; shift; echo $# $1; echo \"$@\"",
    "exec 3>&1; echo three >&3; exec echo last",
    "exec no-such-program; echo no",
    "(exit 5); echo $?; { echo b; }; echo $(echo c)",
    "echo 'it'\\''s' \"q\\\"q\" $'x' `echo t` \\\\ \"\\$HOME\"",
    "printf '%s\\n' \"$PATH\" \"$PWD\" \"$PPID\" \"$OPTIND\"; umask; pwd",
    "for i in 1 2 3; do [ $i = 2 ] && break; echo $i; done; echo $?",
    "echo x > made; ls; rm made; echo caf\u{e9} \u{1f980}",
    "ls -l /proc/self/fd | wc -l; echo $_h; type _h > /dev/null 2>&1 || echo unknown",
    "env | grep -v -e ^_= | sort; trap",
    "sleep 0.01 & wait $!; echo $? ; jobs",
];

const BASH: &[&str] = &[
    "shopt -s extglob\nls !(x) && echo ok",
    "echo \"$BASH_EXECUTION_STRING\" | wc -c",
    "echo ${BASH_SOURCE[0]} ${#FUNCNAME[@]} $BASH_SUBSHELL $SHLVL",
    "return 3; echo on",
    "local x=1; echo $?",
    "a=(1 2 3); echo ${a[@]:1}; declare -p a; [[ x == x ]] && echo same",
    "set -o pipefail; false | true; echo $?; shopt -o | sort | head -3",
    "trap 'echo err $LINENO' ERR\nfalse\ntrue",
    "diff <(echo a) <(echo b); echo ${x@Q}",
    "caller; echo $?; hash; dirs",
];

const DASH: &[&str] = &[
    "echo a\\nb",
    "return 3; echo on",
    "[[ x == x ]]",
    "alias say=echo\nsay it",
];

const PYTHON: &[&str] = &[
    "",
    "print(1)",
    "import sys; print(sys.argv, sys.path[0] == '', __name__); sys.exit(4)",
    "raise SystemExit('words')",
    "raise ValueError('no')",
    "def f():\n    1 / 0\nf()",
    "print(",
    "if True:\nx = 1",
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('second') from e",
    "import atexit; atexit.register(print, 'bye'); raise RuntimeError",
    "print(sorted(name for name in globals()))",
    "import threading; threading.Thread(target=print, args=('thread',)).start()",
    "import os; print(sorted(os.listdir('/proc/self/fd'))[:4], os.getcwd(), len(os.environ))",
    "import sys; print(repr(sys.stdin.read())); sys.excepthook = lambda *a: print('mine', a[1]); raise OSError(5)",
    "import os; os.kill(os.getpid(), 9)",
    "import os; os._exit(9)",
    "print('caf\u{e9}'); print(__doc__, __spec__, __loader__ is not None)",
    "from __future__ import annotations\ndef f(x: nothing): pass\nprint(f.__annotations__)",
    "import warnings; warnings.warn('careful')",
    "import multiprocessing as m; p = m.Process(target=print, args=(1,)); p.start(); p.join()",
];

#[test]
fn a_shell_that_was_started_before_does_what_one_with_the_script_after_c_does() {
    let workspace = Workspace::new();
    for (argv, own) in [
        (&["bash", "-c", "", "name", "one", "a b"][..], BASH),
        (&["/bin/sh", "-c", "", "name", "one", "a b"], DASH),
        (&["bash", "-c", ""], &[]),
        (&["sh", "-c", ""], &[]),
    ] {
        let mut command = prepared(&workspace, argv);
        // Without arguments only some differ.
        let common = if argv.len() > 3 { SHELL } else { &SHELL[..12] };
        for script in common.iter().chain(own) {
            command.argv[2] = script.as_bytes().to_vec();
            let (started, plain) = both(&command);
            assert_eq!(told(&started), told(&plain), "{argv:?} {script}");
        }
    }
}

#[test]
fn a_python_that_was_started_before_does_what_one_with_the_script_after_c_does() {
    let workspace = Workspace::new();
    if !std::path::Path::new("/usr/bin/python3").exists() {
        println!("SKIPPED: no python3 of the system");
        return;
    }
    let mut command = prepared(&workspace, &["python3", "-c", "", "one"]);
    for script in PYTHON {
        command.argv[2] = script.as_bytes().to_vec();
        let (started, plain) = both(&command);
        assert_eq!(told(&started), told(&plain), "{script}");
    }
}

#[test]
fn an_interpreter_is_started_before_unless_that_is_switched_off() {
    let workspace = Workspace::new();
    let command = prepared(&workspace, &["bash", "-c", "cat /proc/$$/cmdline"]);
    let (started, plain) = both(&command);
    let shown = text(&started);
    assert!(
        shown.contains("/proc/self/fd/8"),
        "{shown:?} {:?} {:?}",
        started.ending,
        started.confined
    );
    assert!(!text(&plain).contains("/proc/self/fd/8"));
}

#[test]
fn a_started_interpreter_sees_the_files_and_inputs_of_its_own_command() {
    let workspace = Workspace::new();
    let mut command = prepared(
        &workspace,
        &[
            "bash",
            "-c",
            "cat /run/hermitcrab/in f; ls -A /run/hermitcrab /tmp",
        ],
    );
    for number in 0..4 {
        workspace.file("f", &format!("file {number}\n"));
        let input = format!("it's \\ \"{number}\"\n$x `y` \u{e9}\n");
        command.inputs = vec![("in".to_owned(), input.clone().into_bytes())];
        let finished = run_in(sandbox(), &command);
        let shown = text(&finished);
        assert!(
            shown.starts_with(&format!("{input}file {number}\n")),
            "{shown}"
        );
        assert_eq!(
            finished.exchange.read("in", 1000).unwrap(),
            input.as_bytes()
        );
    }
}

#[test]
fn a_command_with_another_environment_or_directory_does_not_get_a_started_one() {
    let workspace = Workspace::new();
    let script = "pwd; echo $EXTRA";
    let mut command = prepared(&workspace, &["bash", "-c", script]);
    command.env.push((b"EXTRA".to_vec(), b"yes".to_vec()));
    assert_eq!(
        text(&run_in(sandbox(), &command)),
        format!("{}\nyes\n", workspace.path().display())
    );
    command.cwd = "/usr".into();
    assert_eq!(text(&run_in(sandbox(), &command)), "/usr\nyes\n");
}

#[test]
fn a_timeout_and_a_kill_end_a_started_interpreter_as_any_other() {
    let workspace = Workspace::new();
    let mut command = prepared(&workspace, &["bash", "-c", "true"]);
    command.argv[2] = b"echo on; sleep 1000; echo no".to_vec();
    // Other limits are other surroundings, so not the first of them is started.
    let soon = Duration::from_millis(400);
    for _ in 0..3 {
        let finished = out_of_time(sandbox(), &mut command, soon, |shown| shown == b"on\n");
        assert_eq!(text(&finished), "on\n");
    }
}

#[test]
fn waiting_interpreters_end_with_the_sandbox_they_were_started_for() {
    let workspace = Workspace::new();
    let own = Sandbox::builder().spawner(spawner()).build();
    let mut command = workspace.command("");
    command.argv = vec![b"bash".to_vec(), b"-c".to_vec(), b"true".to_vec()];
    run_in(&own, &command);
    run_in(&own, &command);
    let patience = Instant::now();
    let helpers = loop {
        let helpers = own.helpers();
        let waiting = helpers.iter().any(|id| {
            std::fs::read(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains("/proc/self/fd/8"))
        });
        if waiting {
            break helpers;
        }
        assert!(patience.elapsed() < Duration::from_secs(20), "{helpers:?}");
        std::thread::sleep(Duration::from_millis(5));
    };
    drop(own);
    while helpers
        .iter()
        .any(|id| std::path::Path::new(&format!("/proc/{id}")).exists())
    {
        assert!(patience.elapsed() < Duration::from_secs(40));
        std::thread::sleep(Duration::from_millis(5));
    }
}
