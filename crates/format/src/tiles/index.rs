//! `tiles.index`: where each segment is, 32 bytes a segment, kept in memory while a graph is open.

use tiergraph_core::{Result, crc32c};

use super::block::{damaged, u32_at};
use super::{LANES, SLACK, STRIP_ROWS, Segment};

/// Strips begin at multiples of this; the index counts in it.
pub(super) const ROW_UNIT: u64 = LANES as u64;

/// An entry of `tiles.index`: where one segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TilesIndex {
    /// The number of the block that holds the segment.
    pub block: u32,
    /// The segment's first byte in that block.
    pub offset: u32,
    /// Bytes of the segment.
    pub len: u32,
    /// Arcs of the segment.
    pub arcs: u32,
    /// The number of the segment's tile: its first column divided by the columns of a tile.
    pub column_tile: u32,
    /// Rows of the segment's strip.
    pub rows: u32,
    /// CRC-32C of the segment's bytes, for reading it without the rest of its block.
    pub crc32c: u32,
    /// First row of the segment's strip, a multiple of 32.
    pub row_base: u64,
}

impl TilesIndex {
    /// Bytes of one entry in `tiles.index`.
    pub const BYTES: usize = 32;

    /// The entry as it stands in `tiles.index`.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let row_base = (self.row_base / ROW_UNIT) as u32;
        let words = [
            self.block,
            self.offset,
            self.len,
            self.arcs,
            self.column_tile,
            self.rows,
            self.crc32c,
            row_base,
        ];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads an entry; `None` unless it has 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        Some(Self {
            block: u32_at(bytes, 0)?,
            offset: u32_at(bytes, 4)?,
            len: u32_at(bytes, 8)?,
            arcs: u32_at(bytes, 12)?,
            column_tile: u32_at(bytes, 16)?,
            rows: u32_at(bytes, 20)?,
            crc32c: u32_at(bytes, 24)?,
            row_base: u64::from(u32_at(bytes, 28)?) * ROW_UNIT,
        })
    }

    /// The segment, from `bytes` that begin at byte `at` of its block; its tile has `2^k` columns.
    ///
    /// # Errors
    /// [`ErrorKind::Format`](tiergraph_core::ErrorKind::Format) when the bytes do not hold it and
    /// the slack behind it, or when its strip has more rows than one can have.
    pub fn segment<'a>(&self, bytes: &'a [u8], at: usize, k: u32) -> Result<Segment<'a>> {
        let begin = (self.offset as usize).checked_sub(at).ok_or_else(damaged)?;
        self.segment_at(bytes, begin, k)
    }

    /// The segment, which begins at byte `begin` of `bytes`; its tile has `2^k` columns.
    ///
    /// # Errors
    /// Those of [`segment`](Self::segment).
    pub fn segment_at<'a>(&self, bytes: &'a [u8], begin: usize, k: u32) -> Result<Segment<'a>> {
        let len = self.len as usize;
        if self.rows as usize > STRIP_ROWS {
            return Err(damaged());
        }
        Ok(Segment {
            row_base: self.row_base,
            rows: self.rows,
            column_base: u64::from(self.column_tile) << k,
            bytes: bytes.get(begin..begin + len + SLACK).ok_or_else(damaged)?,
            len,
        })
    }

    /// Whether the bytes of `segment` are those that were written.
    pub fn is_intact(&self, segment: &Segment<'_>) -> bool {
        crc32c::crc32c(&segment.bytes[..segment.len]) == self.crc32c
    }
}
