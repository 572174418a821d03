//! Residency of neighbours: all unpacked, some pages, or none.

use tiergraph_cache::RankedSet;
use tiergraph_graph::{Direction, Graph};
use tiergraph_mem::PAGE_BYTES;

/// Which neighbours are resident in memory, for a [`Topology`](crate::residency::topology::Topology).
#[derive(Debug, Clone, Default)]
pub enum Residency {
    /// Every neighbour as a 4-byte id: the fastest, and the largest.
    Decoded,
    /// These pages as they are on disk, about half as large.
    Pages(Vec<u64>),
    /// Nothing: every page is read for every window of batches.
    #[default]
    Nothing,
}

impl Residency {
    /// The fastest that keeps all neighbours of `graph` in at most `bytes`; nothing where they do
    /// not fit, or there are none in this direction.
    pub fn all_within(graph: &Graph, direction: Direction, bytes: u64) -> Self {
        let pages = graph.rows(direction).pages().map_or(0, |rows| rows.index.len() as u64);
        let arcs = graph.manifest().arcs;
        let choices = [Self::Decoded, Self::Pages((0..pages).collect())];
        let fits = |keep: &Self| keep.bytes(pages, arcs) <= bytes;
        choices.into_iter().find(fits).unwrap_or_default()
    }

    /// Bytes beside what is always in memory, of a file of so many pages and arcs.
    pub(crate) fn bytes(&self, pages: u64, arcs: u64) -> u64 {
        match self {
            Self::Decoded => arcs * 4,
            Self::Pages(kept) => RankedSet::bytes_below(pages) + (kept.len() * PAGE_BYTES) as u64,
            Self::Nothing => 0,
        }
    }
}
