//! What is really active, said at the start and by `mounts`.

use hermitcrab_core::rules::Isolation;

use crate::{
    cli::open::Ground,
    model::Backend,
    screen::{Screen, Tone, visible},
    text::rows,
};

/// Where what is told begins, behind its name.
const BEGIN: usize = 11;

/// What the banner tells.
pub struct Active<'a> {
    pub ground: &'a Ground,
    pub isolation: Isolation,
    pub asking: hermitcrab_core::approval::Asking,
    /// Who commands reach outside, as it was granted.
    pub peers: &'a [String],
    pub backend: Option<&'a Backend>,
    pub screen: &'a Screen,
}

impl Active<'_> {
    /// The lines.
    pub fn lines(&self) -> Vec<String> {
        let screen = self.screen;
        let columns = screen.columns_of(&std::io::stdout());
        // Before it has a colour, which takes no room.
        let folded = |text: &str| rows::folded(text, columns, BEGIN);
        let row = |name: &str, text: String| {
            format!("{} {text}", screen.tone(Tone::Dim, &format!("{name:<10}")))
        };
        let isolation =
            match self.isolation {
                Isolation::Isolated => {
                    let text = match self.peers {
                    [] => "isolated: commands run on a copy, without network, as was just tried out"
                        .to_owned(),
                    peers => format!(
                        "isolated: commands run on a copy, as was just tried out, and reach {}",
                        visible(&peers.join(", "))
                    ),
                };
                    screen.tone(Tone::Good, &folded(&text))
                }
                Isolation::Unisolated => screen.tone(
                    Tone::Bad,
                    &folded("unisolated: commands are refused; `doctor` says what is missing"),
                ),
                Isolation::Unknown => screen.tone(
                    Tone::Bad,
                    &folded("unknown: commands are refused; `doctor` says what is missing"),
                ),
            };
        let mut lines = vec![
            row("isolation", isolation),
            row(
                "mode",
                folded(&format!("{}: {}", self.asking, self.asking.sentence())),
            ),
            row(
                "workspace",
                visible(&self.ground.workspace.display().to_string()),
            ),
        ];
        for directory in self.ground.config.directories() {
            lines.push(row("also read", visible(directory)));
        }
        lines.push(row(
            "model",
            match self.backend {
                Some(backend) => format!("{} at {}", visible(&backend.model), visible(&backend.place)),
                None if self.ground.config.models().planner.is_some() => screen.tone(
                    Tone::Warn,
                    &folded("none: the one that is configured cannot be used, as was said; `model check` tries it out"),
                ),
                None => screen.tone(
                    Tone::Warn,
                    &folded("none, so requests in plain language cannot be worked on; `config backend http --model NAME --base-url URL` names one"),
                ),
            },
        ));
        lines
    }
}
