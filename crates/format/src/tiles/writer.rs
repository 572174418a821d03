//! Packs encoded strips into sealed blocks.
//!
//! A block is closed when the next group does not fit, so it is empty by less than one group, which is
//! at most about a quarter of a 1 MiB block and far less but for hubs. Resident: one block, and 40 bytes
//! a segment.

use tiergraph_core::{Error, ErrorKind, Result, crc32c};

use super::block::{PREFIX, SEGMENT_ENTRY, STRIP_ENTRY};
use super::index::ROW_UNIT;
use super::{EncodedStrip, MAX_VERTICES, SLACK, STRIP_ROWS, TileOptions, TilesIndex};
use crate::block::{self, HEADER_BYTES, Header, Layout};
use crate::le::put;
use crate::sink::BlockSink;

/// A writer of tiles: packs encoded strips into sealed blocks, in row order.
#[derive(Debug)]
pub struct TilesWriter<S> {
    sink: S,
    options: TileOptions,
    block: Vec<u8>,
    /// First row, rows, segments.
    strips: Vec<(u64, u32, u32)>,
    /// Column tile, first byte in the block.
    segments: Vec<(u32, u32)>,
    arcs: u64,
    number: u64,
    /// The row behind the last strip.
    next_row: u64,
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
            next_row: 0,
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
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a strip that the format cannot hold there; the sink's errors.
    pub fn push(&mut self, strip: &EncodedStrip) -> Result<()> {
        self.check_place(strip)?;
        let ends = strip.groups.iter().skip(1).map(|g| g.0).chain([strip.bytes.len() as u32]);
        let mut open = None;
        for (&(begin, tile, arcs), end) in strip.groups.iter().zip(ends) {
            let bytes = &strip.bytes[begin as usize..end as usize];
            if !self.fits(bytes.len()) {
                self.flush()?;
                open = None;
            }
            if !self.fits(bytes.len()) {
                return Err(refused(strip)
                    .expected(format!("groups that fit blocks of {}", self.options.block_bytes))
                    .got(format!("one of {} bytes", bytes.len())));
            }
            if self.strips.last().is_none_or(|s| s.0 != strip.row_base) {
                self.strips.push((strip.row_base, strip.rows, 0));
            }
            if open != Some(tile) {
                self.open_segment(strip, tile);
                open = Some(tile);
            }
            self.append(bytes, arcs);
        }
        Ok(())
    }

    fn check_place(&mut self, strip: &EncodedStrip) -> Result<()> {
        let begin = strip.row_base;
        let end = begin.saturating_add(u64::from(strip.rows));
        if begin < self.next_row || !begin.is_multiple_of(ROW_UNIT) || end > MAX_VERTICES {
            let next = self.next_row;
            let rows = format!("rows from {next} to {MAX_VERTICES}, at a multiple of {ROW_UNIT}");
            return Err(refused(strip).expected(rows).got(format!("rows {begin} to {end}")));
        }
        if strip.rows as usize > STRIP_ROWS {
            let most = format!("at most {STRIP_ROWS} rows");
            return Err(refused(strip).expected(most).got(strip.rows));
        }
        self.next_row = end;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8], arcs: u32) {
        self.block.extend_from_slice(bytes);
        self.arcs += u64::from(arcs);
        if let Some(entry) = self.index.last_mut() {
            entry.len += bytes.len() as u32;
            entry.arcs += arcs;
            entry.crc32c = crc32c::crc32c_append(entry.crc32c, bytes);
        }
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
        let Some(&(first_vertex, ..)) = self.strips.first() else { return Ok(()) };
        self.write_tables();
        let header = Header {
            layout: Layout::Tiles,
            flags: 0,
            number: self.number,
            first_vertex,
            arcs: self.arcs as u32,
            payload_bytes: (self.block.len() - HEADER_BYTES) as u32,
            items: self.segments.len() as u32,
        };
        self.block.resize(self.options.block_bytes, 0);
        header.write(&mut self.block);
        block::seal(&mut self.block, self.sink.salt());
        self.sink.put(&self.block)?;
        self.number += 1;
        self.start();
        Ok(())
    }

    /// The tables, behind the segments, and the payload's prefix, which says where they are.
    fn write_tables(&mut self) {
        let prefix = [
            self.block.len() as u32,
            self.strips.len() as u32,
            self.segments.len() as u32,
            self.options.min_gap,
        ];
        for &(row_base, rows, segments) in &self.strips {
            self.block.extend_from_slice(&row_base.to_le_bytes());
            self.block.extend_from_slice(&rows.to_le_bytes());
            self.block.extend_from_slice(&segments.to_le_bytes());
        }
        for &(tile, offset) in &self.segments {
            self.block.extend_from_slice(&tile.to_le_bytes());
            self.block.extend_from_slice(&offset.to_le_bytes());
        }
        for (i, word) in prefix.into_iter().enumerate() {
            put(&mut self.block, HEADER_BYTES + 4 * i, word.to_le_bytes());
        }
    }

    /// Writes the last block; gives the sink back and the index of all segments.
    pub fn finish(mut self) -> Result<(S, Vec<TilesIndex>)> {
        self.flush()?;
        Ok((self.sink, self.index))
    }
}

fn refused(strip: &EncodedStrip) -> Error {
    Error::new(ErrorKind::Input, "write the strip at row").object(strip.row_base)
}
