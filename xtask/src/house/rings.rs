//! Which modules of a package name each other in a ring.
//!
//! Whoever reads a module needs those it names. Where they name each other in a ring,
//! none of them can be read, or moved, without all the others. Looked at are the modules
//! beside each other, below the root and below every module. What lies above may name
//! what it is made of, and be named by it.
//!
//! Read are names that begin at `crate`, `self` or `super`, in paths, in `use` and in
//! what macros are given. What is there for tests alone does not count, nor do names in
//! comments.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The modules below one module that name each other, and where.
#[derive(Debug, Default)]
pub struct Arrows {
    /// What they are below, from the root.
    below: Vec<String>,
    places: BTreeMap<String, BTreeMap<String, String>>,
}

impl Arrows {
    /// Of files of a package, by their paths below `src`, what they name: the root's modules
    /// first, then those of each module that has some.
    pub fn of(files: &[(String, Names)]) -> Vec<Self> {
        let mut read: Vec<_> = files
            .iter()
            .map(|(name, names)| (name.as_str(), names.clone()))
            .collect();
        let for_tests: Vec<_> = read
            .iter_mut()
            .flat_map(|(_, names)| std::mem::take(&mut names.for_tests))
            .collect();
        read.retain(|(_, names)| !for_tests.iter().any(|tests| names.at.starts_with(tests)));
        let above: BTreeSet<_> = read
            .iter()
            .filter_map(|(_, names)| Some(names.at.split_last()?.1.to_vec()))
            .collect();
        above
            .into_iter()
            .map(|above| Self::below(above, &read))
            .collect()
    }

    fn below(above: Vec<String>, read: &[(&str, Names)]) -> Self {
        let child = |path: &[String]| path.strip_prefix(above.as_slice())?.first().cloned();
        let modules: BTreeSet<_> = read
            .iter()
            .filter_map(|(_, names)| child(&names.at))
            .collect();
        // What is handed on from above under a name of its own lies in a module.
        let renamed: BTreeMap<_, _> = read
            .iter()
            .filter(|(_, names)| names.at == above)
            .flat_map(|(_, names)| &names.handed_on)
            .filter_map(|(name, of)| Some((name, child(of)?)))
            .filter(|(_, of)| modules.contains(of))
            .collect();
        let mut places: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (name, names) in read {
            let Some(from) = child(&names.at) else {
                continue;
            };
            for (to, line) in &names.used {
                let Some(to) = child(to) else { continue };
                let to = renamed.get(&to).cloned().unwrap_or(to);
                if to != from && modules.contains(&to) {
                    let places = places.entry(from.clone()).or_default();
                    places.entry(to).or_insert_with(|| format!("{name}:{line}"));
                }
            }
        }
        Self {
            below: above,
            places,
        }
    }

    /// One ring, the shortest there is, of each set of modules that name each other.
    pub fn rings(&self) -> Vec<Vec<String>> {
        let mut seen = BTreeSet::new();
        let mut rings = Vec::new();
        for start in self.places.keys() {
            if seen.contains(start) {
                continue;
            }
            let there = self.from(start);
            let all: Vec<_> = there.keys().filter(|to| self.leads(to, start)).collect();
            seen.extend(all.iter().map(|member| (*member).clone()));
            let shortest = all.iter().filter_map(|member| self.ring(member));
            rings.extend(shortest.min_by_key(Vec::len));
        }
        rings
    }

    /// What a ring is made of, for whoever is to break it.
    pub fn told(&self, ring: &[String]) -> String {
        let next = ring.iter().skip(1).chain(ring.first());
        let steps = ring.iter().zip(next).map(|(from, to)| {
            let place = self.places.get(from).and_then(|places| places.get(to));
            format!("{from} -> {to} ({})", place.map_or("", String::as_str))
        });
        let steps = steps.collect::<Vec<_>>().join(", ");
        match self.below.as_slice() {
            [] => steps,
            below => format!("below {}, {steps}", below.join("::")),
        }
    }

    /// Everything that can be come to, and whence.
    fn from(&self, start: &str) -> BTreeMap<String, String> {
        let mut whence = BTreeMap::new();
        let mut waiting = VecDeque::from([start.to_owned()]);
        while let Some(from) = waiting.pop_front() {
            for to in self.places.get(&from).into_iter().flat_map(BTreeMap::keys) {
                if !whence.contains_key(to) {
                    whence.insert(to.clone(), from.clone());
                    waiting.push_back(to.clone());
                }
            }
        }
        whence
    }

    fn leads(&self, from: &str, to: &str) -> bool {
        self.from(from).contains_key(to)
    }

    /// The shortest ring through a module.
    fn ring(&self, through: &str) -> Option<Vec<String>> {
        let whence = self.from(through);
        let mut ring = vec![whence.get(through)?.clone()];
        while ring.last().is_some_and(|last| last != through) {
            ring.push(whence.get(ring.last()?)?.clone());
        }
        ring.reverse();
        Some(ring)
    }
}

/// The module a file is, from the root: `a/b.rs` is `a::b`.
fn module(name: &str) -> Vec<String> {
    let path = name.strip_suffix(".rs").unwrap_or(name);
    let names = path.split('/').map(str::to_owned);
    names
        .filter(|name| !matches!(name.as_str(), "lib" | "main"))
        .collect()
}

/// What one file names.
#[derive(Clone, Debug)]
pub struct Names {
    /// Where it is, from the root.
    at: Vec<String>,
    /// What, from the root, and the line.
    used: Vec<(Vec<String>, usize)>,
    /// Names it hands on, and what each is, from the root.
    handed_on: Vec<(String, Vec<String>)>,
    /// The modules it has for tests alone, in files of their own.
    for_tests: Vec<Vec<String>>,
}

impl Names {
    /// Reads a file of a package, by its path below `src`.
    pub fn read(name: &str, text: &str) -> syn::Result<Self> {
        Ok(Self::of(&module(name), &syn::parse_file(text)?))
    }

    fn of(at: &[String], file: &syn::File) -> Self {
        let mut names = Self {
            at: at.to_vec(),
            used: Vec::new(),
            handed_on: Vec::new(),
            for_tests: Vec::new(),
        };
        names.visit_file(file);
        names
    }

    /// Takes notice of a path that begins where the package does.
    fn note(&mut self, path: &[String], line: usize) {
        if let Some("crate" | "self" | "super") = path.first().map(String::as_str) {
            self.used.push((self.whole(path), line));
        }
    }

    fn whole(&self, path: &[String]) -> Vec<String> {
        let mut base = self.at.clone();
        let mut rest = path;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => base.clear(),
                "self" => {}
                "super" => drop(base.pop()),
                _ => break,
            }
            rest = after;
        }
        base.extend_from_slice(rest);
        base
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &syn::UseTree, line: usize) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(before, &path.tree, line);
                before.pop();
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(before, tree, line);
                }
            }
            syn::UseTree::Name(syn::UseName { ident })
            | syn::UseTree::Rename(syn::UseRename { rename: ident, .. }) => {
                let named = match tree {
                    syn::UseTree::Rename(rename) => &rename.ident,
                    _ => ident,
                };
                before.push(named.to_string());
                let whole = self.whole(before);
                self.handed_on.push((ident.to_string(), whole));
                self.note(before, line);
                before.pop();
            }
            syn::UseTree::Glob(_) => self.note(before, line),
        }
    }

    /// The paths in what a macro is given.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut line = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons < 2 {
                        self.note(&std::mem::take(&mut path), line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    if colons >= 2 && group.delimiter() == Delimiter::Brace {
                        // `use crate::{…}`: the first name of each part counts.
                        for token in group.stream() {
                            if let TokenTree::Ident(ident) = &token {
                                let whole: Vec<_> =
                                    path.iter().cloned().chain([ident.to_string()]).collect();
                                self.note(&whole, line);
                            }
                        }
                    } else {
                        self.note(&path, line);
                    }
                    path.clear();
                    colons = 0;
                    self.tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.note(&std::mem::take(&mut path), line);
                    colons = 0;
                }
            }
        }
        self.note(&path, line);
    }
}

/// Whether something is there for tests alone.
fn is_for_tests(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("cfg")
            && attr
                .parse_args::<syn::Ident>()
                .is_ok_and(|what| what == "test")
    })
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.at.push(item.ident.to_string());
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        } else if item.content.is_none() {
            self.for_tests.push(self.at.clone());
        }
        self.at.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            let line = item.use_token.span.start().line;
            self.tree(&mut Vec::new(), &item.tree, line);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    // Who may name a thing is not what it names.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let line = path.segments.first().map(|s| s.ident.span().start().line);
        self.note(&names, line.unwrap_or_default());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), Names::read(name, text).unwrap()))
            .collect();
        let levels = Arrows::of(&files);
        let told = |arrows: &Arrows| -> Vec<String> {
            let rings = arrows.rings();
            rings.iter().map(|ring| arrows.told(ring)).collect()
        };
        levels.iter().flat_map(told).collect()
    }

    #[test]
    fn a_ring_is_found_however_its_arrows_are_written() {
        let back = |text| rings(&[("a/deep.rs", "use crate::b::Thing;"), ("b.rs", text)]);
        for text in [
            "fn f() { crate::a::g(); }",
            "use super::a;",
            "use super::{a::deep, c};",
            "use crate::{c::X, a::deep::Y as Z};",
            "use crate::a::*;",
            "struct S(crate::a::T);",
            "mod inner { fn f() { super::super::a::g() } }",
            "fn f() { assert!(crate::a::is()); }",
            "macro_rules! m { () => { $crate::a::g() } }",
        ] {
            assert_eq!(
                back(text),
                ["a -> b (a/deep.rs:1), b -> a (b.rs:1)"],
                "{text}"
            );
        }
    }

    #[test]
    fn what_a_module_does_not_name_makes_no_ring() {
        let back = |text| rings(&[("a.rs", "use crate::b::Thing;"), ("b.rs", text)]);
        for text in [
            "//! As in [`crate::a`].\nuse crate::b::Other; fn f() { self::a(); }",
            "#[cfg(test)] mod tests { use crate::a::X; }",
            "#[cfg(test)] use crate::a::X;",
            "pub(in crate::a) fn f() {}",
            "use std::a; fn f() { other::a::g(); }",
            "mod a { pub fn g() {} } fn f() { a::g(); self::a::g(); }",
        ] {
            assert_eq!(back(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn files_that_are_there_for_tests_alone_make_no_ring() {
        let all = |how: &str| {
            let deep = format!("{how} mod deep;");
            let a = "use crate::b::Thing;";
            rings(&[
                ("a.rs", a),
                ("b.rs", &deep),
                ("b/deep.rs", "mod further;"),
                ("b/deep/further.rs", "use crate::a::X;"),
            ])
        };
        assert_eq!(all("#[cfg(test)]"), Vec::<String>::new());
        assert_eq!(all(""), ["a -> b (a.rs:1), b -> a (b/deep/further.rs:1)"]);
    }

    #[test]
    fn what_the_root_hands_on_leads_to_the_module_it_is_of() {
        let files = [
            ("lib.rs", "pub mod a; pub mod b; pub use a::Thing;"),
            ("a.rs", "use crate::b::f;"),
            ("b.rs", "pub fn f(_: crate::Thing) {}"),
        ];
        assert_eq!(rings(&files), ["a -> b (a.rs:1), b -> a (b.rs:1)"]);
        // What a program takes from its own library has the names it has there.
        let files = [
            files[0],
            files[1],
            files[2],
            ("main.rs", "use ours::{a, b};"),
        ];
        assert_eq!(rings(&files), ["a -> b (a.rs:1), b -> a (b.rs:1)"]);
    }

    #[test]
    fn of_several_rings_each_is_told_once_and_short() {
        let files = [
            ("a.rs", "use crate::{b, d};"),
            ("b.rs", "use crate::c;"),
            ("c.rs", "use crate::{a, b};"),
            ("d.rs", "use crate::e;"),
            ("e.rs", "use crate::d;"),
        ];
        assert_eq!(
            rings(&files),
            [
                "b -> c (b.rs:1), c -> b (c.rs:1)",
                "d -> e (d.rs:1), e -> d (e.rs:1)",
            ]
        );
    }

    #[test]
    fn modules_below_a_module_make_no_ring_either() {
        let inner = |text| {
            rings(&[
                ("up.rs", "mod a; mod b; use self::a::Thing;"),
                ("up/a.rs", "use super::b::f;"),
                ("up/b/deep.rs", text),
            ])
        };
        for text in [
            "use crate::up::a::g;",
            "use super::super::a;",
            "use super::super::Thing;",
        ] {
            assert_eq!(
                inner(text),
                ["below up, a -> b (up/a.rs:1), b -> a (up/b/deep.rs:1)"],
                "{text}"
            );
        }
        // What is above may be named, and may name what it is made of.
        for text in ["use crate::up::Other;", "use super::f;", "use crate::a::g;"] {
            assert_eq!(inner(text), Vec::<String>::new(), "{text}");
        }
    }
}
