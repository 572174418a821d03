//! Hotness: how often pages and rows are wanted, and the choice of those that a tier keeps.
//!
//! Presampling (Hyperion, §III-B; GNNLab before it): an epoch's batches are sampled without being
//! trained on, and what they want is counted. A static set chosen by these counts reaches nearly
//! the hit rate of the best possible one. Because a page or row is fetched once for all batches of a
//! window, it is counted once a window.

use tiergraph_cache::placement::{
    Chunk, Granularity, Item, Kind, Placement, Tier, by_hotness, choose, chunks,
};
use tiergraph_mem::PAGE_BYTES;

use crate::pipeline::types::Ends;
use crate::residency::neighbors::{Residency, Residents};
use crate::residency::topology::Topology;
use crate::sampling::batch::MiniBatch;
use crate::sampling::window::pages_of;

/// Counts of how often each page, or each row, of one type was wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// For each item, the number of windows that wanted it.
    pub uses: Vec<u32>,
    /// The last window that each item was counted in.
    seen: Vec<u32>,
}

impl Counts {
    fn new(items: usize) -> Self {
        Self { uses: vec![0; items], seen: vec![0; items] }
    }

    fn count(&mut self, item: usize, window: u32) {
        if std::mem::replace(&mut self.seen[item], window) != window {
            self.uses[item] += 1;
        }
    }
}

/// Counts of the pages and rows that batches wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hotness {
    /// Counts of pages of neighbours, by edge type.
    pub pages: Vec<Counts>,
    /// Counts of rows of features, by node type.
    pub rows: Vec<Counts>,
    ends: Vec<Ends>,
    windows: u32,
}

impl Hotness {
    /// Empty counts, for types with so many nodes.
    pub fn new(topologies: &[Topology], ends: &[Ends], nodes: &[usize]) -> Self {
        let pages = topologies.iter().map(|topology| Counts::new(topology.map().pages() as usize));
        Self {
            pages: pages.collect(),
            rows: nodes.iter().map(|&nodes| Counts::new(nodes)).collect(),
            ends: ends.to_vec(),
            windows: 0,
        }
    }

    /// Empty counts, for a graph with one type.
    pub fn of_one(topology: &Topology) -> Self {
        let nodes = topology.offsets().vertices();
        Self::new(std::slice::from_ref(topology), &[Ends::SAME], &[nodes])
    }

    /// Bytes that counts of `pages` pages and `vertices` rows take.
    pub fn bytes_of(pages: u64, vertices: u64) -> u64 {
        8 * (pages + vertices)
    }

    /// Counts the pages and rows that the batches of one window want.
    pub fn record(&mut self, topologies: &[Topology], batches: &[MiniBatch]) {
        self.windows += 1;
        for batch in batches {
            for (rows, nodes) in self.rows.iter_mut().zip(&batch.nodes) {
                nodes.n_id.iter().for_each(|&node| rows.count(node as usize, self.windows));
            }
            for (edge_type, topology) in topologies.iter().enumerate() {
                let edges = 0..batch.edges[edge_type].e_id.len();
                let taken = batch.taken(edge_type, self.ends[edge_type], edges);
                let (counts, mut edge) = (&mut self.pages[edge_type], 0);
                for run in taken.runs() {
                    let arcs = &taken.e_id[edge..edge + run.len()];
                    for page in pages_of(topology, taken.vertex(run), arcs) {
                        counts.count(page as usize, self.windows);
                    }
                    edge += run.len();
                }
            }
        }
    }

    /// Chooses what host memory of `capacity` bytes keeps: pages of neighbours of all types, and rows of
    /// `row_bytes` by node type (0 without features).
    ///
    /// The bytes are those of pages and rows; what finds them takes two bits each beside them.
    pub fn place(&self, how: &Plan, row_bytes: &[usize], capacity: u64) -> Residents {
        let pages = self.pages.iter().map(|counts| (counts, PAGE_BYTES));
        let rows = self.rows.iter().zip(row_bytes).map(|(counts, &bytes)| (counts, bytes));
        let pages = Candidates::new(how, Kind::Topology, pages);
        let rows = Candidates::new(how, Kind::Features, rows);
        let chosen = choose(how.placement, Tier::Host, &pages.chunks, &rows.chunks, capacity);
        let pages = pages.chosen(&chosen.topology).into_iter().map(Residency::Pages);
        Residents { neighbors: pages.collect(), rows: rows.chosen(&chosen.features) }
    }
}

/// The items of one kind (pages or rows) of all types, in one order of chunks.
struct Candidates {
    /// The items of each type in order of hotness.
    orders: Vec<Vec<u32>>,
    /// The type of each chunk.
    types: Vec<usize>,
    chunks: Vec<Chunk>,
}

impl Candidates {
    /// Items of so many bytes each; none of a type where there are no bytes.
    fn new<'a>(how: &Plan, kind: Kind, counts: impl Iterator<Item = (&'a Counts, usize)>) -> Self {
        let (mut orders, mut all) = (Vec::new(), Vec::new());
        for (of, (counts, bytes)) in counts.enumerate() {
            let order = if bytes == 0 { Vec::new() } else { by_hotness(&counts.uses) };
            let item = |&i: &u32| {
                let uses = counts.uses[i as usize].into();
                let saves = how.granularity.transactions(Tier::Host, uses, bytes as u64);
                Item { bytes: bytes as u64, saves }
            };
            let chunks = chunks(kind, order.iter().map(item), how.chunk_bytes);
            all.extend(chunks.into_iter().map(|chunk| (of, chunk)));
            orders.push(order);
        }
        // By what is saved a byte, as fractions: the hottest first, whatever their type.
        let worth = |a: &Chunk, b: &Chunk| u128::from(a.saves) * u128::from(b.bytes);
        all.sort_by(|(_, a), (_, b)| worth(b, a).cmp(&worth(a, b)));
        let (types, chunks) = all.into_iter().unzip();
        Self { orders, types, chunks }
    }

    /// The items of the chunks at `places`, by type.
    fn chosen<T: From<u32>>(&self, places: &[usize]) -> Vec<Vec<T>> {
        let mut chosen: Vec<Vec<T>> = self.orders.iter().map(|_| Vec::new()).collect();
        for &chunk in places {
            let of = self.types[chunk];
            let items = &self.orders[of][self.chunks[chunk].items.clone()];
            chosen[of].extend(items.iter().map(|&item| T::from(item)));
        }
        chosen
    }
}

/// A plan of how a tier is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The placement: which kind of item comes first.
    pub placement: Placement,
    /// Z: bytes of a chunk, whose items are kept or not kept together.
    pub chunk_bytes: u64,
    /// Bytes of a line and of a read.
    pub granularity: Granularity,
}

impl Default for Plan {
    /// The plan with chunks of 64 KiB. The paper's 100 MB suit tiers of tens of gigabytes.
    fn default() -> Self {
        let (placement, granularity) = (Placement::default(), Granularity::default());
        Self { placement, chunk_bytes: 64 << 10, granularity }
    }
}
