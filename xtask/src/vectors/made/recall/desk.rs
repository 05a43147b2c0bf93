//! The conversations somebody had before, as the suite `recall` looks for them.

use serde_json::{Value, json};

use super::talk::Talk;

/// How many there are.
pub const TALKS: u64 = 16;
/// Which of them are of a kind that cases name.
pub const LONG: u64 = 3;
pub const EMPTY: u64 = 4;
pub const SHORT: u64 = 5;
pub const TOOLS: u64 = 2;
/// Of this many messages all are read, ...
pub const THIRTY: u64 = 12;
/// ... and of one more the middle is left out.
pub const THIRTY_ONE: u64 = 13;

/// A text in whose midst a word stands, far from both ends.
fn long(word: &str) -> String {
    let many = |from: usize| {
        let words = (from..from + 90).map(|n| format!("filler{n}"));
        words.collect::<Vec<_>>().join(" ")
    };
    format!("{} {word} {}", many(0), many(100))
}

/// All of them, in the order they began.
pub fn conversations() -> Vec<Value> {
    let talks = [
        Talk::new(0, "cli", 0)
            .title("Docker networking")
            .user("How does docker networking work between two containers?")
            .answer("Put both into one user-defined bridge network; docker then resolves names.")
            .user("And docker compose?")
            .answer("Compose makes a network for each project. Docker docker docker."),
        Talk::new(1, "acp", 60)
            .title("Auth refactor")
            .model(Some("claude-4"))
            .user("Refactor the auth module: split login from token refresh.\nKeep the API.")
            .answer("I split `auth.py` into login.py and refresh.py; the API is as it was.")
            .user("TODO: fix the failing chat-send test in my_app.config.ts, see P2.2")
            .answer("Done: chat-send passes, P2.2 is closed."),
        Talk::new(TOOLS, "cli", 120)
            .title("deploy pipeline")
            .user("Deploy the staging branch and show me the log")
            .used(
                "",
                "terminal",
                &json!({"command": "kubectl rollout status zebrafish"}),
                "{\"output\": \"waiting for flamingo rollout\\nerror: quota exceeded\", \"exit_code\": 1}",
            )
            .used(
                "The quota is exceeded; I look at the limits.",
                "read_file",
                &json!({"path": "/home/u/proj/limits.yaml"}),
                "cpu: 2\nmemory: 4Gi\nflamingo: true\n",
            )
            .answer("Deploying needs a higher quota: raise `cpu` to 4.")
            .user("Deployed, thanks. Deployment notes go into the wiki.")
            .answer(""),
        {
            let mut talk = Talk::new(LONG, "cli", 180).title("Long migration").step(61_000);
            for number in 1..=15 {
                talk = talk
                    .user(&format!("step {number}: migrate table t{number}"))
                    .used(
                        if number % 3 == 0 { "" } else { "running it" },
                        "terminal",
                        &json!({"command": format!("migrate t{number}")}),
                        &format!("migrated t{number} in {number}.5 s"),
                    )
                    .answer(&format!("table t{number} is migrated{}", if number == 8 { "; the albatross constraint was dropped" } else { "" }));
            }
            talk
        },
        Talk::new(EMPTY, "cli", 200).title("Nothing said").model(None),
        Talk::new(SHORT, "acp", 220)
            .model(None)
            .user("  \n  one lone question about the heron, with a first line that is longer than sixty letters are\nand a second"),
        Talk::new(6, "cli", 240)
            .title("Caf\u{e9} \u{dc}bung")
            .user("Das Caf\u{e9} an der Stra\u{df}e macht \u{dc}bungen: na\u{ef}ve fa\u{e7}ade r\u{e9}sum\u{e9}")
            .answer("cafe naive resume UBUNGEN \u{3a3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c2} \u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430} \u{130}stanbul e\u{301}clair"),
        Talk::new(7, "cli", 300)
            .title("\u{5927}\u{522b}\u{5c71}\u{9879}\u{76ee}")
            .user("\u{8bf7}\u{8ba8}\u{8bba}\u{5927}\u{522b}\u{5c71}\u{9879}\u{76ee}\u{7684}\u{8fdb}\u{5c55}")
            .answer("\u{5e7f}\u{897f}\u{548c}\u{6842}\u{6797}\u{5728}\u{6f13}\u{6c5f}\u{8fb9}\u{3002}\u{6771}\u{4eac}\u{30bf}\u{30ef}\u{30fc} docker \u{c548}\u{b155}\u{d558}\u{c138}\u{c694}")
            .used(
                "",
                "terminal",
                &json!({"command": "echo \u{6f13}\u{6c5f}\u{8fb9}\u{7684}\u{8239}"}),
                "\u{6f13}\u{6c5f}\u{8fb9}\u{7684}\u{8239} ok",
            )
            .answer("\u{5c71} A\u{5c71}B \u{9879}\u{76ee} 100%_done"),
        Talk::new(8, "acp", 360)
            .title("Docker networking #2")
            .user("docker networking again \u{1f680}: why is the bridge \u{1f469}\u{200d}\u{1f4bb} slow?")
            .answer("MTU \u{1f680}\u{1f680}. See https://example.org/a-b?c=d&e=f#g and mail ops@example.org"),
        Talk::new(9, "cli", 420)
            .title("It's \"quoted\" here")
            .user("before\u{0}after pelican and C++ or C#, a*b, {x}, [y], ^z, a:b, 3.14, v1.2.3-rc.1")
            .answer("json:[\"not parsed\"]")
            .user("snake_case_name and camelCase, /home/u/proj/src/main.py, don't, rock'n'roll"),
        Talk::new(10, "cli", 480)
            .title("needles")
            .user(&long("ostrich"))
            .answer(&format!("ostrich {}", long("x")))
            .user(&format!("{} ostrich", long("y")))
            .answer(&format!("ostrich {} ostrich", long("z"))),
        Talk::new(11, "cli", 480)
            .title("same moment")
            .step(0)
            .user("kingfisher")
            .answer("kingfisher")
            .user("kingfisher")
            .answer("kingfisher"),
        {
            let mut talk = Talk::new(THIRTY, "acp", 540).title("thirty").step(1_000);
            for number in 1..=15 {
                talk = talk.user(&format!("heading {number}")).answer(&format!("line {number}"));
            }
            talk
        },
        {
            let mut talk = Talk::new(THIRTY_ONE, "acp", 600).title("thirty-one").step(1_001);
            for number in 1..=15 {
                talk = talk.user(&format!("heading {number}")).answer(&format!("line {number}"));
            }
            talk.user("NEAR the end AND so on OR not")
        },
        Talk::new(14, "cli", 660)
            .title("100% of a_b")
            .user("python is not java; PYTHON and Java, pythonic")
            .answer("python java python"),
        Talk::new(15, "cli", 660)
            .user("kingfisher")
            .answer("java without the other language"),
    ];
    talks.into_iter().map(Talk::value).collect()
}
