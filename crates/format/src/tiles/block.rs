//! Blocks of tiles: segments packed one behind the other, then the tables that say where they are.
//!
//! A block's payload is `tables_at, strips, segments` (u32 each, and the options' minimum gap),
//! the segments' bytes, then 16 bytes a strip and 8 bytes a segment. A segment is what one block
//! holds of one tile; a tile that meets the end of a block goes on in the next.

use tiergraph_core::{Error, ErrorKind, Result};

use super::{SLACK, STRIP_ROWS, TileOptions};
use crate::block::HEADER_BYTES;

/// Bytes of the payload's own header.
pub(super) const PREFIX: usize = 16;
pub(super) const STRIP_ENTRY: usize = 16;
pub(super) const SEGMENT_ENTRY: usize = 8;

/// The part of one tile that lies in one block.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// First row of the strip.
    pub row_base: u64,
    /// Rows of the strip.
    pub rows: u32,
    /// First column of the tile.
    pub column_base: u64,
    /// The groups, and at least [`SLACK`] bytes behind them that a decoder may read.
    pub bytes: &'a [u8],
    /// Bytes of the groups.
    pub len: usize,
}

/// The entry of a strip in a block's table: its rows, and its part of the block.
#[derive(Debug, Clone, Copy, Default)]
struct Strip {
    row_base: u64,
    rows: u32,
    /// Its segments in the block.
    segments: u32,
}

/// A parsed block of tiles, whose segments can be visited.
#[derive(Debug, Clone, Copy)]
pub struct TilesBlock<'a> {
    bytes: &'a [u8],
    tables_at: usize,
    strips: usize,
    segments: usize,
    columns_log2: u32,
}

impl<'a> TilesBlock<'a> {
    /// Reads the tables of a block whose checksum is already verified.
    pub fn parse(bytes: &'a [u8], options: &TileOptions) -> Result<Self> {
        let bad = |what: &str| {
            Error::new(ErrorKind::Format, "read a block of tiles")
                .expected("tables inside the block")
                .got(what)
        };
        let word = |i: usize| u32_at(bytes, HEADER_BYTES + 4 * i).map(|w| w as usize);
        let (Some(tables_at), Some(strips), Some(segments), Some(min_gap)) =
            (word(0), word(1), word(2), word(3))
        else {
            return Err(bad("a block shorter than its header"));
        };
        let tables = strips * STRIP_ENTRY + segments * SEGMENT_ENTRY;
        if tables_at < HEADER_BYTES + PREFIX
            || tables_at + tables > bytes.len()
            || tables_at + SLACK > bytes.len()
        {
            return Err(bad("tables that end outside it"));
        }
        if min_gap != options.min_gap as usize {
            return Err(bad("another minimum gap than the manifest's"));
        }
        Ok(Self { bytes, tables_at, strips, segments, columns_log2: options.columns_log2 })
    }

    /// The segments, in the order of rows and then columns.
    pub fn segments(&self) -> impl Iterator<Item = Result<Segment<'a>>> + 'a {
        let this = *self;
        let (mut next, mut strip) = (0, Strip::default());
        (0..this.segments).map(move |i| {
            while strip.segments == 0 {
                strip = this.strip(next).ok_or_else(damaged)?;
                next += 1;
            }
            strip.segments -= 1;
            this.segment(i, strip)
        })
    }

    fn strip(&self, i: usize) -> Option<Strip> {
        let at = self.tables_at + i * STRIP_ENTRY;
        let row_base = u64_at(self.bytes, at)?;
        let (rows, segments) = (u32_at(self.bytes, at + 8)?, u32_at(self.bytes, at + 12)?);
        (i < self.strips).then_some(Strip { row_base, rows, segments })
    }

    fn segment(&self, i: usize, strip: Strip) -> Result<Segment<'a>> {
        let Strip { row_base, rows, .. } = strip;
        let table = self.tables_at + self.strips * STRIP_ENTRY;
        let entry = |i: usize, field: usize| {
            u32_at(self.bytes, table + i * SEGMENT_ENTRY + field).ok_or_else(damaged)
        };
        let begin = entry(i, 4)? as usize;
        let end = if i + 1 < self.segments { entry(i + 1, 4)? as usize } else { self.tables_at };
        let column_base = u64::from(entry(i, 0)?) << self.columns_log2;
        let bytes = self.bytes.get(begin..end + SLACK).ok_or_else(damaged)?;
        if end > self.tables_at || end < begin || rows as usize > STRIP_ROWS {
            return Err(damaged());
        }
        Ok(Segment { row_base, rows, column_base, bytes, len: end - begin })
    }
}

pub(super) fn damaged() -> Error {
    Error::new(ErrorKind::Format, "read a block of tiles")
        .expected("segments inside the block")
        .got("an entry that points outside it")
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
