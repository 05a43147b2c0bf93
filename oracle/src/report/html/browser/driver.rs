//! Chromium, without a window, driven by its DevTools protocol over two pipes (a message is
//! JSON and a NUL).

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// A machine may be busy; nothing here is about time.
const PATIENCE: Duration = Duration::from_secs(240);

/// A browser and the two ends of its pipes.
pub(super) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    last: u64,
    session: Option<String>,
    /// What it complained of, and what it asked a network for.
    pub(super) complaints: Vec<String>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether there is one here; says so where there is none.
pub(super) fn is_here() -> bool {
    let is_here = Command::new("chromium")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_here {
        println!("SKIPPED: there is no chromium here; `apt-get install chromium` brings it");
    }
    is_here
}

impl Browser {
    pub(super) fn start(dir: &Path) -> Self {
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
            .arg("--disable-background-networking")
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
        let mut browser = Self {
            child,
            to,
            from: receiver,
            last: 0,
            session: None,
            complaints: Vec::new(),
        };
        let made = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", target);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = &self.session {
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
            self.note(&told);
        }
    }

    /// Keeps an event that should not have come.
    fn note(&mut self, event: &Value) {
        let wrong = match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => true,
            Some("Network.requestWillBeSent") => {
                let url = event["params"]["request"]["url"].as_str();
                !url.is_some_and(|url| url.starts_with("file:") || url == "about:blank")
            }
            _ => false,
        };
        if wrong {
            self.complaints.push(event.to_string());
        }
    }

    /// How wide and high the window is, and whether a person likes it dark.
    pub(super) fn size(&mut self, (width, height): (u32, u32), scheme: &str) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 640,
        });
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.ask(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        );
    }

    /// Opens a page afresh, and waits until its script is done.
    pub(super) fn open(&mut self, page: &Path, script: &str) {
        self.ask("Page.navigate", json!({ "url": "about:blank" }));
        let url = format!("file://{}", page.display());
        self.ask("Page.navigate", json!({ "url": url }));
        self.until("document.body?.dataset.ready !== undefined");
        self.run(script);
    }

    /// Evaluates; what it comes to.
    pub(super) fn run(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let told = self.ask("Runtime.evaluate", params);
        assert!(
            told.get("exceptionDetails").is_none(),
            "{expression}: {told}"
        );
        told["result"]["value"].clone()
    }

    /// Waits until it is so.
    pub(super) fn until(&mut self, what: &str) {
        self.run(&format!(
            "(async () => {{ while (!({what})) await new Promise((next) => setTimeout(next, 5)); return true; }})()"
        ));
    }

    /// The left button, where `walk.point` says.
    pub(super) fn click(&mut self, at: &Value) {
        for kind in ["mousePressed", "mouseReleased"] {
            let mouse = json!({
                "type": kind, "x": at["x"], "y": at["y"], "button": "left", "clickCount": 1,
            });
            self.ask("Input.dispatchMouseEvent", mouse);
        }
    }

    /// A key of its own: `Tab`, `Enter`, `ArrowDown`.
    pub(super) fn key(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "ArrowDown" => (40, ""),
            other => panic!("{other} is no key this knows"),
        };
        let down = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        for kind in [down, "keyUp"] {
            let key = json!({
                "type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code,
            });
            self.ask("Input.dispatchKeyEvent", key);
        }
    }

    /// What is to be seen, as a PNG.
    pub(super) fn picture(&mut self) -> Vec<u8> {
        let shot = self.ask("Page.captureScreenshot", json!({ "format": "png" }));
        let picture = data_encoding::BASE64.decode(shot["data"].as_str().unwrap().as_bytes());
        picture.unwrap()
    }
}
