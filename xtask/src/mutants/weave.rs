//! All mutants of a file in one text, each behind a switch.
//!
//! Why: building a crate anew for each of two thousand changes is what takes
//! the hours. Where a change is an expression it can stand beside the original,
//! `if switch::is(17) { a < b } else { a <= b }`, and one build holds them all.
//! What cannot stand there (constants, functions that return `impl Trait`) is
//! left to cargo-mutants, and so is what the compiler does not take.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Context as _, Result};
use proc_macro2::LineColumn;
use serde::Deserialize;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// A change as `cargo mutants --list --json` tells it.
#[derive(Debug, Deserialize)]
pub(super) struct Mutant {
    /// File, place and change in one line.
    pub(super) name: String,
    /// Its file, from the workspace root.
    pub(super) file: String,
    genre: String,
    replacement: String,
    span: Span,
}

#[derive(Debug, Deserialize)]
struct Span {
    start: Place,
    end: Place,
}

/// Both counted from one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    line: usize,
    column: usize,
}

impl From<LineColumn> for Place {
    fn from(at: LineColumn) -> Self {
        Self {
            line: at.line,
            column: at.column + 1,
        }
    }
}

/// A mutant and its number in the list.
pub(super) type Numbered<'m> = (usize, &'m Mutant);

/// The text of a file with these mutants in it. Functions in `constant`, by
/// their name and their type's, stay usable in constants: nothing in them is changed.
pub(super) fn file(
    source: &str,
    mutants: &[Numbered<'_>],
    constant: &BTreeSet<String>,
) -> Result<String> {
    let tree = syn::parse_file(source).context("it is not Rust")?;
    let mut waiting: BTreeMap<(Place, &str), Vec<Numbered<'_>>> = BTreeMap::new();
    for (number, mutant) in mutants {
        let key = (mutant.span.start, mutant.genre.as_str());
        waiting.entry(key).or_default().push((*number, mutant));
    }
    let lines = std::iter::once(0)
        .chain(source.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let mut weaver = Weaver {
        source,
        lines,
        waiting,
        constant,
        sites: Vec::new(),
        owner: None,
        closed: 0,
    };
    weaver.visit_file(&tree);
    let mut sites = weaver.sites;
    // Outer ones first; of two at one place the one found first is outside.
    sites.sort_by_key(|site| (site.range.start, usize::MAX - site.range.end));
    Ok(emit(source, 0..source.len(), &mut sites.iter().peekable()))
}

/// The marks around what a mutant brings, by which an error of the compiler is
/// led back to it.
pub(super) fn marks(number: usize) -> (String, String) {
    (format!("/*m{number}*/"), format!("/*e{number}*/"))
}

fn is(number: usize) -> String {
    format!("crate::mutant_switch::is({number})")
}

fn marked(number: usize, text: &str) -> String {
    let (begin, end) = marks(number);
    format!("{begin} {text} {end}")
}

struct Site {
    range: Range<usize>,
    form: Form,
}

enum Form {
    /// One of these instead.
    Choice(Vec<(usize, String)>),
    /// This in front.
    Before(String),
    /// Only while the mutant is off.
    Unless(usize),
    /// Left out.
    Gone,
}

type Sites<'s> = std::iter::Peekable<std::slice::Iter<'s, Site>>;

fn emit(source: &str, range: Range<usize>, sites: &mut Sites<'_>) -> String {
    let text = |range: Range<usize>| source.get(range).unwrap_or_default();
    let mut out = String::new();
    let mut at = range.start;
    while let Some(site) = sites.next_if(|site| site.range.end <= range.end) {
        out.push_str(text(at..site.range.start));
        at = site.range.end;
        let inner = emit(source, site.range.clone(), sites);
        // Writing to a string cannot fail.
        let _ = match &site.form {
            Form::Before(text) => write!(out, "{text}{inner}"),
            Form::Gone => Ok(()),
            Form::Unless(number) => {
                let off = marked(*number, &format!("!{}", is(*number)));
                write!(out, "({off} && ({inner}))")
            }
            Form::Choice(arms) => {
                out.push('(');
                for (number, text) in arms {
                    let arm = marked(*number, text);
                    let _ = write!(out, "if {} {{ {arm} }} else ", is(*number));
                }
                write!(out, "{{ {inner} }})")
            }
        };
    }
    out.push_str(text(at..range.end));
    out
}

struct Weaver<'w> {
    source: &'w str,
    /// Where each line starts.
    lines: Vec<usize>,
    waiting: BTreeMap<(Place, &'w str), Vec<Numbered<'w>>>,
    constant: &'w BTreeSet<String>,
    sites: Vec<Site>,
    /// The type whose functions are looked at.
    owner: Option<String>,
    /// How many things lie around in which nothing is changed.
    closed: usize,
}

impl<'w> Weaver<'w> {
    fn take(&mut self, start: LineColumn, genre: &'static str) -> Vec<Numbered<'w>> {
        if self.closed > 0 {
            return Vec::new();
        }
        let key = (start.into(), genre);
        self.waiting.remove(&key).unwrap_or_default()
    }

    fn text(&self, range: Range<usize>) -> &'w str {
        self.source.get(range).unwrap_or_default()
    }

    fn offset(&self, place: Place) -> usize {
        let line = self.lines.get(place.line - 1).copied().unwrap_or(0);
        let mut letters = self.text(line..self.source.len()).char_indices();
        let letter = letters.nth(place.column - 1);
        letter.map_or(self.source.len(), |(at, _)| line + at)
    }

    fn choice(&mut self, range: Range<usize>, arms: Vec<(usize, String)>) {
        if !arms.is_empty() {
            let form = Form::Choice(arms);
            self.sites.push(Site { range, form });
        }
    }

    /// Says whether anything inside may be changed.
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) -> bool {
        if let Some(word) = &signature.constness {
            let name = match &self.owner {
                Some(owner) => format!("{owner}::{}", signature.ident),
                None => signature.ident.to_string(),
            };
            if self.constant.contains(&name) {
                return false;
            }
            let word = word.span().byte_range();
            self.sites.push(Site {
                range: word.start..word.end + 1,
                form: Form::Gone,
            });
        }
        let Some(first) = block.stmts.first() else {
            return true;
        };
        if matches!(&signature.output, syn::ReturnType::Type(_, kind) if has_impl(kind)) {
            return true;
        }
        let found = self.take(first.span().start(), "FnValue");
        let text: String = found
            .iter()
            .map(|(number, mutant)| {
                let value = marked(*number, &format!("return {}", mutant.replacement));
                format!("if {} {{ {value}; }} ", is(*number))
            })
            .collect();
        if !text.is_empty() {
            let at = block.brace_token.span.open().byte_range().end;
            let form = Form::Before(text);
            self.sites.push(Site {
                range: at..at,
                form,
            });
        }
        true
    }

    fn closed(&mut self, look: impl FnOnce(&mut Self)) {
        self.closed += 1;
        look(self);
        self.closed -= 1;
    }
}

fn has_impl(kind: &syn::Type) -> bool {
    struct Finder(bool);
    impl Visit<'_> for Finder {
        fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut finder = Finder(false);
    finder.visit_type(kind);
    finder.0
}

/// A condition with `let` in it is no expression that could stand elsewhere.
fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(both) => has_let(&both.left) || has_let(&both.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Weaver<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if self.function(&item.sig, &item.block) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let owner = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        let before = std::mem::replace(&mut self.owner, owner);
        visit::visit_item_impl(self, item);
        self.owner = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if self.function(&item.sig, &item.block) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.closed(|weaver| visit::visit_item_const(weaver, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.closed(|weaver| visit::visit_impl_item_const(weaver, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.closed(|weaver| visit::visit_item_static(weaver, item));
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if !has_let(&expr.left) && !has_let(&expr.right) {
            let range = expr.span().byte_range();
            let operator = expr.op.span().byte_range();
            let left = self.text(range.start..operator.start);
            let right = self.text(operator.end..range.end);
            let found = self.take(expr.op.span().start(), "BinaryOperator");
            let arm = |(number, mutant): Numbered<'_>| {
                (number, format!("{left}{}{right}", mutant.replacement))
            };
            self.choice(range, found.into_iter().map(arm).collect());
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        let inner = self.text(expr.expr.span().byte_range());
        let found = self.take(expr.span().start(), "UnaryOperator");
        let arms = found
            .into_iter()
            .map(|(number, _)| (number, inner.to_owned()));
        self.choice(expr.span().byte_range(), arms.collect());
        visit::visit_expr_unary(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let deleted = self.take(arm.span().start(), "MatchArm");
        if let Some((_, guard)) = &arm.guard {
            let range = guard.span().byte_range();
            for (number, _) in deleted {
                let (range, form) = (range.clone(), Form::Unless(number));
                self.sites.push(Site { range, form });
            }
            let found = self.take(guard.span().start(), "MatchArmGuard");
            let arms = found.into_iter();
            let arms = arms.map(|(number, mutant)| (number, mutant.replacement.clone()));
            self.choice(range, arms.collect());
        } else {
            let at = arm.pat.span().byte_range().end;
            for (number, _) in deleted {
                let form = Form::Before(format!(
                    " if {}",
                    marked(number, &format!("!{}", is(number)))
                ));
                self.sites.push(Site {
                    range: at..at,
                    form,
                });
            }
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        let range = expr.span().byte_range();
        let mut arms = Vec::new();
        for field in &expr.fields {
            for (number, mutant) in self.take(field.span().start(), "StructField") {
                let (from, to) = (self.offset(mutant.span.start), self.offset(mutant.span.end));
                let (before, after) = (self.text(range.start..from), self.text(to..range.end));
                arms.push((number, format!("{before}{after}")));
            }
        }
        self.choice(range, arms);
        visit::visit_expr_struct(self, expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(genre: &str, (line, from, to): (usize, usize, usize), replacement: &str) -> Mutant {
        let place = |column| Place { line, column };
        Mutant {
            name: String::new(),
            file: String::new(),
            genre: genre.to_owned(),
            replacement: replacement.to_owned(),
            span: Span {
                start: place(from),
                end: place(to),
            },
        }
    }

    fn check(source: &str, mutants: &[Mutant], expected: &str) {
        let numbered: Vec<Numbered<'_>> = mutants.iter().enumerate().collect();
        let woven = file(source, &numbered, &BTreeSet::from(["kept".to_owned()])).unwrap();
        assert_eq!(woven, expected.replace("is(", "crate::mutant_switch::is("));
        assert!(syn::parse_file(&woven).is_ok(), "{woven}");
    }

    #[test]
    fn every_kind_of_change_stands_beside_what_it_changes() {
        check(
            "fn f() -> bool { a < b }",
            &[
                mutant("FnValue", (1, 18, 23), "true"),
                mutant("BinaryOperator", (1, 20, 21), "<="),
                mutant("BinaryOperator", (1, 20, 21), ">"),
            ],
            "fn f() -> bool {if is(0) { /*m0*/ return true /*e0*/; }  \
             (if is(1) { /*m1*/ a <= b /*e1*/ } else if is(2) { /*m2*/ a > b /*e2*/ } else { a < b }) }",
        );
        check(
            "fn f() { g(!a && b); }",
            &[
                mutant("BinaryOperator", (1, 15, 17), "||"),
                mutant("UnaryOperator", (1, 12, 13), ""),
            ],
            "fn f() { g((if is(0) { /*m0*/ !a || b /*e0*/ } else \
             { (if is(1) { /*m1*/ a /*e1*/ } else { !a }) && b })); }",
        );
        check(
            "fn f() { match x { 1 if y => a, 2 => b, _ => c } }",
            &[
                mutant("MatchArmGuard", (1, 25, 26), "true"),
                mutant("MatchArm", (1, 20, 31), ""),
                mutant("MatchArm", (1, 33, 39), ""),
            ],
            "fn f() { match x { 1 if (/*m1*/ !is(1) /*e1*/ && \
             ((if is(0) { /*m0*/ true /*e0*/ } else { y }))) => a, \
             2 if /*m2*/ !is(2) /*e2*/ => b, _ => c } }",
        );
        check(
            "fn f() { P { a: 1, ..p } }",
            &[mutant("StructField", (1, 14, 19), "")],
            "fn f() { (if is(0) { /*m0*/ P {  ..p } /*e0*/ } else { P { a: 1, ..p } }) }",
        );
    }

    #[test]
    fn constants_and_what_they_need_stay_as_they_are() {
        let change = |column| [mutant("BinaryOperator", (1, column, column + 1), "-")];
        let constant = "const A: u8 = 1 + 2;";
        check(constant, &change(17), constant);
        let kept = "const fn kept() -> u8 { 1 + 2 }";
        check(kept, &change(27), kept);
        check(
            "impl A { const fn kept() -> u8 { 1 + 2 } }",
            &change(36),
            "impl A { fn kept() -> u8 { (if is(0) { /*m0*/ 1 - 2 /*e0*/ } else { 1 + 2 }) } }",
        );
        check(
            "const fn other() -> u8 { 1 + 2 }",
            &change(28),
            "fn other() -> u8 { (if is(0) { /*m0*/ 1 - 2 /*e0*/ } else { 1 + 2 }) }",
        );
        let opaque = "fn f() -> impl Iterator<Item = u8> { g() }";
        check(opaque, &[mutant("FnValue", (1, 38, 41), "empty()")], opaque);
        let chain = "fn f() { if let A = a && b {} }";
        check(chain, &[mutant("BinaryOperator", (1, 23, 25), "||")], chain);
    }
}
