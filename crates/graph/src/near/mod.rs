//! Neighbours of a few vertices at a time, on the calling thread, from what is kept.
//!
//! A [pass over rows](crate::Rows::pass) is for many vertices: it wakes all threads, and what is not resident
//! is read again by the next one. A search of a graph with a long diameter asks for a few vertices
//! thousands of times, and most are on the pages of those before.

mod raw;
mod rows;
mod slots;

use tiergraph_core::Result;

use crate::{Direction, Graph};
use raw::NearRaw;
use rows::NearRows;

/// Reads in flight: few vertices want few pages.
const READS: usize = 8;

/// What is kept at least, in bytes a vertex: a frontier across a grid, whose arcs are its neighbours', has
/// its pages here from level to level.
const LEAST_VERTEX_BYTES: u64 = 2;

/// Reads the neighbours of few vertices, and keeps the pages or blocks that it read last.
pub struct NearLists<'a>(Lists<'a>);

enum Lists<'a> {
    Rows(NearRows<'a>),
    Raw(NearRaw<'a>),
}

impl<'g> NearLists<'g> {
    /// The least memory, in bytes, of a reader of the lists of this direction.
    pub fn least_bytes(graph: &Graph, direction: Direction) -> u64 {
        match graph.rows(direction).is_stored() {
            true => NearRows::least_bytes(graph, direction),
            false => NearRaw::least_bytes(graph, direction),
        }
    }

    /// A reader that takes at most `bytes`, which it reserves; `None` where that memory is not left, or
    /// without rows and raw blocks.
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

    /// Whether what is to be read for `vertices`, which ascend, is read sooner here than by a pass over
    /// everything: a pass has all threads and deeper queues.
    pub fn is_near(&self, vertices: &[u32]) -> bool {
        let missing_bytes = || match &self.0 {
            Lists::Rows(rows) => rows.missing_bytes(vertices),
            Lists::Raw(raw) => raw.missing_bytes(vertices),
        };
        vertices.len() <= FEW_VERTICES || {
            let (missing, all) = missing_bytes();
            missing <= all / PASS_GAIN
        }
    }

    /// Calls `visit(vertex, neighbour)` for every neighbour of `vertices`, which ascend. Reads each page
    /// or block once that is not kept.
    ///
    /// # Errors
    /// A read that fails for good, a page or block that is damaged, cancellation.
    pub fn visit(&mut self, vertices: &[u32], mut visit: impl FnMut(u32, u64)) -> Result<()> {
        match &mut self.0 {
            Lists::Rows(rows) => rows.visit(vertices, &mut visit),
            Lists::Raw(raw) => raw.visit(vertices, &mut visit),
        }
    }
}

/// The fewest units of `unit` bytes, out of `all`, that are worth a reader, and no fewer than `few`.
fn fewest(graph: &Graph, unit: usize, all: u64, few: u64) -> u64 {
    let kept = graph.manifest().vertices * LEAST_VERTEX_BYTES / unit as u64;
    kept.max(few).min(all)
}

/// So few vertices are not worth waking threads for, wherever their neighbours lie.
const FEW_VERTICES: usize = 16;

/// A pass reads about so many times as many bytes in the same time.
const PASS_GAIN: u64 = 4;

/// What the memory of kept pages and blocks is for.
const KEPT: &str = "the lists of few vertices that are kept";
