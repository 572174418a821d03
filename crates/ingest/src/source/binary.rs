//! Pairs of little-endian integers without a header: `.u32` and `.u64`.
//!
//! What engines exchange when they measure speed: reading costs one copy of each chunk into columns.

use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_kernels::widest;

use super::batch::VertexId;
use super::chunks::{ChunkSpec, Chunks, file_bytes, next_chunk};
use super::{EdgeBatch, EdgeSource, SizeHint};

/// The width of the ids of a pair file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 4 bytes an id.
    U32,
    /// 8 bytes an id.
    U64,
}

impl Width {
    fn pair_bytes(self) -> usize {
        match self {
            Self::U32 => 8,
            Self::U64 => 16,
        }
    }
}

/// Streams the edges of a pair file.
pub struct PairSource {
    spec: ChunkSpec,
    width: Width,
    bytes: u64,
    chunks: Option<Chunks>,
    chunk: Vec<u8>,
}

impl PairSource {
    /// Opens a pair file.
    ///
    /// # Errors
    /// An I/O error, or an input error where the length is not a whole number of pairs.
    pub fn open(path: &Path, width: Width) -> Result<Self> {
        let bytes = file_bytes(path)?;
        let pair = width.pair_bytes();
        if !bytes.is_multiple_of(pair as u64) {
            return Err(Error::new(ErrorKind::Input, "read")
                .object(path.display())
                .expected(format!("pairs of {pair} bytes"))
                .got(format!("{bytes} bytes")));
        }
        let spec = ChunkSpec::records(path, pair, 0, bytes);
        Ok(Self { spec, width, bytes, chunks: None, chunk: Vec::new() })
    }
}

impl EdgeSource for PairSource {
    fn describe(&self) -> String {
        self.spec.path.display().to_string()
    }

    fn size_hint(&self) -> SizeHint {
        let edges = self.bytes / self.width.pair_bytes() as u64;
        SizeHint { edges: Some(edges), vertices: None, bytes: Some(self.bytes) }
    }

    fn directed(&self) -> Option<bool> {
        None
    }

    fn weighted(&self) -> bool {
        false
    }

    fn can_restart(&self) -> bool {
        true
    }

    fn reads_again(&self) -> bool {
        true
    }

    fn restart(&mut self) -> Result<()> {
        self.chunks = None;
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        batch.weights = None;
        if !next_chunk(&mut self.chunks, &self.spec, &mut self.chunk)? {
            return Ok(false);
        }
        match self.width {
            Width::U32 => widest(|| split_pairs(&self.chunk, batch, u32::from_le_bytes)),
            Width::U64 => widest(|| split_pairs(&self.chunk, batch, u64::from_le_bytes)),
        }
        Ok(true)
    }

    fn vertices(&mut self) -> Result<Option<Vec<u64>>> {
        Ok(None)
    }
}

/// Interleaved ids of `N` bytes to columns.
#[inline(always)]
fn split_pairs<I: VertexId, const N: usize>(
    bytes: &[u8],
    batch: &mut EdgeBatch,
    read: impl Fn([u8; N]) -> I,
) {
    let (src, dst) = I::columns(batch);
    let (ids, _) = bytes.as_chunks::<N>();
    let (pairs, _) = ids.as_chunks::<2>();
    src.extend(pairs.iter().map(|pair| read(pair[0])));
    dst.extend(pairs.iter().map(|pair| read(pair[1])));
}
