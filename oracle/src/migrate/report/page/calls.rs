//! What became of the calls: the figures, why the agent would ask and what would
//! change that, and the calls themselves.

use super::{super::Report, Page, ROWS_MAX};
use crate::figures::grouped;
use crate::migrate::replay::{Class, Proof, Replayed};

const fn colour(class: Class) -> &'static str {
    match class {
        Class::Same => "same",
        Class::Stricter | Class::Attenuated => "named",
        Class::NotReplayed => "open",
        Class::Changed => "fail",
        Class::Unsafe => "unsafe",
    }
}

/// The section.
pub(super) fn render(page: &mut Page, report: &Report) {
    let Some(replayed) = &report.replayed else {
        return;
    };
    page.raw("<section>\n<h2>The recorded calls, replayed</h2>\n<ul class=\"legend\">");
    for (class, count) in &replayed.classes {
        page.raw("<li><i class=\"");
        page.raw(colour(*class));
        page.raw("\"></i>");
        let share = match class {
            Class::NotReplayed => String::new(),
            _ => format!(", {}", report.share(replayed, *class)),
        };
        let count = count - replayed.unreached_of(*class);
        page.text(&format!("{} {}{share}", grouped(count), class.word()));
        page.raw("</li>");
    }
    for (calls, what) in [
        (replayed.not_drawn, "not drawn for the sample"),
        (replayed.unreached(), "not reached"),
    ] {
        if calls > 0 {
            page.item(&format!("{} {what}", grouped(calls)));
        }
    }
    page.raw("</ul>\n");
    for line in report.how(replayed) {
        page.raw("<p>");
        page.told(&line);
        page.raw("</p>\n");
    }
    asked(page, report, replayed);
    counted(
        page,
        "why a call was not replayable",
        &replayed.not_replayed,
    );
    counted(
        page,
        "what a session\u{2019}s worlds started from",
        &report.started_from,
    );
    opinions(page, report, replayed);
    page.raw("<h3>Call by call</h3>\n");
    page.head(&["became", "calls", "tool", "call", "why"]);
    for row in replayed.rows.iter().take(ROWS_MAX) {
        page.raw("<tr><th><span class=\"n ");
        page.raw(colour(row.class));
        page.raw("\">");
        page.text(row.class.word());
        page.raw("</span></th>");
        page.cell("", &grouped(row.count));
        page.cell("tool", &row.tool);
        page.cell("call", &row.call);
        page.cell("why", &row.why);
        page.raw("</tr>\n");
    }
    page.foot();
    let more = replayed.rows.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        page.raw("<p>");
        page.text(&format!("{more} more are in migration.json."));
        page.raw("</p>\n");
    }
    page.raw("</section>\n");
}

fn asked(page: &mut Page, report: &Report, replayed: &Replayed) {
    if replayed.asked.is_empty() {
        return;
    }
    page.raw("<h3>Why the agent would ask or refuse</h3>\n");
    page.head(&["reason", "calls", "what would let them through", "tried"]);
    for one in replayed.asked.iter().take(ROWS_MAX) {
        page.first(&one.reason);
        page.cell("", &grouped(one.calls));
        let grants = one
            .grants
            .iter()
            .map(|grant| format!("{} on {}", grant.verb, grant.on));
        page.cell("call", &grants.collect::<Vec<_>>().join(", "));
        let colour = match one.proof {
            Proof::Proven => "same",
            Proof::OtherResult | Proof::StillAsks | Proof::NoGrant => "named",
            Proof::NotTried => "open",
            Proof::Unsafe => "unsafe",
        };
        page.raw("<td class=\"why\"><span class=\"n ");
        page.raw(colour);
        page.raw("\">");
        page.text(one.proof.word());
        page.raw("</span> ");
        page.told(&one.why);
        page.raw("</td></tr>\n");
    }
    page.foot();
    if let Some(proved) = &report.proved {
        page.raw("<p>");
        page.text(&proved.sentence());
        page.raw("</p>\n<ul>");
        for grant in &proved.grants {
            page.item(&format!("{} on {}", grant.verb, grant.on));
        }
        page.raw("</ul>\n");
    }
}

fn counted(page: &mut Page, title: &str, counts: &std::collections::BTreeMap<String, u64>) {
    if counts.is_empty() {
        return;
    }
    page.head(&[title, "how many"]);
    let mut rows: Vec<_> = counts.iter().collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (what, count) in rows.iter().take(ROWS_MAX) {
        page.first(what);
        page.cell("", &grouped(**count));
        page.raw("</tr>\n");
    }
    page.foot();
}

/// What differs from release to release.
fn opinions(page: &mut Page, report: &Report, replayed: &Replayed) {
    if report.opinions.is_empty() {
        return;
    }
    page.raw("<h3>The same with other releases of Hermes</h3>\n");
    let mut names = vec!["became", &report.hermes];
    names.extend(report.opinions.iter().map(|one| one.version.as_str()));
    page.head(&names);
    for class in Class::ALL {
        page.first(class.word());
        page.cell("", &grouped(replayed.count(class)));
        for opinion in &report.opinions {
            let count = opinion.classes.get(&class).copied().unwrap_or_default();
            page.cell("", &grouped(count));
        }
        page.raw("</tr>\n");
    }
    page.foot();
    if report.opinions.iter().all(|one| one.rows.is_empty()) {
        page.raw("<p>No call is told apart by the release.</p>\n");
        return;
    }
    page.head(&["release", "tool", "call", "with it", "otherwise"]);
    for opinion in &report.opinions {
        for row in opinion.rows.iter().take(ROWS_MAX) {
            page.first(&opinion.version);
            page.cell("tool", &row.tool);
            page.cell("call", &row.call);
            page.cell("why", &row.with_it);
            page.cell("why", &row.otherwise);
            page.raw("</tr>\n");
        }
    }
    page.foot();
}
