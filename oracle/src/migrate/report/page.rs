//! `migration.html`: the plan as one page, for a browser without a network.
//!
//! The page has no script, and its rules forbid any: what was recorded is hostile
//! text, and it only ever stands between tags, escaped.

mod calls;
mod least;

use super::Report;
use crate::{
    figures::{calls, grouped},
    migrate::translate::About,
    report::html::{STYLE, text},
    report::publish::quoted,
};

const ROWS_MAX: usize = 500;
const OWN_STYLE: &str = "h3{font-size:.95rem;margin:1.6rem 0 .4rem}thead th,td.why,td.call{text-align:left}tbody th{white-space:normal;overflow-wrap:anywhere}section>p{max-width:52rem;color:var(--quiet)}td.call,td.why{white-space:normal;text-align:left;overflow-wrap:anywhere}td.call,td.why{min-width:14rem}td.tool{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:6rem}td.call,code{font:13px/1.45 ui-monospace,monospace}code{overflow-wrap:anywhere}section>ul{padding-left:1.2rem}details{border:1px solid var(--line);border-radius:8px;margin:.35rem 0;background:var(--card);padding:.45rem .7rem}summary{cursor:pointer}svg polyline{fill:none;stroke:var(--named);stroke-width:2}";

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
    decide(&mut page, report);
    calls::render(&mut page, report);
    least::render(&mut page, report);
    proposals(&mut page, report);
    facts(&mut page, report);
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

    /// Words of ours, in which what is to be typed stands between backticks.
    fn told(&mut self, words: &str) {
        let parts = words.split('`');
        let is_paired = parts.clone().count() % 2 == 1;
        for (place, part) in parts.enumerate() {
            match (is_paired, place % 2) {
                (true, 1) => {
                    self.raw("<code>");
                    self.text(part);
                    self.raw("</code>");
                }
                (false, 1..) => self.text(&format!("`{part}")),
                _ => self.text(part),
            }
        }
    }

    fn item_told(&mut self, words: &str) {
        self.raw("<li>");
        self.told(words);
        self.raw("</li>");
    }

    fn item(&mut self, words: &str) {
        self.raw("<li>");
        self.text(words);
        self.raw("</li>");
    }

    /// The beginning of a table, with its columns' names.
    fn head(&mut self, names: &[&str]) {
        self.raw("<div class=\"wide\"><table><thead><tr>");
        for name in names {
            self.raw("<th>");
            self.text(name);
            self.raw("</th>");
        }
        self.raw("</tr></thead><tbody>\n");
    }

    /// The end of one.
    fn foot(&mut self) {
        self.raw("</tbody></table></div>\n");
    }

    /// A row's first cell.
    fn first(&mut self, words: &str) {
        self.raw("<tr><th>");
        self.text(words);
        self.raw("</th>");
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

/// What only the user can say.
fn decide(page: &mut Page, report: &Report) {
    page.raw("<section>\n<h2>What you have to decide</h2>\n");
    let open = report
        .proposals
        .iter()
        .filter(|one| !one.confirm.is_empty());
    page.raw("<ul>");
    let mut any = false;
    for proposal in open {
        any = true;
        page.raw("<li>");
        page.text(&format!("{} ({}): ", proposal.id, proposal.said));
        page.told(&proposal.confirm);
        page.raw("</li>");
    }
    if !any {
        page.item("nothing");
    }
    page.raw("</ul>\n<p>");
    page.told("`hermitcrab.toml` beside this page holds the denials, and every proposed grant as a comment; `migration.diff` shows what it changes. Take `#? ` away from a grant to give it.");
    page.raw("</p>\n</section>\n");
}

/// What was read.
fn facts(page: &mut Page, report: &Report) {
    page.raw("<section>\n<h2>What was read</h2>\n<ul>");
    page.item(&format!(
        "{} sessions, {} ({} repeated in conversation files, {} not readable)",
        grouped(report.counts.sessions),
        calls(report.counts.calls),
        grouped(report.counts.repeated),
        grouped(report.counts.broken)
    ));
    for line in report.counts.why_unreadable() {
        page.item(&line);
    }
    for (what, names) in [
        ("files", &report.files),
        ("names in .env, never a value", &report.env_names),
    ] {
        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        page.item(&format!("{what}: {names}"));
    }
    for skill in &report.skills {
        page.item(&format!("skill {}: {}", skill.name, skill.description));
    }
    for job in &report.jobs {
        let state = if job.enabled { "" } else { ", paused" };
        page.raw("<li>");
        page.text(&format!(
            "job {} ({}){state}: it will hold nothing until ",
            job.name, job.schedule
        ));
        page.raw("<code>");
        page.text(&format!(
            "hermitcrab cron grant {} VERB=PLACE",
            quoted(&job.id)
        ));
        page.raw("</code> says so</li>");
    }
    if let Some(opened) = report.opened() {
        page.item_told(&opened);
    }
    let mut tools: Vec<_> = report.tools.iter().collect();
    tools.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (tool, count) in tools {
        page.item(&format!("{} of {tool}", calls(*count)));
    }
    page.raw("</ul>\n</section>\n");
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
        page.item_told(&format!("in Hermes: {}", proposal.in_hermes));
        page.item_told(&format!("here: {}", proposal.here));
        for grant in &proposal.grants {
            page.item(&format!(
                "proposed, not granted: {} on {}, for {} h",
                grant.verb,
                grant.on,
                grant.seconds / 3600
            ));
        }
        for denial in &proposal.denials {
            let about = match &denial.about {
                About::On(place) => place.clone(),
                About::Named(name) => format!("files named {name}"),
                About::Host(host) => host.clone(),
            };
            page.item(&format!("denied: {} on {about}", denial.verbs.join(", ")));
        }
        if let Some((key, value)) = &proposal.setting {
            page.item(&format!("set: {key} = {value}"));
        }
        if !proposal.confirm.is_empty() {
            page.item_told(&format!("to confirm: {}", proposal.confirm));
        }
        page.raw("</ul></details>\n");
    }
    page.raw("</section>\n");
}

#[cfg(test)]
mod tests {
    use super::Page;

    #[test]
    fn what_is_to_be_typed_is_set_apart_and_a_stray_mark_stays_one() {
        for (words, shown) in [
            (
                "run `a <b>` now",
                "<li>run <code>a &lt;b&gt;</code> now</li>",
            ),
            (
                "`x`, then `y`",
                "<li><code>x</code>, then <code>y</code></li>",
            ),
            ("one ` alone", "<li>one ` alone</li>"),
        ] {
            let mut page = Page(String::new());
            page.item_told(words);
            assert_eq!(page.0, shown);
        }
    }
}
