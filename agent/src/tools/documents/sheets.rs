//! Sheets (`.xlsx`) as a text: a line for each row, a tab between cells.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use super::package::{Package, Room, parsed, text_of};

const NS: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const NS_LINK: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const NS_PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006/relationships";

/// Rows told of one sheet.
const ROWS_MAX: usize = 5000;
/// Cells told of one row.
const COLUMNS_MAX: usize = 256;

/// What is read in place of sheets; `None` if these are none, or none is to be seen.
#[must_use]
pub fn text(content: &[u8]) -> Option<String> {
    let mut package = Package::open(content)?;
    let mut room = Room::default();
    let shared = shared(&mut package, &mut room)?;
    let book = package.part("xl/workbook.xml")?;
    let book = parsed(&book)?;
    let links = links(&mut package);
    let mut out: Vec<String> = Vec::new();
    for sheet in all(&book, "sheet") {
        let state = sheet.attribute("state").unwrap_or("visible");
        if matches!(state, "hidden" | "veryHidden") {
            continue;
        }
        let link = sheet.attribute((NS_LINK, "id")).unwrap_or_default();
        let part = part_name(links.get(link).map_or("", String::as_str));
        let Some(part) = package.has(&part).then(|| package.part(&part)).flatten() else {
            continue;
        };
        let Some(document) = parsed(&part) else {
            continue;
        };
        let rows = rows(&document, &shared, &mut room)?;
        let name = sheet.attribute("name").unwrap_or("Sheet");
        room.tell(name.len())?;
        out.push(format!("# \u{2500}\u{2500} Sheet: {name} \u{2500}\u{2500}"));
        if rows.is_empty() {
            out.push("(empty)".to_owned());
        }
        out.extend(rows.into_iter().map(|row| row.join("\t")));
        out.push(String::new());
    }
    if out.is_empty() {
        return None;
    }
    Some(format!("{}\n", out.join("\n").trim_end_matches('\n')))
}

fn all<'d, 'i>(
    document: &'d Document<'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'d, 'i>> {
    within(document.root(), name)
}

fn within<'d, 'i>(node: Node<'d, 'i>, name: &'static str) -> impl Iterator<Item = Node<'d, 'i>> {
    node.descendants()
        .filter(move |node| node.has_tag_name((NS, name)))
}

/// Texts that cells name by their number; `None` if they are too long.
fn shared(package: &mut Package<'_>, room: &mut Room) -> Option<Vec<String>> {
    let Some(part) = package.part("xl/sharedStrings.xml") else {
        return Some(Vec::new());
    };
    let Some(document) = parsed(&part) else {
        return Some(Vec::new());
    };
    all(&document, "si").map(|text| said(text, room)).collect()
}

/// All text below an element.
fn said(node: Node<'_, '_>, room: &mut Room) -> Option<String> {
    let mut said = String::new();
    for below in node.descendants() {
        room.look()?;
        if below.has_tag_name((NS, "t")) {
            said.push_str(&text_of(below, room)?);
        }
    }
    Some(said)
}

/// Which part each link of the workbook leads to.
fn links(package: &mut Package<'_>) -> BTreeMap<String, String> {
    let Some(part) = package.part("xl/_rels/workbook.xml.rels") else {
        return BTreeMap::new();
    };
    let Some(document) = parsed(&part) else {
        return BTreeMap::new();
    };
    document
        .descendants()
        .filter(|node| node.has_tag_name((NS_PACKAGE, "Relationship")))
        .filter_map(|node| {
            let id = node.attribute("Id").filter(|id| !id.is_empty())?;
            Some((
                id.to_owned(),
                node.attribute("Target").unwrap_or_default().to_owned(),
            ))
        })
        .collect()
}

/// The name of a part in the archive, worked out by spelling.
fn part_name(target: &str) -> String {
    let target = target.trim_start_matches('/');
    let whole = if target.starts_with("xl/") {
        target.to_owned()
    } else {
        format!("xl/{target}")
    };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}

fn rows(sheet: &Document<'_>, shared: &[String], room: &mut Room) -> Option<Vec<Vec<String>>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in all(sheet, "row").take(ROWS_MAX) {
        let mut cells: Vec<String> = Vec::new();
        for cell in row.descendants() {
            room.look()?;
            if !cell.has_tag_name((NS, "c")) {
                continue;
            }
            let place = match cell.attribute("r").filter(|place| !place.is_empty()) {
                Some(place) => column(place),
                None => cells.len(),
            };
            if place >= COLUMNS_MAX {
                continue;
            }
            if cells.len() <= place {
                cells.resize(place + 1, String::new());
            }
            if let Some(known) = cells.get_mut(place) {
                *known = value(cell, shared, room)?;
            }
        }
        // A letter between any two of them.
        room.tell(cells.len())?;
        rows.push(cells);
    }
    while rows
        .last()
        .is_some_and(|row| row.iter().all(|cell| cell.trim().is_empty()))
    {
        rows.pop();
    }
    Some(rows)
}

/// The column of a cell by its place, such as `B7`: 0 is the first.
fn column(place: &str) -> usize {
    place
        .chars()
        .take_while(|letter| letter.is_alphabetic())
        .flat_map(char::to_uppercase)
        .fold(0_usize, |column, letter| {
            let digit = (letter as usize).saturating_sub('A' as usize) + 1;
            column.saturating_mul(26).saturating_add(digit)
        })
        .saturating_sub(1)
}

fn value(cell: Node<'_, '_>, shared: &[String], room: &mut Room) -> Option<String> {
    let child = |name: &str| {
        let mut children = cell.children();
        children.find(|child| child.has_tag_name((NS, name)))
    };
    let value = match child("v") {
        Some(value) => text_of(value, room)?,
        None => String::new(),
    };
    let told = match cell.attribute("t").unwrap_or_default() {
        "s" => {
            let number: Option<i64> = value.trim().parse().ok();
            // A negative number counts from the end.
            let place = number.and_then(|number| match usize::try_from(number) {
                Ok(place) => Some(place),
                Err(_) => usize::try_from(number.checked_neg()?)
                    .ok()
                    .and_then(|back| shared.len().checked_sub(back)),
            });
            let text = place.and_then(|place| shared.get(place));
            let text = text.map_or("", String::as_str);
            room.tell(text.len())?;
            text.to_owned()
        }
        "inlineStr" => match child("is") {
            Some(text) => said(text, room)?,
            None => String::new(),
        },
        "b" if matches!(value.trim(), "1" | "true" | "TRUE") => "TRUE".to_owned(),
        "b" => "FALSE".to_owned(),
        "e" if value.is_empty() => "#ERROR".to_owned(),
        _ => value,
    };
    Some(told)
}
