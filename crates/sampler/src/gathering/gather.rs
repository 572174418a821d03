//! Feature rows of the nodes of batches, from memory and from storage, into the batches' own memory.
//!
//! Resident rows are copied while the others are being read. Reads are of pages: rows on one page share
//! its read, within a batch and among all batches of a window, and pages side by side share one read. A
//! page that arrives is copied from at once, for every batch that requests a row on it, so that a window
//! holds no pages, however many it reads.

use std::cell::RefCell;

use tiergraph_core::Result;
use tiergraph_graph::{Features, PageReader, PagesRead};
use tiergraph_mem::prefetch_all;

use crate::gathering::fragments::Fragments;
use crate::gathering::matrix::{Delivery, Matrix};
use crate::options::Sharing;
use crate::residency::rows::RowStore;

/// Rows that are copied between two polls.
const PIECE: usize = 64;
/// How many rows ahead memory is prefetched.
const AHEAD: usize = 4;

/// Counts of what gathering read and copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GatherReads {
    /// Pages, reads and bytes: each page once, where reads are shared.
    pub read: PagesRead,
    /// Rows that were not in memory, and so were read.
    pub missed_rows: u64,
    /// Bytes of rows that were in memory.
    pub bytes_host: u64,
}

impl std::ops::AddAssign for GatherReads {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.missed_rows += other.missed_rows;
        self.bytes_host += other.bytes_host;
    }
}

/// Copies or reads the feature rows of each batch's nodes, into a matrix for each batch.
///
/// # Errors
/// When the system refuses the memory; errors of reading.
pub(crate) fn gather(
    store: &RowStore,
    features: &Features,
    reader: &mut PageReader,
    nodes: &[&[u32]],
    sharing: Sharing,
    delivery: Delivery,
) -> Result<(Vec<Matrix>, GatherReads)> {
    let row_bytes = features.row_bytes();
    let matrices = nodes.iter().map(|nodes| Matrix::stored(features, nodes.len()));
    let mut matrices = matrices.collect::<Result<Vec<Matrix>>>()?;
    let mut reads = GatherReads::default();
    let mut misses = Vec::new();
    for (number, nodes) in (0u64..).zip(nodes) {
        let missed = (0u64..).zip(*nodes).filter(|(_, node)| !store.contains(**node));
        misses.extend(missed.map(|(i, &node)| (node, number << 32 | i)));
        reads.bytes_host += (nodes.len() * row_bytes) as u64;
    }
    reads.missed_rows = misses.len() as u64;
    reads.bytes_host -= reads.missed_rows * row_bytes as u64;
    let fragments = Fragments::new(features, misses.into_iter());
    let mut hits = Hits { store, nodes, batch: 0, row: 0 };
    let to = RefCell::new(&mut matrices[..]);
    let copy = |target: u64, at: usize, part: &[u8]| {
        let at = (target as u32) as usize * row_bytes + at;
        let rows = &mut to.borrow_mut()[(target >> 32) as usize].bytes;
        rows[at..at + part.len()].copy_from_slice(part);
    };
    let meanwhile = || Ok(hits.copy(&mut to.borrow_mut(), PIECE));
    reads.read = fragments.read(features, reader, sharing, meanwhile, copy)?;
    while hits.copy(&mut to.borrow_mut(), usize::MAX) {}
    if delivery == Delivery::Floats {
        let floats = matrices.into_iter().map(|matrix| matrix.into_floats(features));
        matrices = floats.collect::<Result<_>>()?;
    }
    Ok((matrices, reads))
}

/// A cursor that copies the resident rows of all batches, a piece at a time.
struct Hits<'a> {
    store: &'a RowStore,
    /// The nodes of each batch.
    nodes: &'a [&'a [u32]],
    batch: usize,
    row: usize,
}

impl Hits<'_> {
    /// Copies those of the next `most` rows that are resident; returns whether more rows are left.
    fn copy(&mut self, to: &mut [Matrix], most: usize) -> bool {
        let Some(nodes) = self.nodes.get(self.batch) else { return false };
        let (end, row_bytes) =
            (nodes.len().min(self.row.saturating_add(most)), self.store.row_bytes());
        let rows = &mut to[self.batch].bytes[self.row * row_bytes..end * row_bytes];
        copy_kept(self.store, &nodes[self.row..end], rows);
        self.row = end;
        if end == nodes.len() {
            (self.batch, self.row) = (self.batch + 1, 0);
        }
        self.batch < self.nodes.len()
    }
}

/// Copies the resident rows of `vertices`, and leaves gaps for the others.
pub fn copy_kept(store: &RowStore, vertices: &[u32], rows: &mut [u8]) {
    let prefetch = |vertex: u32| store.get(vertex).into_iter().for_each(prefetch_all);
    vertices.iter().take(AHEAD).for_each(|&vertex| prefetch(vertex));
    let row_bytes = store.row_bytes();
    for (i, (&vertex, to)) in vertices.iter().zip(rows.chunks_exact_mut(row_bytes)).enumerate() {
        if let Some(&ahead) = vertices.get(i + AHEAD) {
            prefetch(ahead);
        }
        if let Some(row) = store.get(vertex) {
            to.copy_from_slice(row);
        }
    }
}
