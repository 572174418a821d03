//! The choice of a table's columns: the ends of its edges, and their weights.
//!
//! Text and columnar files ask here, so that one table gives one graph in any of their formats.
//! Names are compared without case, blanks, `_`, `-` and `.`, and without what Neo4j adds to them.

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};

use super::Weights;

/// Names of the source and of the target, as other tools write them; the first pair that a table has is
/// used.
const ENDS: [(&str, &str); 24] = [
    // GraphFrames, PyG, DGL, cuGraph's PLC.
    ("src", "dst"),
    // NetworkX, Gephi.
    ("source", "target"),
    // cuGraph.
    ("source", "destination"),
    ("source", "dest"),
    ("src", "dest"),
    ("src", "target"),
    // igraph; ArangoDB's `_from` and `_to`.
    ("from", "to"),
    // OSMnx.
    ("u", "v"),
    ("node1", "node2"),
    // SNAP's comments, and its tables.
    ("fromnodeid", "tonodeid"),
    ("id1", "id2"),
    ("fromnode", "tonode"),
    ("fromid", "toid"),
    ("sourceid", "targetid"),
    ("sourceid", "destinationid"),
    ("srcid", "dstid"),
    ("sourcenode", "targetnode"),
    ("sourcenodeid", "targetnodeid"),
    // Neo4j's `:START_ID(Label)` and `:END_ID(Label)`.
    ("startid", "endid"),
    ("start", "end"),
    ("startnode", "endnode"),
    ("startnodeid", "endnodeid"),
    ("vertex1", "vertex2"),
    ("row", "col"),
];

/// Names of weights; the first that a table has is used.
const WEIGHTS: [&str; 12] = [
    "weight",
    "weights",
    "edgeweight",
    "w",
    "wgt",
    "wt",
    "value",
    "val",
    "cost",
    "distance",
    "dist",
    "length",
];

/// The most unused columns that a note names.
const NAMED: usize = 3;

/// The kind of values in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Integers, which may be ids.
    Integer,
    /// Integers that are large or that ascend from row to row, as times do.
    Time,
    /// Other numbers of 0 or more.
    Number,
    /// Numbers, some of which are negative or missing.
    Unfit,
    /// Anything else.
    Other,
}

impl Kind {
    fn is_integer(self) -> bool {
        matches!(self, Self::Integer | Self::Time)
    }

    fn is_number(self) -> bool {
        self != Self::Other
    }
}

/// A table of edges, as far as the choice of columns needs it.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    /// The file, for messages.
    pub path: &'a str,
    /// The names of all columns; none in a file without a header.
    pub names: &'a [String],
    /// The kind of values in each column.
    pub kinds: &'a [Kind],
    /// Whether the format defines the third column as weights.
    pub third_is_weight: bool,
}

/// The user's wishes about the columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Asked {
    /// The names of the source, the target and perhaps the weights; numbers from 1 where columns have
    /// no names.
    pub columns: Option<Vec<String>>,
    /// The column of the weights.
    #[serde(default)]
    pub weights: Weights,
}

/// The chosen columns, from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Columns {
    /// The column of the sources.
    pub src: usize,
    /// The column of the targets.
    pub dst: usize,
    /// The column of the weights, if there is one.
    pub weight: Option<usize>,
    /// Notes for the user about the choice.
    pub notes: Vec<String>,
}

impl Table<'_> {
    /// Chooses columns: those asked for; or those that are named like ends and weights; or else the
    /// first two of integers and, in a file of three columns without names, the third.
    ///
    /// # Errors
    /// An input error for columns that are not there or are asked for twice, and where no two columns
    /// can be ids.
    pub fn choose(&self, asked: &Asked) -> Result<Columns> {
        let mut notes = Vec::new();
        let (src, dst, third) = match &asked.columns {
            Some(names) => self.asked_ends(names)?,
            None => {
                let (src, dst) = self.ends(&mut notes)?;
                (src, dst, None)
            }
        };
        let ends = [src, dst];
        let weight = match (&asked.weights, third) {
            (Weights::Auto, Some(weight)) => Some(weight),
            (Weights::Auto, None) if asked.columns.is_some() => None,
            (Weights::Auto, None) => self.find_weights(ends, &mut notes),
            (Weights::Ignore, None) => None,
            (Weights::Column(number), None) => Some(self.numbered(*number, ends)?),
            (Weights::Name(name), None) => Some(self.named(name, ends)?),
            (_, Some(_)) => {
                let error = self.refuse("choose the weights of", "`--columns` or `--weights`");
                return Err(error.got("both, with a third column in `--columns`"));
            }
        };
        Ok(Columns { src, dst, weight, notes })
    }

    /// Finds the columns called `names`, of the ends and perhaps the weights.
    fn asked_ends(&self, names: &[String]) -> Result<(usize, usize, Option<usize>)> {
        let refuse = |expected: &str| self.refuse("choose columns of", expected);
        if !(2..=3).contains(&names.len()) {
            return Err(refuse("2 or 3 names").got(names.len()));
        }
        if let Some(twice) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
            return Err(refuse("each column once").got(format!("`{}` twice", names[twice])));
        }
        let find = |name: &String| {
            let found = match self.names {
                [] => name.parse().ok().and_then(|number: usize| number.checked_sub(1)),
                names => names.iter().position(|n| n == name),
            };
            let found = found.filter(|column| *column < self.kinds.len());
            found.ok_or_else(|| self.no_ends(&format!("a column `{name}`")))
        };
        Ok((find(&names[0])?, find(&names[1])?, names.get(2).map(find).transpose()?))
    }

    fn ends(&self, notes: &mut Vec<String>) -> Result<(usize, usize)> {
        let plain: Vec<String> = self.names.iter().map(|name| plain(name)).collect();
        let find = |name: &str| plain.iter().position(|n| n == name);
        let known = ENDS.iter().find_map(|(src, dst)| Some((find(src)?, find(dst)?)));
        if let Some(ends) = known {
            return Ok(ends);
        }
        if self.names.is_empty() {
            return Ok((0, 1));
        }
        let integers: Vec<usize> =
            (0..self.kinds.len()).filter(|&column| self.kinds[column].is_integer()).collect();
        if self.kinds == [Kind::Other; 2] {
            return Ok((0, 1));
        }
        let [src, dst, others @ ..] = &integers[..] else {
            return Err(self.no_ends("columns `src` and `dst`, or two columns of integers"));
        };
        if !others.is_empty() {
            notes.push(format!(
                "edges of `{}` go from `{}` to `{}`, the first columns of integers; `--columns \
                 SRC,DST` chooses others",
                self.path, self.names[*src], self.names[*dst]
            ));
        }
        Ok((*src, *dst))
    }

    /// Finds the column of weights where the user names none; `None` without one.
    fn find_weights(&self, ends: [usize; 2], notes: &mut Vec<String>) -> Option<usize> {
        let number = |column: &usize| self.kinds[*column].is_number();
        if self.third_is_weight && self.kinds.len() > 2 {
            return Some(2);
        }
        let rest: Vec<usize> =
            (0..self.kinds.len()).filter(|column| !ends.contains(column)).collect();
        let plain: Vec<String> = self.names.iter().map(|name| plain(name)).collect();
        let by_name = WEIGHTS.iter().find_map(|weight| {
            let is_weight = |column: &usize| plain.get(*column).is_some_and(|name| name == weight);
            rest.iter().copied().find(|column| is_weight(column) && number(column))
        });
        if by_name.is_some() {
            return by_name;
        }
        let called_weight = |column: &&usize| {
            plain.get(**column).is_some_and(|name| WEIGHTS.contains(&name.as_str()))
        };
        if let Some(column) = rest.iter().find(called_weight) {
            notes.push(format!(
                "column `{}` of `{}` is not used, as it is not numbers",
                self.names[*column], self.path
            ));
        }
        // pandas writes its index as a column without a name, or with one of its own.
        let is_index = |name: &String| name.is_empty() || name.starts_with("__index_level_");
        let called = |column: &usize| !self.names.get(*column).is_some_and(is_index);
        let unused: Vec<usize> = rest.iter().copied().filter(number).filter(called).collect();
        let (path, first) = (self.path, *unused.first()?);
        let third = self.names.is_empty() && rest.len() == 1;
        let why = match self.kinds[first] {
            Kind::Time if third => ", as it looks like times",
            Kind::Unfit if third => ", as not all of it are numbers of 0 or more",
            _ if third => {
                notes.push(format!(
                    "column 3 of `{path}` is taken for weights; `--weights none` leaves it out"
                ));
                return Some(first);
            }
            _ => "",
        };
        let named: Vec<String> =
            unused.iter().take(NAMED).map(|&c| format!("`{}`", self.flag(c))).collect();
        let more = unused.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (columns, are) = match unused.len() {
            1 => ("column", "is"),
            _ => ("columns", "are"),
        };
        notes.push(format!(
            "{columns} {}{more} of `{path}` {are} not used{why}; `--weights {first}` takes `{first}` \
             for weights",
            named.join(", "),
            first = self.flag(first),
        ));
        None
    }

    /// The option by which a user names a column.
    fn flag(&self, column: usize) -> String {
        self.names.get(column).cloned().unwrap_or_else(|| (column + 1).to_string())
    }

    fn numbered(&self, number: usize, ends: [usize; 2]) -> Result<usize> {
        match number.checked_sub(1) {
            Some(column) if column < self.kinds.len() && !ends.contains(&column) => Ok(column),
            _ => Err(self.no_weights(ends, format!("column {number}"))),
        }
    }

    fn named(&self, name: &str, ends: [usize; 2]) -> Result<usize> {
        match self.names.iter().position(|n| n == name) {
            Some(column) if !ends.contains(&column) => Ok(column),
            _ => Err(self.no_weights(ends, format!("`{name}`"))),
        }
    }

    fn refuse(&self, op: &str, expected: &str) -> Error {
        Error::new(ErrorKind::Input, op).object(self.path).expected(expected)
    }

    /// The error of a table without columns of ends.
    fn no_ends(&self, expected: &str) -> Error {
        let names = match self.names {
            [] => format!("columns 1 to {} without names", self.kinds.len()),
            names => format!("`{}`", names.join("`, `")),
        };
        let error = self.refuse("find the edges in", expected).got(names);
        error.hint("`--columns SRC,DST` names the columns")
    }

    /// The error of a table without the column of weights.
    fn no_weights(&self, ends: [usize; 2], got: String) -> Error {
        let rest: Vec<usize> =
            (0..self.kinds.len()).filter(|column| !ends.contains(column)).collect();
        let names: Vec<&str> =
            rest.iter().filter_map(|&column| self.names.get(column)).map(String::as_str).collect();
        let expected = match (&rest[..], &names[..]) {
            ([], _) => "no weights, as the file has only the two columns of ids".into(),
            (_, [_, ..]) => format!("one of `{}`", names.join("`, `")),
            ([only], []) => format!("column {}", only + 1),
            ([first, .., last], []) => format!("a column from {} to {}", first + 1, last + 1),
        };
        self.refuse("read weights from", &expected).got(got)
    }
}

/// Whether these are names of ends: a comment that has them is a header.
pub(super) fn name_ends(names: &[String]) -> bool {
    let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let has = |name: &str| plain.iter().any(|n| n == name);
    ENDS.iter().any(|(src, dst)| has(src) && has(dst))
}

/// A name as it is compared: `:START_ID(Person)` is `startid`, `weight:float` is `weight`.
fn plain(name: &str) -> String {
    let name = name.split('(').next().unwrap_or_default();
    let (before, after) = name.split_once(':').unwrap_or((name, ""));
    let letters = |text: &str| -> String {
        let kept = text.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' '));
        kept.flat_map(char::to_lowercase).collect()
    };
    match letters(after) {
        id if id == "startid" || id == "endid" || before.is_empty() => id,
        _ => letters(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(names: &str, kinds: &[Kind], columns: &str, weights: &str) -> Result<Columns> {
        let split = |text: &str| -> Vec<String> {
            text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let names = split(names);
        let table = Table { path: "t", names: &names, kinds, third_is_weight: false };
        let Ok(weights) = weights.parse::<Weights>();
        let columns = Some(split(columns)).filter(|columns| !columns.is_empty());
        table.choose(&Asked { columns, weights })
    }

    fn places(columns: &Columns) -> (usize, usize, Option<usize>) {
        (columns.src, columns.dst, columns.weight)
    }

    const INTEGERS: [Kind; 4] = [Kind::Integer; 4];

    #[test]
    fn known_names_are_found_in_any_place_and_case() {
        for (names, expected) in [
            ("source,target,weight", (0, 1, Some(2))),
            ("Weight,Target,Source", (2, 1, Some(0))),
            ("id,from,to,COST", (1, 2, Some(3))),
            ("FromNodeId,ToNodeId", (0, 1, None)),
            ("_key,_from,_to,distance", (1, 2, Some(3))),
            (":START_ID(Person),weight:float,:END_ID(Person)", (0, 2, Some(1))),
            ("node_1,node_2", (0, 1, None)),
            ("value,u,v,weight", (1, 2, Some(3))),
        ] {
            let columns = names.split(',').count();
            let chosen = choose(names, &INTEGERS[..columns], "", "auto").unwrap();
            assert_eq!((places(&chosen), &chosen.notes[..]), (expected, &[][..]), "{names}");
        }
    }

    #[test]
    fn columns_that_are_not_used_are_named_with_the_flag_that_uses_them() {
        let note = |names, kinds: &[Kind]| choose(names, kinds, "", "auto").unwrap().notes;
        assert_eq!(
            note("src,dst,rating", &INTEGERS[..3]),
            ["column `rating` of `t` is not used; `--weights rating` takes `rating` for weights"]
        );
        assert_eq!(
            note("", &INTEGERS[..4]),
            ["columns `3`, `4` of `t` are not used; `--weights 3` takes `3` for weights"]
        );
        assert_eq!(
            note("", &[Kind::Integer, Kind::Integer, Kind::Time]),
            ["column `3` of `t` is not used, as it looks like times; `--weights 3` takes `3` for \
              weights"]
        );
        assert_eq!(
            note("edge,a,b", &INTEGERS[..3])[0],
            "edges of `t` go from `edge` to `a`, the first columns of integers; `--columns \
             SRC,DST` chooses others"
        );
        assert!(note("src,dst,kind", &[Kind::Integer, Kind::Integer, Kind::Other]).is_empty());
        assert!(choose("src,dst,x", &INTEGERS[..3], "", "none").unwrap().notes.is_empty());
    }

    #[test]
    fn numbers_that_are_no_weights_are_refused_where_a_name_says_that_they_are() {
        let kinds = [Kind::Integer, Kind::Integer, Kind::Unfit];
        assert_eq!(choose("src,dst,weight", &kinds, "", "auto").unwrap().weight, Some(2));
        let chosen = choose("", &kinds, "", "auto").unwrap();
        assert_eq!(chosen.weight, None);
        assert!(chosen.notes[0].contains("is not used, as not all of it are numbers of 0 or more"));
    }

    #[test]
    fn a_third_column_without_a_name_is_taken_for_weights_and_this_is_said() {
        for kind in [Kind::Integer, Kind::Number] {
            let chosen = choose("", &[Kind::Integer, Kind::Integer, kind], "", "auto").unwrap();
            assert_eq!(places(&chosen), (0, 1, Some(2)));
            assert_eq!(
                chosen.notes,
                ["column 3 of `t` is taken for weights; `--weights none` leaves it out"]
            );
        }
    }

    #[test]
    fn what_is_asked_for_counts() {
        let named = |columns, weights| choose("a,b,c,d", &INTEGERS, columns, weights);
        assert_eq!(places(&named("d,b", "auto").unwrap()), (3, 1, None));
        assert_eq!(places(&named("d,b", "a").unwrap()), (3, 1, Some(0)));
        assert_eq!(places(&named("d,b,c", "auto").unwrap()), (3, 1, Some(2)));
        assert_eq!(places(&named("", "4").unwrap()), (0, 1, Some(3)));
        assert_eq!(places(&choose("", &INTEGERS, "3,1,4", "auto").unwrap()), (2, 0, Some(3)));
        let message = |columns, weights| named(columns, weights).unwrap_err().to_string();
        assert_eq!(
            message("a,a", "auto"),
            "cannot choose columns of `t`: expected each column once, got `a` twice"
        );
        assert_eq!(
            message("a", "auto"),
            "cannot choose columns of `t`: expected 2 or 3 names, got 1"
        );
        assert_eq!(
            message("a,x", "auto"),
            "cannot find the edges in `t`: expected a column `x`, got `a`, `b`, `c`, `d`\n\n\
             hint: `--columns SRC,DST` names the columns"
        );
        assert_eq!(
            message("a,b", "b"),
            "cannot read weights from `t`: expected one of `c`, `d`, got `b`"
        );
        assert_eq!(
            message("a,b,c", "d"),
            "cannot choose the weights of `t`: expected `--columns` or `--weights`, got both, with \
             a third column in `--columns`"
        );
        let kinds = [Kind::Other, Kind::Integer];
        assert!(choose("a,b", &kinds, "", "auto").unwrap_err().to_string().contains("two columns"));
    }
}
