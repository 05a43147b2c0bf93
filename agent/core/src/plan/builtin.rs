//! The functions of the plan language: closed, total, linear in their input.

use alloc::{boxed::Box, string::String, vec};

use super::{
    kind::{Kind, Type},
    level::Level,
};

macro_rules! functions {
    ($name:ident: $( $variant:ident = $word:literal, $few:literal..=$many:literal, $doc:literal; )+) => {
        /// A function of the plan language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( #[doc = $doc] $variant, )+
        }

        impl $name {
            /// Every one.
            pub const ALL: &'static [$name] = &[ $( $name::$variant, )+ ];

            /// Its name in a plan.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( $name::$variant => $word, )+ }
            }

            /// How many arguments it takes at least and at most.
            #[must_use]
            pub const fn count(self) -> (usize, usize) {
                match self { $( $name::$variant => ($few, $many), )+ }
            }

            /// What it yields, in a line.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self { $( $name::$variant => $doc, )+ }
            }

            /// The function with this name.
            #[must_use]
            pub fn parse(text: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|known| known.as_str() == text)
            }
        }
    };
}

functions! { Builtin:
    Upper = "upper", 1..=1, "the text in capitals";
    Lower = "lower", 1..=1, "the text in small letters";
    Trim = "trim", 1..=1, "the text without blanks around it";
    Split = "split", 2..=2, "the parts of a text between separators";
    Lines = "lines", 1..=1, "the lines of a text";
    Join = "join", 2..=2, "texts with a separator between them";
    Contains = "contains", 2..=2, "whether a text holds another";
    StartsWith = "starts_with", 2..=2, "whether a text starts with another";
    EndsWith = "ends_with", 2..=2, "whether a text ends with another";
    Replace = "replace", 3..=3, "a text with each second text in it replaced by the third";
    Length = "length", 1..=1, "the letters of a text, the items of a list";
    Slice = "slice", 2..=3, "letters or items from one place, up to before another";
    ToText = "to_text", 1..=1, "a number, a truth or a text as text";
    ToWhole = "to_whole", 2..=2, "the whole number a text is, or the second value";
    ToNumber = "to_number", 2..=2, "the number a text is, or the second value";
    FileName = "file_name", 1..=1, "the last name of a path";
    Extension = "extension", 1..=1, "what follows the last dot of a path's last name";
    Parent = "parent", 1..=1, "the directory a path lies in";
    JoinPath = "join_path", 2..=2, "a place below a directory";
    Add = "add", 2..=2, "the sum";
    Subtract = "subtract", 2..=2, "the difference";
    Multiply = "multiply", 2..=2, "the product";
    Divide = "divide", 2..=2, "the quotient";
    Round = "round", 2..=2, "a number rounded to so many decimals";
    Sum = "sum", 1..=1, "the sum of a list of numbers";
    Min = "min", 1..=1, "the least of a list of numbers";
    Max = "max", 1..=1, "the greatest of a list of numbers";
    Eq = "eq", 2..=2, "whether both are the same";
    Ne = "ne", 2..=2, "whether they differ";
    Lt = "lt", 2..=2, "whether the first is less";
    Le = "le", 2..=2, "whether the first is not greater";
    Gt = "gt", 2..=2, "whether the first is greater";
    Ge = "ge", 2..=2, "whether the first is not less";
    And = "and", 1..=16, "whether all are true";
    Or = "or", 1..=16, "whether one is true";
    Not = "not", 1..=1, "whether it is false";
    Choose = "choose", 3..=3, "the second value if the first is true, else the third";
    Default = "default", 2..=2, "the first value, or the second where there is nothing";
    In = "in", 2..=2, "whether a list holds a value";
    First = "first", 1..=1, "a list's first item";
    Last = "last", 1..=1, "a list's last item";
    Append = "append", 2..=2, "the items of two lists";
    Flatten = "flatten", 1..=1, "the items of a list's lists";
    Unique = "unique", 1..=1, "a list without what came before";
    Reverse = "reverse", 1..=1, "a list from its end";
    Sorted = "sorted", 1..=1, "a list of texts or numbers in order";
    AddDays = "add_days", 2..=2, "a time so many days later";
    AddMinutes = "add_minutes", 2..=2, "a time so many minutes later";
    MinutesBetween = "minutes_between", 2..=2, "the minutes from the first time to the second";
    DayOf = "day_of", 1..=1, "a time's date";
    ClockOf = "clock_of", 1..=1, "a time's hour and minute";
    Weekday = "weekday", 1..=1, "the name of a time's day of the week";
}

functions! { Over:
    Filter = "filter", 1..=1, "the items the test is true of";
    Map = "map", 1..=1, "a value for each item";
    SortBy = "sort_by", 1..=1, "the items in the order of a value";
    MaxBy = "max_by", 1..=1, "the item with the greatest value";
    MinBy = "min_by", 1..=1, "the item with the least value";
    Any = "any", 1..=1, "whether the test is true of one";
    All = "all", 1..=1, "whether the test is true of all";
    GroupBy = "group_by", 1..=1, "records with a text as `key` and its items as `items`";
}

fn list_of(kind: &Type) -> Option<&Type> {
    match &kind.kind {
        Kind::List(item) => Some(item),
        _ => None,
    }
}

fn comparable(left: &Type, right: &Type) -> bool {
    (left.is_text() && right.is_text()) || (left.is_number() && right.is_number())
}

impl Builtin {
    /// What it yields for arguments of these types, in the number it takes;
    /// `None` if it does not take them.
    #[must_use]
    pub fn yields(self, of: &[Type]) -> Option<Type> {
        use Builtin as B;
        let worst = of.iter().map(Type::worst).min().unwrap_or(Level::User);
        let plain = |kind: Kind| Some(kind.at(worst));
        let text = |place: usize| of.get(place).is_some_and(Type::is_text);
        let number = |place: usize| of.get(place).is_some_and(Type::is_number);
        let whole =
            |place: usize| matches!(of.get(place).map(|kind| &kind.kind), Some(Kind::Whole));
        let first = of.first()?;
        let below = |kind: &Type| kind.at_most(worst.max(first.level));
        match self {
            B::Upper | B::Lower | B::Trim if text(0) => plain(Kind::Text),
            B::FileName | B::Extension if text(0) => plain(Kind::Text),
            B::Parent if text(0) => plain(Kind::Path),
            B::JoinPath if text(0) && text(1) => plain(Kind::Path),
            B::Split if text(0) && text(1) => plain(Kind::list(Kind::Text.at(worst))),
            B::Lines if text(0) => plain(Kind::list(Kind::Text.at(worst))),
            B::Join if text(1) && list_of(first)?.is_text() => plain(Kind::Text),
            B::Contains | B::StartsWith | B::EndsWith if text(0) && text(1) => plain(Kind::Truth),
            B::Replace if text(0) && text(1) && text(2) => plain(Kind::Text),
            B::Length if text(0) => plain(Kind::Whole),
            B::Length => list_of(first).map(|_| Kind::Whole.at(first.level)),
            B::Slice if !(1..of.len()).all(whole) => None,
            B::Slice if text(0) => plain(Kind::Text),
            B::Slice => list_of(first).map(|_| below(first)),
            B::ToText if text(0) || number(0) || first.kind == Kind::Truth => plain(Kind::Text),
            B::ToWhole if text(0) && whole(1) => plain(Kind::Whole),
            B::ToNumber if text(0) && number(1) => plain(Kind::Number),
            B::Add | B::Subtract | B::Multiply if whole(0) && whole(1) => plain(Kind::Whole),
            B::Add | B::Subtract | B::Multiply | B::Divide if number(0) && number(1) => {
                plain(Kind::Number)
            }
            B::Round if number(0) && whole(1) => plain(Kind::Number),
            B::Sum | B::Min | B::Max => {
                let item = list_of(first)?;
                item.is_number().then(|| item.kind.clone().at(worst))
            }
            B::Eq | B::Ne => first.join(of.get(1)?).and_then(|_| plain(Kind::Truth)),
            B::Lt | B::Le | B::Gt | B::Ge => {
                comparable(first, of.get(1)?).then(|| Kind::Truth.at(worst))
            }
            B::And | B::Or | B::Not => of
                .iter()
                .all(|kind| kind.kind == Kind::Truth)
                .then(|| Kind::Truth.at(worst)),
            B::Choose if first.kind == Kind::Truth => {
                Some(of.get(1)?.join(of.get(2)?)?.at_most(first.level))
            }
            B::Default => match &first.kind {
                Kind::Optional(item) => Some(item.join(of.get(1)?)?.at_most(first.level)),
                Kind::Nothing => of.get(1).cloned(),
                _ => None,
            },
            B::In => {
                let item = list_of(of.get(1)?)?;
                item.join(first).and_then(|_| plain(Kind::Truth))
            }
            B::First | B::Last => Some(list_of(first)?.at_most(first.level)),
            B::Append => {
                let (left, right) = (list_of(first)?, list_of(of.get(1)?)?);
                let level = first.level.min(of.get(1)?.level);
                Some(Kind::list(left.join(right)?).at(level))
            }
            B::Flatten => {
                let inner = list_of(first)?;
                let item = list_of(inner)?;
                Some(Kind::list(item.clone()).at(first.level.min(inner.level)))
            }
            B::Unique => list_of(first).map(|item| Kind::list(item.clone()).at(worst)),
            B::Reverse => list_of(first).map(|_| first.clone()),
            B::Sorted => {
                let item = list_of(first)?;
                comparable(item, item).then(|| Kind::list(item.clone()).at(worst))
            }
            B::AddDays | B::AddMinutes if text(0) && whole(1) => plain(Kind::Time),
            B::MinutesBetween if text(0) && text(1) => plain(Kind::Whole),
            B::DayOf if text(0) => plain(Kind::Time),
            B::ClockOf if text(0) => plain(Kind::Text),
            B::Weekday if text(0) => plain(Kind::Text),
            B::Upper
            | B::Lower
            | B::Trim
            | B::FileName
            | B::Extension
            | B::Parent
            | B::JoinPath
            | B::Split
            | B::Lines
            | B::Join
            | B::Contains
            | B::StartsWith
            | B::EndsWith
            | B::Replace
            | B::ToText
            | B::ToWhole
            | B::ToNumber
            | B::Add
            | B::Subtract
            | B::Multiply
            | B::Divide
            | B::Round
            | B::Choose
            | B::AddDays
            | B::AddMinutes
            | B::MinutesBetween
            | B::DayOf
            | B::ClockOf
            | B::Weekday => None,
        }
    }
}

impl Over {
    /// Does it look at a test (and not at a value) for each item?
    #[must_use]
    pub const fn tests(self) -> bool {
        match self {
            Over::Filter | Over::Any | Over::All => true,
            Over::Map | Over::SortBy | Over::MaxBy | Over::MinBy | Over::GroupBy => false,
        }
    }

    /// What it yields for a list of this type and such a value for each item;
    /// `selection` is whether what is looked at lowers what is selected.
    #[must_use]
    pub fn yields(self, list: &Type, item: &Type, body: &Type, selection: bool) -> Option<Type> {
        let looked_at = body.worst();
        let level = if selection {
            list.level.min(looked_at)
        } else {
            list.level
        };
        let has_order = comparable(body, body);
        match self {
            Over::Filter if body.kind == Kind::Truth => Some(Kind::list(item.clone()).at(level)),
            Over::Any | Over::All if body.kind == Kind::Truth => {
                Some(Kind::Truth.at(list.level.min(looked_at)))
            }
            Over::Map => Some(Kind::list(body.clone()).at(list.level)),
            Over::SortBy if has_order => Some(Kind::list(item.clone()).at(level)),
            Over::MaxBy | Over::MinBy if has_order => Some(item.at_most(level)),
            Over::GroupBy if body.is_text() => {
                let fields = vec![
                    (String::from("key"), Kind::Text.at(looked_at)),
                    (
                        String::from("items"),
                        Type {
                            kind: Kind::List(Box::new(item.clone())),
                            level,
                        },
                    ),
                ];
                Some(Kind::list(Kind::Record(fields).at(level)).at(level))
            }
            Over::Filter
            | Over::Any
            | Over::All
            | Over::SortBy
            | Over::MaxBy
            | Over::MinBy
            | Over::GroupBy => None,
        }
    }
}
