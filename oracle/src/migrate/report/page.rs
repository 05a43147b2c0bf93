//! `migration.html`: the plan as one page, for a browser without a network.
//!
//! The page has no script, and its rules forbid any: what was recorded is hostile
//! text, and it only ever stands between tags, escaped.

use std::fmt::Write as _;

use super::{Report, grouped};
use crate::migrate::replay::Class;
use crate::report::html::{STYLE, text};

const ROWS_MAX: usize = 500;
const OWN_STYLE: &str = "td.call,td.why{white-space:normal;text-align:left;overflow-wrap:anywhere}td.call{font:13px/1.45 ui-monospace,monospace}section>ul{padding-left:1.2rem}details{border:1px solid var(--line);border-radius:8px;margin:.35rem 0;background:var(--card);padding:.45rem .7rem}summary{cursor:pointer}svg polyline{fill:none;stroke:var(--named);stroke-width:2}";

/// The page's text.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut page = Page(String::new());
    page.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>From Hermes to hermitcrab</title>\n<style>");
    page.raw(STYLE);
    page.raw(OWN_STYLE);
    page.raw("</style>\n</head>\n<body>\n<header>\n<p class=\"name\">hermitcrab <span>migration</span></p>\n<h1>");
    page.text(&report.summary);
    page.raw("</h1>\n<ul class=\"facts\">");
    for fact in [
        format!("from {}", report.home),
        format!("hermes-agent {}", report.hermes),
        format!("made {}", report.made),
        "nothing has been granted".to_owned(),
    ] {
        page.item(&fact);
    }
    page.raw("</ul>\n</header>\n<main>\n");
    notes(&mut page, report);
    calls(&mut page, report);
    curve(&mut page, report);
    proposals(&mut page, report);
    page.raw("</main>\n</body>\n</html>\n");
    page.0
}

struct Page(String);

impl Page {
    fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    fn text(&mut self, words: &str) {
        text(&mut self.0, words);
    }

    fn item(&mut self, words: &str) {
        self.raw("<li>");
        self.text(words);
        self.raw("</li>");
    }

    fn cell(&mut self, class: &str, words: &str) {
        self.raw("<td class=\"");
        self.raw(class);
        self.raw("\">");
        self.text(words);
        self.raw("</td>");
    }
}

fn notes(page: &mut Page, report: &Report) {
    if report.notes.is_empty() && report.changed_meanwhile.is_empty() {
        return;
    }
    page.raw("<section>\n<h2>Before you trust this</h2>\n<ul>");
    for note in &report.notes {
        let word = if note.partial { "missing: " } else { "" };
        page.item(&format!("{word}{}: {}", note.about, note.text));
    }
    for file in &report.changed_meanwhile {
        page.item(&format!("{file} changed while this ran"));
    }
    page.raw("</ul>\n</section>\n");
}

const fn colour(class: Class) -> &'static str {
    match class {
        Class::Same => "same",
        Class::Stricter | Class::Attenuated => "named",
        Class::NotReplayed => "open",
        Class::Changed => "fail",
        Class::Unsafe => "unsafe",
    }
}

fn calls(page: &mut Page, report: &Report) {
    let Some(replayed) = &report.replayed else {
        return;
    };
    page.raw("<section>\n<h2>The recorded calls, replayed</h2>\n<ul class=\"legend\">");
    for (class, count) in &replayed.classes {
        page.raw("<li><i class=\"");
        page.raw(colour(*class));
        page.raw("\"></i>");
        page.text(&format!("{} {}", grouped(*count), class.word()));
        page.raw("</li>");
    }
    page.raw("</ul>\n<div class=\"wide\"><table><thead><tr><th>became</th><th>calls</th><th>tool</th><th>call</th><th>why</th></tr></thead><tbody>\n");
    for row in replayed.rows.iter().take(ROWS_MAX) {
        page.raw("<tr><th><span class=\"n ");
        page.raw(colour(row.class));
        page.raw("\">");
        page.text(row.class.word());
        page.raw("</span></th>");
        page.cell("", &grouped(row.count));
        page.cell("", &row.tool);
        page.cell("call", &row.call);
        page.cell("why", &row.why);
        page.raw("</tr>\n");
    }
    page.raw("</tbody></table></div>\n</section>\n");
}

/// Questions left over grants, as a line; the table beneath says the same.
fn curve(page: &mut Page, report: &Report) {
    const WIDTH: u64 = 640;
    const HEIGHT: u64 = 160;
    let curve = &report.suggestion.curve;
    let all = curve.first().copied().unwrap_or_default();
    if all == 0 {
        return;
    }
    page.raw("<section>\n<h2>The least that covers what was recorded</h2>\n<div class=\"wide\"><svg role=\"img\" aria-label=\"questions left over the number of grants\" width=\"680\" height=\"190\" viewBox=\"-30 -10 700 200\">");
    let steps = (curve.len() as u64).saturating_sub(1).max(1);
    let points: Vec<String> = curve
        .iter()
        .enumerate()
        .map(|(place, left)| {
            format!(
                "{},{}",
                place as u64 * WIDTH / steps,
                HEIGHT - left * HEIGHT / all
            )
        })
        .collect();
    // Writing into a string cannot fail; these are numbers only.
    let _ = write!(
        page.0,
        "<line class=\"axis\" x1=\"0\" y1=\"{HEIGHT}\" x2=\"{WIDTH}\" y2=\"{HEIGHT}\"/><polyline points=\"{}\"/><text x=\"0\" y=\"0\">{} questions</text><text x=\"{}\" y=\"{}\">{steps} grants</text>",
        points.join(" "),
        grouped(all),
        WIDTH - 60,
        HEIGHT + 16
    );
    page.raw("</svg></div>\n<div class=\"wide\"><table><thead><tr><th>grant</th><th>questions left</th></tr></thead><tbody>");
    for (grant, left) in report.suggestion.grants.iter().zip(curve.iter().skip(1)) {
        page.raw("<tr><th>");
        page.text(&format!(
            "{} on {}, {} h",
            grant.verb,
            grant.on,
            grant.seconds / 3600
        ));
        page.raw("</th>");
        page.cell("", &grouped(*left));
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>\n</section>\n");
}

fn proposals(page: &mut Page, report: &Report) {
    page.raw("<section>\n<h2>What Hermes was told, and what it means here</h2>\n");
    for proposal in &report.proposals {
        page.raw(if proposal.confirm.is_empty() {
            "<details><summary>"
        } else {
            "<details open><summary>"
        });
        page.text(&format!(
            "{}: {} \u{2014} {}",
            proposal.id, proposal.from, proposal.said
        ));
        page.raw("</summary><ul>");
        page.item(&format!("in Hermes: {}", proposal.in_hermes));
        page.item(&format!("here: {}", proposal.here));
        for grant in &proposal.grants {
            page.item(&format!(
                "proposed, not granted: {} on {}, for {} h",
                grant.verb,
                grant.on,
                grant.seconds / 3600
            ));
        }
        for denial in &proposal.denials {
            page.item(&format!(
                "denied: {} {:?}",
                denial.verbs.join(", "),
                denial.about
            ));
        }
        if !proposal.confirm.is_empty() {
            page.item(&format!("to confirm: {}", proposal.confirm));
        }
        page.raw("</ul></details>\n");
    }
    page.raw("</section>\n");
}
