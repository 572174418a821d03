//! How often the pages and rows of each type are wanted, and what of them memory should keep.
//!
//! As in [`hotness`](crate::residency::hotness): windows are counted, and chunks of pages and of rows compete by
//! what they save. Those of all types do so together.

use tiergraph_cache::placement::{Chunk, Kind, place};
use tiergraph_mem::PAGE_BYTES;

use super::batch::HeteroBatch;
use crate::residency::hotness::{Choices, Plan};
use crate::residency::topology::Topology;
use crate::sampling::window::pages_of;

/// Windows that wanted each item, and the last one of them.
#[derive(Debug, Default)]
struct Counts {
    uses: Vec<u32>,
    seen: Vec<u32>,
}

impl Counts {
    fn new(items: u64) -> Self {
        Self { uses: vec![0; items as usize], seen: vec![0; items as usize] }
    }

    fn want(&mut self, item: u64, window: u32) {
        let item = item as usize;
        if self.seen[item] != window {
            self.seen[item] = window;
            self.uses[item] = self.uses[item].saturating_add(1);
        }
    }
}

/// Counts of what batches of several types wanted.
#[derive(Debug)]
pub(crate) struct HeteroHotness {
    /// Pages of neighbours, by edge type.
    pages: Vec<Counts>,
    /// Rows of features, by node type.
    rows: Vec<Counts>,
    /// Of each edge type, the place of its destination's node type.
    destinations: Vec<usize>,
    windows: u32,
}

/// Pages by edge type, and nodes by node type.
pub(crate) type Chosen = (Vec<Vec<u64>>, Vec<Vec<u32>>);

impl HeteroHotness {
    /// No counts yet, of graphs of so many rows.
    pub(crate) fn new(topologies: &[Topology], ends: &[(usize, usize)], rows: &[u64]) -> Self {
        Self {
            pages: topologies.iter().map(|t| Counts::new(t.map().pages())).collect(),
            rows: rows.iter().map(|&rows| Counts::new(rows)).collect(),
            destinations: ends.iter().map(|ends| ends.1).collect(),
            windows: 0,
        }
    }

    /// Bytes in memory of the counts of so many pages and rows.
    pub(crate) fn bytes_of(items: u64) -> u64 {
        8 * items
    }

    /// Counts what a window's batches wanted.
    pub(crate) fn record(&mut self, topologies: &[Topology], window: &[HeteroBatch]) {
        self.windows += 1;
        for batch in window {
            for (rows, nodes) in self.rows.iter_mut().zip(&batch.nodes) {
                // Types without features have no counts.
                if !rows.uses.is_empty() {
                    nodes.n_id.iter().for_each(|&node| rows.want(node.into(), self.windows));
                }
            }
            for (edge_type, topology) in topologies.iter().enumerate() {
                let edges = &batch.edges[edge_type];
                let nodes = &batch.nodes[self.destinations[edge_type]];
                let taken = edges.taken(nodes, 0..edges.e_id.len());
                let mut edge = 0;
                for run in taken.runs() {
                    let arcs = &taken.e_id[edge..edge + run.len()];
                    for page in pages_of(topology, taken.vertex(run), arcs) {
                        self.pages[edge_type].want(page, self.windows);
                    }
                    edge += run.len();
                }
            }
        }
    }

    /// What memory of `capacity` bytes should keep of all pages, and of rows of `row_bytes`, which is
    /// 0 for a type without features.
    pub(crate) fn plan(&self, how: &Plan, row_bytes: &[usize], capacity: u64) -> Chosen {
        let pages = self.pages.iter().map(|counts| (counts, PAGE_BYTES));
        let rows = self.rows.iter().zip(row_bytes).map(|(counts, &bytes)| (counts, bytes));
        let pages = Competition::new(how, Kind::Topology, pages);
        let rows = Competition::new(how, Kind::Features, rows);
        let (kept_pages, kept_rows) = place(how.placement, &pages.chunks, &rows.chunks, capacity);
        (pages.chosen(&kept_pages), rows.chosen(&kept_rows))
    }
}

/// The items of several types in one order of chunks.
struct Competition {
    choices: Vec<Choices>,
    /// Whose each chunk is.
    types: Vec<usize>,
    chunks: Vec<Chunk>,
}

impl Competition {
    fn new<'a>(how: &Plan, kind: Kind, counts: impl Iterator<Item = (&'a Counts, usize)>) -> Self {
        let choices: Vec<Choices> =
            counts.map(|(counts, bytes)| Choices::new(how, kind, &counts.uses, bytes)).collect();
        let mut all: Vec<(usize, Chunk)> = choices
            .iter()
            .enumerate()
            .flat_map(|(of, choices)| choices.chunks.iter().map(move |chunk| (of, chunk.clone())))
            .collect();
        // By what is saved a byte, as fractions: the hottest first, whatever their type.
        let worth = |a: &Chunk, b: &Chunk| u128::from(a.saves) * u128::from(b.bytes);
        all.sort_by(|(_, a), (_, b)| worth(b, a).cmp(&worth(a, b)));
        let (types, chunks) = all.into_iter().unzip();
        Self { choices, types, chunks }
    }

    /// The items of these chunks by type.
    fn chosen<T: From<u32>>(&self, kept: &[usize]) -> Vec<Vec<T>> {
        let mut chosen: Vec<Vec<T>> = self.choices.iter().map(|_| Vec::new()).collect();
        for &chunk in kept {
            let of = self.types[chunk];
            let items = &self.choices[of].order[self.chunks[chunk].items.clone()];
            chosen[of].extend(items.iter().map(|&item| T::from(item)));
        }
        chosen
    }
}
