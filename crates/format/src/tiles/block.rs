//! Blocks of tiles: segments packed one behind the other, then the tables that say where they are.
//!
//! A block's payload is `tables_at, strips, segments` (u32 each, and the options' minimum gap),
//! the segments' bytes, then 16 bytes a strip and 8 bytes a segment. A segment is what one block
//! holds of one tile; a tile that meets the end of a block goes on in the next.

use tiergraph_core::{Error, ErrorKind, Result};

use super::{EncodedStrip, SLACK, TileOptions};
use crate::block::{self, HEADER_BYTES, Header, Layout};
use crate::sink::BlockSink;

/// Bytes of the payload's own header.
const PREFIX: usize = 16;
const STRIP_ENTRY: usize = 16;
const SEGMENT_ENTRY: usize = 8;
/// Strips begin at multiples of this; the index counts in it.
const ROW_UNIT: u64 = super::LANES as u64;

/// What one block holds of one tile.
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

/// Where a segment is: the object index of a tiles file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TilesIndex {
    /// Block number.
    pub block: u32,
    /// First byte in the block.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
    /// Arcs.
    pub arcs: u32,
    /// Number of the tile's columns.
    pub column_tile: u32,
    /// Rows of the strip.
    pub rows: u32,
    /// CRC-32C of the segment's bytes, for reading it without the rest of its block.
    pub crc32c: u32,
    /// First row of the strip, a multiple of 32.
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
}

impl TilesIndex {
    /// The segment, from `bytes` that begin at byte `at` of its block.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] when the bytes do not hold it and the slack behind it.
    pub fn segment<'a>(&self, bytes: &'a [u8], at: usize, k: u32) -> Result<Segment<'a>> {
        let begin = (self.offset as usize).checked_sub(at).ok_or_else(damaged)?;
        let len = self.len as usize;
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

/// Packs encoded strips into sealed blocks, in row order.
#[derive(Debug)]
pub struct TilesWriter<S> {
    sink: S,
    options: TileOptions,
    block: Vec<u8>,
    strips: Vec<(u64, u32, u32)>,
    segments: Vec<(u32, u32)>,
    arcs: u64,
    number: u64,
    index: Vec<TilesIndex>,
}

impl<S: BlockSink> TilesWriter<S> {
    /// A writer of blocks into `sink`.
    pub fn new(sink: S, options: TileOptions) -> Self {
        let mut writer = Self {
            sink,
            options,
            block: Vec::with_capacity(options.block_bytes),
            strips: Vec::new(),
            segments: Vec::new(),
            arcs: 0,
            number: 0,
            index: Vec::new(),
        };
        writer.start();
        writer
    }

    fn start(&mut self) {
        self.block.clear();
        self.block.resize(HEADER_BYTES + PREFIX, 0);
        self.strips.clear();
        self.segments.clear();
        self.arcs = 0;
    }

    /// Appends a strip; strips come in row order.
    pub fn push(&mut self, strip: &EncodedStrip) -> Result<()> {
        let ends = strip.groups.iter().skip(1).map(|g| g.0).chain([strip.bytes.len() as u32]);
        let mut open = None;
        for (&(begin, tile, arcs), end) in strip.groups.iter().zip(ends) {
            let bytes = &strip.bytes[begin as usize..end as usize];
            if !self.fits(bytes.len()) {
                self.flush()?;
                open = None;
            }
            if self.strips.last().is_none_or(|s| s.0 != strip.row_base) {
                self.strips.push((strip.row_base, strip.rows, 0));
            }
            if open != Some(tile) {
                self.open_segment(strip, tile);
                open = Some(tile);
            }
            self.block.extend_from_slice(bytes);
            self.arcs += u64::from(arcs);
            if let Some(entry) = self.index.last_mut() {
                entry.len += bytes.len() as u32;
                entry.arcs += arcs;
                entry.crc32c = crc32c::crc32c_append(entry.crc32c, bytes);
            }
        }
        Ok(())
    }

    fn open_segment(&mut self, strip: &EncodedStrip, tile: u32) {
        let offset = self.block.len() as u32;
        self.segments.push((tile, offset));
        if let Some(s) = self.strips.last_mut() {
            s.2 += 1;
        }
        self.index.push(TilesIndex {
            block: self.number as u32,
            offset,
            len: 0,
            arcs: 0,
            column_tile: tile,
            rows: strip.rows,
            crc32c: 0,
            row_base: strip.row_base,
        });
    }

    /// Whether a group of `len` bytes, perhaps of a new strip and segment, goes into this block.
    fn fits(&self, len: usize) -> bool {
        let tables =
            (self.strips.len() + 1) * STRIP_ENTRY + (self.segments.len() + 1) * SEGMENT_ENTRY;
        self.block.len() + len + tables.max(SLACK) <= self.options.block_bytes
    }

    fn flush(&mut self) -> Result<()> {
        if self.segments.is_empty() {
            return Ok(());
        }
        let tables_at = self.block.len();
        for &(row_base, rows, segments) in &self.strips {
            self.block.extend_from_slice(&row_base.to_le_bytes());
            self.block.extend_from_slice(&rows.to_le_bytes());
            self.block.extend_from_slice(&segments.to_le_bytes());
        }
        for &(tile, offset) in &self.segments {
            self.block.extend_from_slice(&tile.to_le_bytes());
            self.block.extend_from_slice(&offset.to_le_bytes());
        }
        let prefix = [
            tables_at as u32,
            self.strips.len() as u32,
            self.segments.len() as u32,
            self.options.min_gap,
        ];
        for (i, word) in prefix.iter().enumerate() {
            let at = HEADER_BYTES + 4 * i;
            self.block[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        let payload = (self.block.len() - HEADER_BYTES) as u32;
        self.block.resize(self.options.block_bytes, 0);
        let header = Header {
            layout: Layout::Tiles,
            flags: 0,
            number: self.number,
            first_vertex: self.strips[0].0,
            arcs: self.arcs as u32,
            payload_bytes: payload,
            items: self.segments.len() as u32,
        };
        header.write(&mut self.block);
        block::seal(&mut self.block);
        self.sink.put(&self.block)?;
        self.number += 1;
        self.start();
        Ok(())
    }

    /// Writes the last block; gives the sink back and the index of all segments.
    pub fn finish(mut self) -> Result<(S, Vec<TilesIndex>)> {
        self.flush()?;
        Ok((self.sink, self.index))
    }
}

/// A checked block, ready to be walked.
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
            || tables_at.max(tables_at + tables) > bytes.len()
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
        let mut strip = 0;
        let mut left = 0u32;
        let mut row = (0u64, 0u32);
        (0..this.segments).map(move |i| {
            while left == 0 {
                let at = this.tables_at + strip * STRIP_ENTRY;
                let entry = (strip < this.strips)
                    .then(|| {
                        Some((
                            u64_at(this.bytes, at)?,
                            u32_at(this.bytes, at + 8)?,
                            u32_at(this.bytes, at + 12)?,
                        ))
                    })
                    .flatten()
                    .ok_or_else(damaged)?;
                row = (entry.0, entry.1);
                left = entry.2;
                strip += 1;
            }
            left -= 1;
            this.segment(i, row)
        })
    }

    fn segment(&self, i: usize, (row_base, rows): (u64, u32)) -> Result<Segment<'a>> {
        let table = self.tables_at + self.strips * STRIP_ENTRY;
        let entry = |i: usize, field: usize| {
            u32_at(self.bytes, table + i * SEGMENT_ENTRY + field).ok_or_else(damaged)
        };
        let begin = entry(i, 4)? as usize;
        let end =
            if i + 1 < self.segments { entry(i + 1, 4)? as usize } else { self.tables_at };
        let column_base = u64::from(entry(i, 0)?) << self.columns_log2;
        let bytes = self.bytes.get(begin..end + SLACK).ok_or_else(damaged)?;
        if end > self.tables_at || end < begin || rows as usize > super::STRIP_ROWS {
            return Err(damaged());
        }
        Ok(Segment { row_base, rows, column_base, bytes, len: end - begin })
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::Format, "read a block of tiles")
        .expected("segments inside the block")
        .got("an entry that points outside it")
        .hint("tiergraph verify GRAPH")
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
