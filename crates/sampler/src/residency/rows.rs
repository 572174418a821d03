//! Feature rows that stay in memory.

use tiergraph_cache::RankedSet;
use tiergraph_core::Result;
use tiergraph_graph::{Features, Graph, PageReader};
use tiergraph_mem::{AlignedBuf, Reservation};

use crate::gathering::fragments::Fragments;

/// Rows of one feature file in memory, in the type in which they are stored, one after the other.
///
/// Rows are kept, not pages: hot rows lie apart from each other unless the file was re-laid.
#[derive(Debug)]
pub struct RowStore {
    set: RankedSet,
    bytes: AlignedBuf,
    row_bytes: usize,
    _held: Reservation,
}

impl RowStore {
    /// Reads the rows of `vertices` into memory.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`](tiergraph_core::ErrorKind::Budget) where they do not fit, and what
    /// reading gives.
    pub fn load(
        graph: &Graph,
        features: &Features,
        vertices: impl IntoIterator<Item = u32>,
    ) -> Result<Self> {
        let universe = graph.manifest().vertices.max(features.rows());
        let set = RankedSet::new(universe, vertices.into_iter().map(u64::from));
        let row_bytes = features.row_bytes();
        let bytes = set.len() * row_bytes as u64;
        let held = graph
            .memory()
            .reserve(bytes + set.resident_bytes(), "the feature rows that stay in memory")?;
        let mut store =
            Self { set, bytes: AlignedBuf::zeroed(bytes as usize)?, row_bytes, _held: held };
        if !store.set.is_empty() {
            let wanted = store.set.iter().map(|vertex| vertex as u32).zip(0..);
            let fragments = Fragments::new(features, wanted);
            fragments.read_into(features, &mut PageReader::new(graph)?, &mut store.bytes)?;
        }
        Ok(store)
    }

    /// Bytes that a store of `kept` rows takes, for a graph of `vertices` vertices.
    pub fn bytes_of(kept: u64, vertices: u64, row_bytes: usize) -> u64 {
        RankedSet::bytes_below(vertices) + kept * row_bytes as u64
    }

    /// The bytes of a vertex's row; `None` if it is not kept.
    #[inline]
    pub fn get(&self, vertex: u32) -> Option<&[u8]> {
        let at = self.set.rank(vertex.into())? as usize * self.row_bytes;
        Some(&self.bytes[at..at + self.row_bytes])
    }

    /// All rows that are kept, in the order of their vertices.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len() as usize * self.row_bytes]
    }

    /// Whether a vertex's row is kept.
    #[inline]
    pub fn contains(&self, vertex: u32) -> bool {
        self.set.contains(vertex.into())
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// The number of rows that are kept.
    pub fn len(&self) -> u64 {
        self.set.len()
    }

    /// Whether no row is kept.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}
