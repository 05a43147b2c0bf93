//! The page in a real browser: Chromium, without a window, driven by its
//! DevTools protocol over two pipes (a message is JSON and a NUL).

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bisim_world::protocol::{EffectKind, End, FsEffect, RawTrace, StepOutcome, StepTrace};

use super::tests::{page_with, result};
use super::*;
use crate::verdict::Kind;

/// A machine may be busy; nothing here is about time.
const PATIENCE: Duration = Duration::from_secs(240);

/// Everything a person would press, in order; says what was then to be seen.
const PRESS: &str = r##"(async () => {
  const until = async (what) => {
    for (;;) {
      const got = what();
      if (got) return got;
      await new Promise((next) => setTimeout(next, 20));
    }
  };
  const at = (id) => document.getElementById(id);
  const told = {};
  await until(() => document.querySelectorAll("#cases>li").length === 2);
  told.all = at("count").textContent;
  at("words").value = "two";
  at("words").dispatchEvent(new Event("input", { bubbles: true }));
  told.found = at("count").textContent;
  document.querySelector("#cases button.case").click();
  await until(() => document.querySelector(".more .sides"));
  told.sides = [...document.querySelectorAll(".more .sides h4")].slice(0, 2).map((n) => n.textContent);
  told.replay = document.querySelector(".more .replay").textContent;
  told.trace = document.querySelector(".more").textContent.includes("the text of step one");
  told.effects = [...document.querySelectorAll(".more .effects li")].map((n) => `${n.className} ${n.textContent}`);
  const columns = getComputedStyle(document.querySelector(".sides")).gridTemplateColumns;
  told.columns = columns.split(" ").length;
  told.address = location.hash;
  at("reset").click();
  await until(() => at("count").textContent === told.all);
  at("suites").querySelector("td[data-kind] .n").click();
  told.suite = at("suite").value;
  told.runs = at("trend-plot").querySelectorAll("rect").length;
  told.plot = [...at("campaign-plots").querySelectorAll("title")].map((n) => n.textContent);
  told.fits = document.documentElement.scrollWidth <= innerWidth;
  told.width = innerWidth;
  return JSON.stringify(told);
})()"##;

/// A browser and the two ends of its pipes.
struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    last: u64,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    fn start(dir: &Path) -> Self {
        let pipes = ["to", "from"].map(|name| {
            let path = dir.join(name);
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            // For reading and writing, so that opening waits for nobody.
            let end = File::options().read(true).write(true).open(&path);
            (path, end.unwrap())
        });
        let [(to_path, to), (from_path, from)] = pipes;
        let child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<\"$IN\" 4>\"$OUT\"", "sh", "chromium"])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", dir.join("profile").display()))
            .env("IN", to_path)
            .env("OUT", from_path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(from).split(0) {
                let told = message.ok().and_then(|m| serde_json::from_slice(&m).ok());
                if told.is_none_or(|told| sender.send(told).is_err()) {
                    return;
                }
            }
        });
        Self {
            child,
            to,
            from: receiver,
            last: 0,
        }
    }

    fn ask(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let told = self.from.recv_timeout(PATIENCE).expect("an answer");
            if told["id"] == json!(self.last) {
                assert!(told.get("error").is_none(), "{method}: {told}");
                return told["result"].clone();
            }
        }
    }

    /// Opens the page at this size, presses everything, and takes a picture.
    fn visit(&mut self, page: &Path, width: u32, height: u32) -> (Value, Vec<u8>) {
        let made = self.ask(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = self.ask(None, "Target.attachToTarget", target);
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        let session = Some(session.as_str());
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 640,
        });
        self.ask(session, "Emulation.setDeviceMetricsOverride", size);
        let url = format!("file://{}", page.display());
        self.ask(session, "Page.navigate", json!({ "url": url }));
        let press = json!({ "expression": PRESS, "awaitPromise": true, "returnByValue": true });
        let told = self.ask(session, "Runtime.evaluate", press);
        let told = told["result"]["value"].as_str().unwrap_or_else(|| {
            panic!("{told}");
        });
        let shot = self.ask(
            session,
            "Page.captureScreenshot",
            json!({ "format": "png" }),
        );
        let picture = data_encoding::BASE64.decode(shot["data"].as_str().unwrap().as_bytes());
        (serde_json::from_str(told).unwrap(), picture.unwrap())
    }
}

/// One step that made these files.
fn trace(made: &[&str]) -> RawTrace {
    let mut step = StepTrace::of(StepOutcome::Ran);
    step.text = "the text of step one".to_owned();
    RawTrace {
        steps: vec![step],
        effects: made
            .iter()
            .map(|path| FsEffect {
                path: (*path).to_owned(),
                kind: EffectKind::Created,
                digest: String::new(),
                size: 1,
                mode: 0o644,
            })
            .collect(),
        network: Vec::new(),
        tripwires: Vec::new(),
        end: End::Finished,
        cpu_us: 1,
        wall_us: 1,
    }
}

/// Width and height, as the picture says.
fn size_of(png: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn a_browser_filters_opens_and_plots_at_the_width_of_a_desk_and_of_a_phone() {
    if !Command::new("chromium")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        println!("SKIPPED: there is no chromium here; `apt-get install chromium` brings it");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut two = result("case-two", Kind::Stricter, "it asked");
    (two.hermes, two.agent) = (Some(trace(&["/both", "/one"])), Some(trace(&["/both"])));
    let text = page_with(&[result("case-one", Kind::Equal, "the same"), two]);
    let page = dir.path().join("index.html");
    fs::write(&page, text).unwrap();
    let mut browser = Browser::start(dir.path());
    for (width, height, columns) in [(1280, 900, 2), (390, 844, 1)] {
        let (told, picture) = browser.visit(&page, width, height);
        assert_eq!(told["all"], "2 of 2 cases");
        assert_eq!(told["found"], "1 of 2 cases");
        assert_eq!(told["sides"], json!(["Hermes", "hermitcrab"]));
        assert_eq!(told["replay"], "cargo bisim check --explain case-two");
        assert_eq!(told["trace"], true);
        let effects = told["effects"].as_array().unwrap();
        let marked = |path: &str| -> Vec<bool> {
            let of = effects.iter().filter_map(Value::as_str);
            of.filter(|told| told.contains(path))
                .map(|told| told.starts_with("only "))
                .collect()
        };
        assert_eq!(marked("/both"), [false, false], "the same on both sides");
        assert_eq!(marked("/one"), [true], "an effect of one side stands out");
        assert_eq!(told["columns"], columns, "side by side where there is room");
        assert!(told["address"].as_str().unwrap().contains("case=case-two"));
        assert_eq!(told["suite"], "<suite>");
        assert_eq!(told["runs"], 2);
        assert_eq!(told["plot"], json!(["wrapper, hermes-silent: 3 of 3"]));
        assert_eq!(told["fits"], true, "nothing is wider than {width}");
        assert_eq!(told["width"], width);
        assert_eq!(size_of(&picture), (width, height));
        assert!(picture.len() > 4_000, "{width}: an empty picture");
    }
}
