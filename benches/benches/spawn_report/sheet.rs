//! The measurements, and the two forms they are written in.

use std::fmt::Write as _;
use std::time::Duration;

/// One line of the report.
pub struct Line {
    pub group: &'static str,
    pub name: String,
    /// Its own times, and the baseline's of the same rounds.
    pub times: Vec<Duration>,
    pub base: Vec<Duration>,
    /// The ratio that was aimed at.
    pub target: Option<f64>,
}

impl Line {
    pub fn median(&self) -> f64 {
        quantile(&self.times, 0.5)
    }

    pub fn p99(&self) -> f64 {
        quantile(&self.times, 0.99)
    }

    pub fn ratio(&self) -> f64 {
        self.median() / quantile(&self.base, 0.5)
    }
}

/// What is to be said of a figure that should not be above its target.
pub fn at_most(figure: f64, target: f64) -> String {
    said(figure <= target, target)
}

/// What is to be said of a figure that should not be below its target.
pub fn at_least(figure: f64, target: f64) -> String {
    said(figure >= target, target)
}

fn said(kept: bool, target: f64) -> String {
    let end = if kept { "kept" } else { "missed" };
    format!("target {target:.2} {end}")
}

/// In microseconds.
pub fn quantile(times: &[Duration], at: f64) -> f64 {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    sorted.sort_by(f64::total_cmp);
    let place = ((sorted.len().saturating_sub(1)) as f64 * at).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

pub fn table(lines: &[Line], notes: &[String]) -> String {
    let mut text = String::from(
        "# What a confined command costs\n\n\
         Written by `cargo xtask bench-report`; do not edit. A ratio compares the medians of \
         the same rounds, taken in turns: the line's own and a bare posix_spawn with capture \
         pipes of the same program. Carry the ratios to another machine, not the times.\n\n\
         ![ratios](spawn.svg)\n",
    );
    let mut group = "";
    for line in lines {
        if line.group != group {
            group = line.group;
            let _ = write!(
                text,
                "\n## {group}\n\n| what | median µs | p99 µs | ratio | target | n |\n|---|--:|--:|--:|--:|--:|\n"
            );
        }
        let target = line.target.map_or(String::from("-"), |target| {
            let kept = if line.ratio() <= target {
                "kept"
            } else {
                "missed"
            };
            format!("{target:.2} {kept}")
        });
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {:.2} | {target} | {} |",
            line.name,
            line.median(),
            line.p99(),
            line.ratio(),
            line.times.len()
        );
    }
    text.push_str("\n## Notes\n\n");
    for note in notes {
        let _ = writeln!(text, "- {note}");
    }
    text
}

/// Bars of the ratios, on a logarithmic scale.
pub fn plot(lines: &[Line]) -> String {
    const ROW: usize = 22;
    const LEFT: f64 = 420.0;
    const UNIT: f64 = 90.0;
    let height = lines.len() * ROW + 40;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1060\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"1060\" height=\"{height}\" fill=\"white\"/>\n"
    );
    // Half, one, two, four ... times a bare spawn.
    let x = |ratio: f64| LEFT + UNIT * (ratio.max(0.25).log2() + 2.0).min(6.6);
    for (ratio, label) in [
        (0.5, "0.5"),
        (1.0, "1"),
        (2.0, "2"),
        (4.0, "4"),
        (8.0, "8"),
        (16.0, "16"),
    ] {
        let at = x(ratio);
        let bottom = height - 10;
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.0}\" y1=\"24\" x2=\"{at:.0}\" y2=\"{bottom}\" stroke=\"#ccc\"/><text x=\"{at:.0}\" y=\"16\" text-anchor=\"middle\">{label}</text>"
        );
    }
    for (number, line) in lines.iter().enumerate() {
        let top = number * ROW + 28;
        let text_at = top + 14;
        let end = x(line.ratio());
        let colour = if line.name.starts_with("hermitcrab") {
            "#c8553d"
        } else {
            "#8fa3ad"
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{text_at}\" text-anchor=\"end\">{}</text><rect x=\"{LEFT:.0}\" y=\"{top}\" width=\"{:.0}\" height=\"16\" fill=\"{colour}\"/><text x=\"{:.0}\" y=\"{text_at}\">{:.2}</text>",
            LEFT - 8.0,
            escaped(&line.name),
            end - LEFT,
            end + 6.0,
            line.ratio()
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
