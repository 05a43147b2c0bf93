//! Whatever a model writes under the grammar is a plan: the grammar is read
//! and followed by chance, as by a model with random weights.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeMap, sync::Arc};

use hermitcrab::{
    actions,
    planner::{draft, schema},
};
use hermitcrab_core::plan::{FlowRules, check};

/// A part of a grammar.
#[derive(Debug)]
enum Part {
    Text(String),
    OneOf(Vec<char>),
    Rule(String),
    Choice(Vec<Vec<Part>>),
    Times(Box<Part>, usize, usize),
}

struct Reader<'r> {
    rest: &'r str,
}

impl Reader<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> char {
        let letter = self.rest.chars().next().expect("more of the grammar");
        self.rest = &self.rest[letter.len_utf8()..];
        letter
    }

    fn choice(&mut self) -> Part {
        let mut all = vec![Vec::new()];
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() || self.rest.starts_with(')') {
                return Part::Choice(all);
            }
            if self.eat('|') {
                all.push(Vec::new());
                continue;
            }
            let part = self.part();
            all.last_mut().unwrap().push(part);
        }
    }

    fn part(&mut self) -> Part {
        let part = match self.next() {
            '"' => {
                let mut text = String::new();
                loop {
                    match self.next() {
                        '"' => break Part::Text(text),
                        '\\' => text.push(self.next()),
                        letter => text.push(letter),
                    }
                }
            }
            '[' => {
                let mut letters = Vec::new();
                while !self.eat(']') {
                    let mut letter = self.next();
                    if letter == '\\' {
                        letter = self.next();
                    }
                    if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                        self.next();
                        let mut last = self.next();
                        if last == '\\' {
                            last = self.next();
                        }
                        letters.extend(letter..=last);
                    } else {
                        letters.push(letter);
                    }
                }
                Part::OneOf(letters)
            }
            '(' => {
                let choice = self.choice();
                assert!(self.eat(')'));
                choice
            }
            letter => {
                let mut name = String::from(letter);
                while self
                    .rest
                    .starts_with(|letter: char| letter.is_ascii_alphanumeric())
                {
                    name.push(self.next());
                }
                Part::Rule(name)
            }
        };
        if self.eat('?') {
            return Part::Times(Box::new(part), 0, 1);
        }
        if self.eat('{') {
            let (range, rest) = self.rest.split_once('}').unwrap();
            let (few, many) = range.split_once(',').unwrap();
            self.rest = rest;
            return Part::Times(Box::new(part), few.parse().unwrap(), many.parse().unwrap());
        }
        part
    }
}

/// Follows a grammar by chance.
struct Chance {
    rules: BTreeMap<String, Part>,
    state: u64,
}

impl Chance {
    fn pick(&mut self, of: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap() % of
    }

    fn write(&mut self, part: &Part, out: &mut String) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::OneOf(letters) => {
                let place = self.pick(letters.len());
                out.push(letters[place]);
            }
            Part::Rule(name) => {
                let rule = self
                    .rules
                    .remove(name)
                    .unwrap_or_else(|| panic!("no rule {name}"));
                self.write(&rule, out);
                self.rules.insert(name.clone(), rule);
            }
            Part::Choice(all) => {
                let place = self.pick(all.len());
                for part in &all[place] {
                    self.write(part, out);
                }
            }
            Part::Times(part, few, many) => {
                for _ in 0..few + self.pick(many - few + 1) {
                    self.write(part, out);
                }
            }
        }
    }
}

#[test]
fn whatever_is_written_under_the_grammar_is_a_plan() {
    let toolbox = Arc::new(actions::toolbox());
    let rules = schema::gbnf(&toolbox)
        .lines()
        .map(|line| {
            let (name, rest) = line.split_once(" ::= ").unwrap();
            (name.to_owned(), Reader { rest }.choice())
        })
        .collect();
    let mut chance = Chance { rules, state: 7 };
    let (mut references, mut longest) = (0, 0);
    for _ in 0..200 {
        let mut text = String::new();
        chance.write(&Part::Rule("root".into()), &mut text);
        let plan = draft::read(text.as_bytes())
            .and_then(|draft| check(draft, toolbox.clone(), FlowRules::STRICT))
            .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        references += usize::from(text.contains("{\"$\":"));
        longest = longest.max(plan.steps().len());
    }
    assert!(references > 5 && longest > 4, "{references} {longest}");
}

#[test]
fn the_schema_names_every_tool_and_nothing_outside_itself() {
    let schema = schema::json_schema(&actions::toolbox()).to_string();
    for tool in actions::toolbox().all() {
        assert!(
            schema.contains(&format!("{{\"const\":\"{}\"}}", tool.name)),
            "{tool:?}"
        );
    }
    for reference in schema.split("\"$ref\":\"").skip(1) {
        assert!(
            reference.starts_with("#/$defs/value\"") || reference.starts_with("#/$defs/steps\""),
            "{reference}"
        );
    }
}
