//! The program at a terminal of its own: keys in, a screen out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::home::Home;

/// Longer than anything takes on a machine with other work to do.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Pty {
    keys: File,
    child: Child,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// Everything that came, as it came.
    pub raw: Vec<u8>,
    /// What was on the screen when something was typed last.
    typed_on: Option<String>,
}

impl Pty {
    /// Starts the program at a terminal of 24 lines of 100 columns.
    pub fn start(home: &Home, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_under(home, &[], arguments, env)
    }

    /// The same, of a program that another one starts.
    pub fn start_under(
        home: &Home,
        starter: &[&str],
        arguments: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        resize_to(&master, 24, 100);
        let slave = || {
            let file = File::options()
                .read(true)
                .write(true)
                .open(name.to_str().unwrap())
                .unwrap();
            Stdio::from(OwnedFd::from(file))
        };
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .args(starter)
            .arg(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(arguments)
            .current_dir(home.project())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .envs(env.iter().copied())
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .unwrap();
        let mut reading = File::from(master.try_clone().unwrap());
        let (say, output) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // A terminal nobody holds any more ends with an error.
            while let Ok(got @ 1..) = reading.read(&mut piece) {
                if say.send(piece[..got].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            keys: File::from(master),
            child,
            output,
            screen: vt100::Parser::new(cells(24), cells(100), 5000),
            raw: Vec::new(),
            typed_on: None,
        }
    }

    pub fn keys(&mut self, keys: &str) {
        self.bytes(keys.as_bytes());
    }

    /// Keys of a terminal that is not in UTF-8.
    pub fn bytes(&mut self, keys: &[u8]) {
        self.typed_on = Some(self.shown());
        self.keys.write_all(keys).unwrap();
    }

    pub fn resize(&mut self, rows: u16, columns: u16) {
        resize_to(&self.keys, rows, columns);
        self.screen
            .screen_mut()
            .set_size(cells(rows), cells(columns));
    }

    /// From here on the terminal does not say how large it is; it has so many columns.
    pub fn says_no_size(&mut self, columns: u16) {
        resize_to(&self.keys, 0, 0);
        self.screen.screen_mut().set_size(cells(24), cells(columns));
    }

    /// Whether the terminal itself shows what is typed.
    pub fn echoes(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.keys).unwrap().local_modes;
        modes.contains(rustix::termios::LocalModes::ECHO)
    }

    /// The process that was started.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// What is on the screen.
    pub fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    /// What is in each of its rows, also where one goes on in the next.
    pub fn rows(&self) -> Vec<String> {
        let screen = self.screen.screen();
        screen.rows(0, screen.size().1.get()).collect()
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub fn until(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let shown = self.shown();
            if wanted(&shown) {
                return shown;
            }
            match self.output.recv_timeout(Duration::from_millis(200)) {
                Ok(bytes) => {
                    self.raw.extend_from_slice(&bytes);
                    self.screen.process(&bytes);
                }
                Err(RecvTimeoutError::Timeout) if began.elapsed() < PATIENCE => {}
                Err(_) => panic!("this never came; the screen: {shown}"),
            }
        }
    }

    /// Wherever its rows end.
    #[track_caller]
    pub fn sees(&mut self, text: &str) -> String {
        self.until(|shown| shown.contains(text) || in_one_row(shown).contains(text))
    }

    /// Calls off what is being done, again and again until this is seen.
    #[track_caller]
    pub fn interrupt_until(&mut self, text: &str) {
        for _ in 0..60 {
            self.keys("\u{3}");
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(2) {
                if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
                    self.raw.extend_from_slice(&bytes);
                    self.screen.process(&bytes);
                }
                if self.shown().contains(text) {
                    return;
                }
            }
        }
        panic!("it cannot be called off: {}", self.shown());
    }

    /// Waits for an empty prompt on the last line. One at which something was typed since is
    /// another: until it is read, that one is still on the screen.
    #[track_caller]
    pub fn prompt(&mut self) -> String {
        let before = self.typed_on.clone();
        self.until(|shown| {
            let is_new = before.as_deref() != Some(shown);
            let shown = shown.trim_end();
            is_new && (shown == ">" || shown.ends_with("\n>"))
        })
    }

    /// Waits until the program has ended.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // Until nobody has the terminal any more, which ends the reading; who was
                // left behind with it is not waited for.
                while let Ok(bytes) = self.output.recv_timeout(Duration::from_secs(5)) {
                    self.raw.extend_from_slice(&bytes);
                    self.screen.process(&bytes);
                }
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "it goes on: {}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The prompt of a home where the first start is over.
pub fn at_prompt(home: &Home) -> Pty {
    let mut pty = Pty::start(home, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    pty
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(number: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(number).unwrap()
}

fn resize_to(terminal: &impl std::os::fd::AsFd, rows: u16, columns: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}

/// What is shown in rows of a terminal, in one: where a row ends depends on how long the name
/// of the directory is that a test works in.
pub fn in_one_row(shown: &str) -> String {
    let rows = shown.lines().map(|row| {
        let row = row.trim();
        row.strip_prefix("| ").unwrap_or(row)
    });
    rows.collect::<Vec<_>>().join(" ")
}
