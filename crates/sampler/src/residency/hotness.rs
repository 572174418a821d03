//! How often pages and rows are wanted, and what of them a tier should keep.
//!
//! Presampling (Hyperion, §III-B; GNNLab before it): an epoch's batches are sampled without being
//! trained on, and what they want is counted. A static set chosen by these counts reaches nearly
//! the hit rate of the best possible one. Because a page or row is fetched once for all batches of a
//! window, it is counted once a window.

use std::ops::Range;

use tiergraph_cache::placement::{
    Chunk, Granularity, Item, Kind, Placement, Tier, by_hotness, chunks, place,
};
use tiergraph_mem::PAGE_BYTES;

use crate::residency::topology::Topology;
use crate::sampling::batch::MiniBatch;
use crate::sampling::window::pages_of;

/// Counts of what batches wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hotness {
    /// Windows that wanted each page of neighbours.
    pub pages: Vec<u32>,
    /// Windows that wanted each vertex's row of features.
    pub rows: Vec<u32>,
    /// The last window that each page and row was counted in.
    seen_pages: Vec<u32>,
    seen_rows: Vec<u32>,
    windows: u32,
}

impl Hotness {
    /// No counts yet.
    pub fn new(topology: &Topology) -> Self {
        let pages = topology.map().pages() as usize;
        let rows = topology.offsets().vertices();
        Self {
            pages: vec![0; pages],
            rows: vec![0; rows],
            seen_pages: vec![0; pages],
            seen_rows: vec![0; rows],
            windows: 0,
        }
    }

    /// Bytes in memory for so many pages and vertices.
    pub fn bytes_of(pages: u64, vertices: u64) -> u64 {
        8 * (pages + vertices)
    }

    /// Counts of another origin in place of presampling: every row by `score` (its degree, its
    /// PageRank), and every page by the sum over its vertices.
    pub fn from_scores(topology: &Topology, score: impl Fn(u32) -> u32) -> Self {
        let mut hotness = Self::new(topology);
        for vertex in 0..hotness.rows.len() as u32 {
            hotness.rows[vertex as usize] = score(vertex);
            if !topology.offsets().arcs(vertex).is_empty() {
                let page = &mut hotness.pages[topology.map().page(vertex, 0) as usize];
                *page = page.saturating_add(score(vertex));
            }
        }
        hotness
    }

    /// Counts what the batches of one window wanted.
    pub fn record(&mut self, topology: &Topology, batches: &[MiniBatch]) {
        self.windows += 1;
        let window = self.windows;
        let count = |counts: &mut [u32], seen: &mut [u32], at: usize| {
            if std::mem::replace(&mut seen[at], window) != window {
                counts[at] += 1;
            }
        };
        for batch in batches {
            for &vertex in &batch.n_id {
                count(&mut self.rows, &mut self.seen_rows, vertex as usize);
            }
            let mut edge = 0;
            for run in batch.col.chunk_by(|a, b| a == b) {
                let vertex = batch.n_id[run[0] as usize];
                for page in pages_of(topology, vertex, &batch.e_id[edge..edge + run.len()]) {
                    count(&mut self.pages, &mut self.seen_pages, page as usize);
                }
                edge += run.len();
            }
        }
    }

    /// What host memory of `capacity` bytes should keep of the neighbours' pages and of rows of
    /// `row_bytes` (0 without features).
    ///
    /// The bytes are those of pages and rows; what finds them takes two bits each beside them.
    pub fn plan(&self, how: &Plan, row_bytes: usize, capacity: u64) -> Kept {
        let page = Choices::new(how, Kind::Topology, &self.pages, PAGE_BYTES);
        let row = Choices::new(how, Kind::Features, &self.rows, row_bytes);
        let (pages, rows) = place(how.placement, &page.chunks, &row.chunks, capacity);
        Kept {
            pages: page.chosen(&pages).map(u64::from).collect(),
            vertices: row.chosen(&rows).collect(),
        }
    }
}

/// One kind's items in order of hotness, and their chunks.
pub(crate) struct Choices {
    pub(crate) order: Vec<u32>,
    pub(crate) chunks: Vec<Chunk>,
}

impl Choices {
    /// Items of `bytes` each; none where there are no bytes.
    pub(crate) fn new(how: &Plan, kind: Kind, hotness: &[u32], bytes: usize) -> Self {
        let order = if bytes == 0 { Vec::new() } else { by_hotness(hotness) };
        let item = |&i: &u32| {
            let uses = hotness[i as usize].into();
            let saves = how.granularity.transactions(Tier::Host, uses, bytes as u64);
            Item { bytes: bytes as u64, saves }
        };
        let chunks = chunks(kind, order.iter().map(item), how.chunk_bytes);
        Self { order, chunks }
    }

    fn chosen(&self, chunks: &[usize]) -> impl Iterator<Item = u32> {
        let items = |&chunk: &usize| -> Range<usize> { self.chunks[chunk].items.clone() };
        chunks.iter().flat_map(move |chunk| self.order[items(chunk)].iter().copied())
    }
}

/// How a tier is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// What comes first.
    pub placement: Placement,
    /// Z: bytes that are kept or not together.
    pub chunk_bytes: u64,
    /// Bytes of a line and of a read.
    pub granularity: Granularity,
}

impl Default for Plan {
    /// Chunks of 64 KiB. The paper's 100 MB suit tiers of tens of gigabytes.
    fn default() -> Self {
        let (placement, granularity) = (Placement::default(), Granularity::default());
        Self { placement, chunk_bytes: 64 << 10, granularity }
    }
}

/// What a tier keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Pages of neighbours.
    pub pages: Vec<u64>,
    /// Vertices whose rows are kept.
    pub vertices: Vec<u32>,
}
