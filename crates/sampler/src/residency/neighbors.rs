//! Residency of neighbours: all unpacked, some pages, or none.

use tiergraph_cache::RankedSet;
use tiergraph_graph::{Direction, Graph};
use tiergraph_mem::PAGE_BYTES;

/// Which neighbours are in memory, for a [`Topology`](crate::residency::topology::Topology).
#[derive(Debug, Clone, Default)]
pub enum Residency {
    /// Every neighbour as a 4-byte id: the fastest, and the largest.
    Decoded,
    /// The neighbours on these pages, in the form of the file, about half as large.
    Pages(Vec<u64>),
    /// No neighbours: every page is read for every window of batches.
    #[default]
    Nothing,
}

impl Residency {
    /// The fastest that keeps all neighbours of `graph` in at most `bytes`; nothing where they do
    /// not fit, or there are none in this direction.
    pub fn all_within(graph: &Graph, direction: Direction, bytes: u64) -> Self {
        NeighborFile::of(graph, direction).all_within(bytes)
    }
}

/// The neighbours and feature rows that a loader keeps in memory.
#[derive(Debug, Clone, Default)]
pub struct Residents {
    /// The residency of neighbours, by edge type.
    pub neighbors: Vec<Residency>,
    /// The nodes whose feature rows are kept, by node type.
    pub rows: Vec<Vec<u32>>,
}

impl Residents {
    /// The residents of a graph with one type.
    pub fn of_one(keep: Residency, rows: impl IntoIterator<Item = u32>) -> Self {
        Self { neighbors: vec![keep], rows: vec![rows.into_iter().collect()] }
    }
}

/// The sizes of a file of neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeighborFile {
    pub(crate) pages: u64,
    pub(crate) arcs: u64,
}

impl NeighborFile {
    /// The sizes of a graph's neighbour file in one direction; no pages where there is none.
    pub(crate) fn of(graph: &Graph, direction: Direction) -> Self {
        let pages = graph.rows(direction).pages().map_or(0, |rows| rows.index.len() as u64);
        Self { pages, arcs: graph.manifest().arcs }
    }

    /// The residency of all neighbours, in packed pages.
    pub(crate) fn all_pages(self) -> Residency {
        Residency::Pages((0..self.pages).collect())
    }

    /// The fastest residency of all neighbours in at most `bytes`; nothing where they do not fit.
    pub(crate) fn all_within(self, bytes: u64) -> Residency {
        let choices = [Residency::Decoded, self.all_pages()];
        choices.into_iter().find(|keep| self.kept(keep) <= bytes).unwrap_or_default()
    }

    /// Bytes that the neighbours kept by `keep` take, beside what is always in memory.
    pub(crate) fn kept(self, keep: &Residency) -> u64 {
        match keep {
            Residency::Decoded => self.arcs * 4,
            Residency::Pages(kept) => {
                RankedSet::bytes_below(self.pages) + (kept.len() * PAGE_BYTES) as u64
            }
            Residency::Nothing => 0,
        }
    }

    /// The number of pages that `keep` keeps.
    pub(crate) fn kept_pages(self, keep: &Residency) -> u64 {
        match keep {
            Residency::Decoded => self.pages,
            Residency::Pages(kept) => kept.len() as u64,
            Residency::Nothing => 0,
        }
    }
}
