//! The options for opening an input, and the names of the formats.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use tiergraph_core::{Error, ErrorKind};

use crate::Names;

/// A file format of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// An edge list: SNAP, TSV, CSV, plain or zipped.
    Text,
    /// Pairs of little-endian `u32`.
    U32,
    /// Pairs of little-endian `u64`.
    U64,
    /// A NumPy array of integers of shape (E, 2) or (2, E).
    Npy,
    /// LDBC Graphalytics: `NAME.v` and `NAME.e`.
    Graphalytics,
    /// Adjacency lines `v n1 n2 …`.
    Adjacency,
    /// WebGraph's ASCII form: the number of vertices, then a line of successors for each.
    AsciiGraph,
    /// WebGraph's BVGraph: `NAME.graph` and `NAME.properties`.
    BvGraph,
    /// Matrix Market's coordinates: a square matrix.
    MatrixMarket,
    /// METIS: the neighbours of vertex 1, 2, ….
    Metis,
    /// GAP's serialized graph.
    Gap,
    /// The same with weights.
    WeightedGap,
    /// DIMACS' and PACE's `.gr`: `p KIND VERTICES EDGES`, and edges.
    Dimacs,
}

impl Format {
    /// All formats, in the order in which messages list them.
    pub const ALL: [Self; 13] = [
        Self::Text,
        Self::U32,
        Self::U64,
        Self::Npy,
        Self::Graphalytics,
        Self::Adjacency,
        Self::AsciiGraph,
        Self::BvGraph,
        Self::MatrixMarket,
        Self::Metis,
        Self::Dimacs,
        Self::Gap,
        Self::WeightedGap,
    ];

    /// The format's name, as `--format` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Npy => "npy",
            Self::Graphalytics => "graphalytics",
            Self::Adjacency => "adjacency",
            Self::AsciiGraph => "ascii-graph",
            Self::BvGraph => "bvgraph",
            Self::MatrixMarket => "matrix-market",
            Self::Metis => "metis",
            Self::Dimacs => "dimacs",
            Self::Gap => "sg",
            Self::WeightedGap => "wsg",
        }
    }

    /// The names of all formats, for messages.
    pub(super) fn list() -> String {
        Self::ALL.map(|format| format!("`{}`", format.name())).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::Input, "use the format")
                .object(name)
                .expected(format!("one of {}", Self::list()))
        })
    }
}

/// The choice of the column that holds the weights of an edge list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum Weights {
    /// The one that the format defines (the third of `.wel` and of Graphalytics' `.e`) or that is
    /// called like weights, or the third of three columns without names; else none.
    #[default]
    Auto,
    /// None: the graph is not weighted, and of a line of text only the ends are read.
    Ignore,
    /// The column with this number, from 1.
    Column(usize),
    /// The column that the header calls so.
    Name(String),
}

impl FromStr for Weights {
    type Err = Infallible;

    /// Reads `auto`, `none`, a column's number or its name.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match (text, text.parse()) {
            ("auto", _) => Self::Auto,
            ("none", _) => Self::Ignore,
            (_, Ok(column)) => Self::Column(column),
            _ => Self::Name(text.into()),
        })
    }
}

impl From<String> for Weights {
    fn from(text: String) -> Self {
        match text.parse() {
            Ok(weights) => weights,
            Err(never) => match never {},
        }
    }
}

/// Options for reading a file with [`open`](super::open).
#[derive(Clone)]
pub struct OpenOptions {
    /// The format; `None` to find it from the file.
    pub format: Option<Format>,
    /// The columns of a text file that are the ends and perhaps the weights, by name or number.
    pub columns: Option<Vec<String>>,
    /// The column of the weights.
    pub weights: Weights,
    /// Whether the edges are directed, for formats that do not say so. Adjacency lines of an
    /// undirected graph list each edge twice; only with `Some(false)` it is handed out once.
    pub directed: Option<bool>,
    /// Where the ends of edges are names, of text: what numbers them.
    pub names: Option<Names>,
    /// The number of threads that parse.
    pub threads: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            format: None,
            columns: None,
            weights: Weights::Auto,
            directed: None,
            names: None,
            threads: 2,
        }
    }
}
