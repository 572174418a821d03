//! Neighbours of a few vertices at a time, on the calling thread, which keeps pages or blocks in memory.
//!
//! A [pass over rows](crate::Rows::pass) is for many vertices: it wakes all threads, and the next one
//! reads again what is not resident. A search of a graph with a long diameter asks for few vertices
//! thousands of times, and most lie on pages that it just read.

mod raw;
mod rows;
mod slots;

use tiergraph_core::Result;

use crate::{Direction, Graph};
use raw::NearRaw;
use rows::NearRows;

/// Reads in flight at most: few vertices need few pages.
const READS: usize = 8;

/// Bytes for each vertex of the graph that a reader keeps at least: a frontier across a grid, whose arcs
/// lead to its neighbours, then finds its pages here from level to level.
const LEAST_VERTEX_BYTES: u64 = 2;

/// A reader of the neighbour lists of few vertices, which keeps the pages or blocks that it read last.
pub struct NearLists<'a>(Lists<'a>);

enum Lists<'a> {
    Rows(NearRows<'a>),
    Raw(NearRaw<'a>),
}

impl<'g> NearLists<'g> {
    /// The least memory, in bytes, that a reader of lists in this direction takes.
    pub fn least_bytes(graph: &Graph, direction: Direction) -> u64 {
        match graph.rows(direction).is_stored() {
            true => NearRows::least_bytes(graph, direction),
            false => NearRaw::least_bytes(graph, direction),
        }
    }

    /// Makes a reader that reserves and takes at most `bytes`; `None` where that memory is not left, or
    /// where the graph has neither rows nor raw blocks.
    ///
    /// # Errors
    /// When the system refuses a further engine, or memory.
    pub fn new(graph: &'g Graph, direction: Direction, bytes: u64) -> Result<Option<Self>> {
        let lists = match graph.rows(direction).is_stored() {
            true => NearRows::new(graph, direction, bytes)?.map(Lists::Rows),
            false => NearRaw::new(graph, direction, bytes)?.map(Lists::Raw),
        };
        Ok(lists.map(Self))
    }

    /// Whether reading the lists of `vertices`, which ascend, here is probably faster than a pass over
    /// everything, which has all threads and deeper queues.
    pub fn is_near(&self, vertices: &[u32]) -> bool {
        let extent = || match &self.0 {
            Lists::Rows(rows) => rows.extent(vertices),
            Lists::Raw(raw) => raw.extent(vertices),
        };
        vertices.len() <= FEW_VERTICES || {
            let Extent { missing, lists, all } = extent();
            missing <= all / PASS_GAIN && lists <= all / WORK_SHARE
        }
    }

    /// Calls `visit(vertex, neighbour)` for every neighbour of `vertices`, which ascend. Reads each page
    /// or block once that is not kept.
    ///
    /// # Errors
    /// A read that fails after its retries, a page or block that is damaged, cancellation.
    pub fn visit(&mut self, vertices: &[u32], mut visit: impl FnMut(u32, u64)) -> Result<()> {
        match &mut self.0 {
            Lists::Rows(rows) => rows.visit(vertices, &mut visit),
            Lists::Raw(raw) => raw.visit(vertices, &mut visit),
        }
    }
}

/// How much of a file the lists of some vertices are, in bytes.
struct Extent {
    /// The pages or blocks with these lists that are not in memory.
    missing: u64,
    /// The lists, about; 0 where that is not known.
    lists: u64,
    /// The file.
    all: u64,
}

/// The fewest units of `unit` bytes, out of `all`, that a reader is worth making for; at least `few`.
fn fewest(graph: &Graph, unit: usize, all: u64, few: u64) -> u64 {
    let kept = graph.manifest().vertices * LEAST_VERTEX_BYTES / unit as u64;
    kept.max(few).min(all)
}

/// So few vertices are read here wherever their lists lie: waking threads would take longer.
const FEW_VERTICES: usize = 16;

/// How many times as many bytes a pass reads in the same time, about.
const PASS_GAIN: u64 = 4;

/// Lists of more than one byte in so many of all are worth the threads of a pass, also where they are in memory.
const WORK_SHARE: u64 = 256;

/// The name of the reservation for kept pages and blocks.
const KEPT: &str = "the lists of few vertices that are kept";
