//! The least that covers what was recorded, as a line over the number of grants.

use std::fmt::Write as _;

use super::{super::Report, Page, ROWS_MAX};
use crate::figures::{calls, grouped};

/// Questions left over grants, as a line; the table beneath says the same.
pub(super) fn render(page: &mut Page, report: &Report) {
    const WIDTH: u64 = 640;
    const HEIGHT: u64 = 160;
    let curve = &report.suggestion.curve;
    let all = curve.first().copied().unwrap_or_default();
    if all == 0 {
        return outside(page, report);
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
    page.raw("</svg></div>\n<div class=\"wide\"><table><thead><tr><th>grant</th><th>needed in</th><th>questions left</th></tr></thead><tbody>");
    for (grant, left) in report.suggestion.grants.iter().zip(curve.iter().skip(1)) {
        page.raw("<tr><th>");
        page.text(&format!(
            "{} on {}, {} h",
            grant.verb,
            grant.on,
            grant.seconds / 3600
        ));
        page.raw("</th>");
        page.cell("", &grant.seen_in.join(", "));
        page.cell("", &grouped(*left));
        page.raw("</tr>");
    }
    page.foot();
    page.raw("</section>\n");
    outside(page, report);
}

/// What lies outside the workspace is named, and never suggested.
fn outside(page: &mut Page, report: &Report) {
    let outside = &report.suggestion.outside;
    if outside.is_empty() {
        return;
    }
    page.raw("<section>\n<h2>Outside the workspace, so not suggested</h2>\n<ul>");
    for (place, count) in outside.iter().take(ROWS_MAX) {
        page.item(&format!("{place} ({})", calls(*count)));
    }
    page.raw("</ul>\n</section>\n");
}
