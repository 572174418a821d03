//! The options of a build.

use std::fmt::Debug;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::block::{BLOCK_ALIGN, DEFAULT_BLOCK_BYTES};
use tiergraph_format::directory::Existing;
use tiergraph_format::manifest::Codec;

use crate::features::Attachments;

/// Whether edges have a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// As the source says; directed where it says nothing.
    #[default]
    Auto,
    /// Edges are directed.
    Directed,
    /// Edges are undirected: an edge is one, whichever end comes first.
    Undirected,
}

/// What is done with edges that occur several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplicates {
    /// Every one is kept.
    #[default]
    Keep,
    /// One of them is kept, the one with the smallest weight.
    Remove,
}

/// What is done with edges from a vertex to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelfLoops {
    /// They are kept.
    #[default]
    Keep,
    /// They are removed.
    Remove,
}

/// The way from the source's ids to vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ids {
    /// `Dense` where the source says its vertices or few ids up to the largest have no edge, and `Map`
    /// otherwise; the report's notes say which ids have none.
    #[default]
    Auto,
    /// An id is a vertex; all ids up to the largest are vertices.
    Dense,
    /// Only ids that occur are vertices, in ascending order; `user.ids` keeps the ids.
    Map,
    /// An id is a name, of text; its vertex is how many names came before it. The graph keeps the names.
    Names,
}

/// The choice of the weights that are stored, and their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightChoice {
    /// The source's, if it has any: in 32 bits where that loses nothing of any of them.
    #[default]
    Auto,
    /// None.
    None,
    /// 32-bit floats, rounded.
    F32,
    /// 64-bit floats.
    F64,
}

/// The choice of the order in which vertices are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderChoice {
    /// Whichever of the two makes neighbours of a sample of vertices lie closer together.
    #[default]
    Auto,
    /// The user's order.
    None,
    /// Descending degree.
    Degree,
}

/// The purpose of the graph, which decides the layouts of codec `packed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Whole-graph algorithms: tiles, and rows of out-neighbours.
    #[default]
    Analytics,
    /// Sampling: rows in both directions.
    Training,
    /// All of these.
    Both,
    /// Sampling along edges alone: rows of in-neighbours.
    Sampling,
}

/// The options of a build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Whether edges have a direction.
    pub direction: Direction,
    /// What is done with edges that occur several times.
    pub duplicates: Duplicates,
    /// What is done with self-loops.
    pub self_loops: SelfLoops,
    /// The way from the source's ids to vertices.
    pub ids: Ids,
    /// The number of vertices, where the source does not say it: they are 0 to this less one.
    pub vertices: Option<u64>,
    /// The number of feature rows that will be stored with the vertices, beside the attachments.
    pub rows: Option<u64>,
    /// The weights that are stored, and their type.
    pub weights: WeightChoice,
    /// The order of vertices.
    pub order: OrderChoice,
    /// The codec of the adjacency.
    pub codec: Codec,
    /// The purpose of the graph, which decides its layouts.
    pub purpose: Purpose,
    /// Directories over which blocks are striped.
    pub stripes: Vec<PathBuf>,
    /// The folder of temporary files; by default, that of the graph being built.
    pub scratch: Option<PathBuf>,
    /// Bytes of a block, the unit of reading.
    pub block_bytes: u32,
    /// What is done with a graph that is already there.
    pub overwrite: Existing,
    /// Bytes that the build may hold in memory; half of what is available by default.
    pub memory: Option<u64>,
    /// Bytes of `memory` that the process takes beside what the build reserves.
    pub process_bytes: u64,
    /// The number of threads.
    pub threads: usize,
    /// Columns of a tile, as a power of two; by default 16, and where edges are undirected 13 or 14, the more the
    /// more vertices there are.
    pub columns_log2: Option<u32>,
    /// The most arcs of a strip; by default 4 Mi, fewer where memory is small.
    pub strip_arcs: Option<u64>,
    /// Bytes of an id in codec `raw`: 4 or 8; by default, as many as the number of vertices needs.
    pub id_width: Option<u8>,
    /// Features, labels and splits to be stored with the vertices.
    pub attachments: Attachments,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            direction: Direction::default(),
            duplicates: Duplicates::default(),
            self_loops: SelfLoops::default(),
            ids: Ids::default(),
            vertices: None,
            rows: None,
            weights: WeightChoice::default(),
            order: OrderChoice::default(),
            codec: Codec::Packed,
            purpose: Purpose::default(),
            stripes: Vec::new(),
            scratch: None,
            block_bytes: DEFAULT_BLOCK_BYTES,
            overwrite: Existing::Refuse,
            memory: None,
            process_bytes: 0,
            threads: 2,
            columns_log2: None,
            strip_arcs: None,
            id_width: None,
            attachments: Attachments::default(),
        }
    }
}

/// Columns that a tile may have, as powers of two.
const COLUMNS_LOG2: std::ops::RangeInclusive<u32> = 10..=16;

impl BuildOptions {
    /// Columns of a tile, as a power of two, of a graph of so many vertices.
    ///
    /// Undirected edges are stored once, and a pass reads and adds to columns as well: values of 2^13 fit
    /// the L1 cache. A graph of very many vertices has few arcs in most tiles, which are then better larger.
    pub(super) fn columns_log2(&self, undirected: bool, vertices: usize) -> u32 {
        let default = match undirected {
            true => vertices.max(1).ilog2().saturating_sub(11).clamp(13, 14),
            false => 16,
        };
        self.columns_log2.unwrap_or(default)
    }

    /// Refuses values that no build can use.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |what: &str, expected: &str, got: String| {
            let error = Error::new(ErrorKind::Input, "use the option").object(what);
            Err(error.expected(expected).got(got))
        };
        if self.threads == 0 {
            return refuse("threads", "1 or more", "0".into());
        }
        if self.block_bytes == 0
            || !self.block_bytes.is_multiple_of(BLOCK_ALIGN)
            || self.block_bytes > 1 << 30
        {
            let expected = "a multiple of 4096 up to 1 GiB";
            return refuse("block_bytes", expected, format!("{}", self.block_bytes));
        }
        if let Some(k) = self.columns_log2.filter(|k| !COLUMNS_LOG2.contains(k)) {
            return refuse("columns_log2", "10 to 16", format!("{k}"));
        }
        if self.strip_arcs == Some(0) {
            return refuse("strip_arcs", "1 or more", "0".into());
        }
        if let (Some(vertices), Ids::Map) = (self.vertices, self.ids) {
            let expected = "`--ids dense`, as they are the ids 0 to |V| - 1";
            return refuse(&format!("--vertices {vertices}"), expected, "`--ids map`".into())
                .map_err(|e| e.hint("leave out one of both"));
        }
        match self.id_width {
            None | Some(4 | 8) => Ok(()),
            Some(other) => refuse("id_width", "4 or 8", format!("{other}")),
        }
    }

    /// The options as provenance keeps them: those that change the graph, and nothing of the
    /// machine that it was built on.
    pub(super) fn provenance(&self) -> [(&'static str, String); 8] {
        let name = |value: &dyn Debug| format!("{value:?}").to_lowercase();
        [
            ("direction", name(&self.direction)),
            ("duplicates", name(&self.duplicates)),
            ("self_loops", name(&self.self_loops)),
            ("ids", name(&self.ids)),
            ("weights", name(&self.weights)),
            ("order", name(&self.order)),
            ("codec", name(&self.codec)),
            ("purpose", name(&self.purpose)),
        ]
    }
}
