//! Packs lists into pages, pages into blocks.

use tiergraph_core::{Error, ErrorKind, Result};

use super::index::RowsIndex;
use super::list::{CHUNK, Chunks};
use super::packed::{Packed, PackedRows};
use super::page::{BEGAN_EARLIER, GOES_ON, HEADER_BYTES, MAGIC, PAGE_BYTES, ROOM, checksum};
use crate::le::put;
use crate::salt::Salt;
use crate::sink::BlockSink;

/// A list that spans pages begins on a page that has at least this much left.
const WORTH_BEGINNING: usize = 256;

/// A writer of `*.rows`. It takes vertices in ascending order; those without neighbours may be left out.
///
/// Holds one block and the index in memory.
#[derive(Debug)]
pub struct RowsWriter<S> {
    sink: S,
    block: Vec<u8>,
    block_bytes: usize,
    page: OpenPage,
    packed: PackedRows,
    index: RowsIndex,
    next_vertex: u64,
    arcs: u64,
}

#[derive(Debug, Default)]
struct OpenPage {
    first_vertex: u64,
    first_ordinal: u64,
    first_arc: u64,
    flags: u8,
    ends: Vec<u16>,
    lists: Vec<u8>,
}

impl OpenPage {
    fn room(&self) -> usize {
        ROOM - 2 * self.ends.len() - self.lists.len()
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Empties it and keeps its memory.
    fn clear(&mut self) {
        self.flags = 0;
        self.ends.clear();
        self.lists.clear();
    }

    fn end_list(&mut self) {
        self.ends.push(self.lists.len() as u16);
    }
}

impl<S: BlockSink> RowsWriter<S> {
    /// A writer that hands blocks of `block_bytes` (a multiple of 4 KiB) to `sink`.
    pub fn new(sink: S, block_bytes: u32) -> Self {
        let block_bytes = block_bytes as usize;
        Self {
            sink,
            block: Vec::with_capacity(block_bytes),
            block_bytes,
            page: OpenPage::default(),
            packed: PackedRows::default(),
            index: RowsIndex::default(),
            next_vertex: 0,
            arcs: 0,
        }
    }

    /// Adds `vertex`, above all before it, with its neighbours in ascending order.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for another order; the sink's errors.
    pub fn push(&mut self, vertex: u64, neighbors: &[u64]) -> Result<()> {
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        let done = packed.push(vertex, neighbors, u64::MAX).and_then(|()| {
            self.check_order(vertex)?;
            self.push_packed(&packed)
        });
        self.next_vertex = vertex.saturating_add(1);
        self.packed = packed;
        done
    }

    /// Adds lists that are packed already, of vertices above all before them.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_packed(&mut self, packed: &PackedRows) -> Result<()> {
        packed.for_each(|vertex, arcs, list| {
            self.check_order(vertex)?;
            self.next_vertex = vertex + 1;
            self.skip_to(vertex)?;
            match list {
                Packed::Long(chunks) => self.push_long(vertex, chunks),
                Packed::Short(bytes) => self.push_short(vertex, arcs, bytes),
            }
        })
    }

    fn push_short(&mut self, vertex: u64, arcs: usize, list: &[u8]) -> Result<()> {
        if list.len() + 2 > self.page.room() {
            self.close_page()?;
        }
        self.open_page(vertex, 0);
        self.page.lists.extend_from_slice(list);
        self.page.end_list();
        self.arcs += arcs as u64;
        Ok(())
    }

    /// Writes what is left and returns the sink, the index and the number of arcs.
    pub fn finish(mut self) -> Result<(S, RowsIndex, u64)> {
        self.close_page()?;
        if !self.block.is_empty() {
            self.sink.put(&self.block)?;
        }
        Ok((self.sink, self.index, self.arcs))
    }

    /// Pieces of whole chunks, as many as each page takes.
    fn push_long(&mut self, vertex: u64, chunks: &Chunks) -> Result<()> {
        if self.page.room() < WORTH_BEGINNING {
            self.close_page()?;
        }
        let all = chunks.count();
        let mut from = 0;
        while from < all {
            let to = self.last_that_fits(chunks, from);
            if to == from {
                self.close_page()?;
                continue;
            }
            let ordinal = (from * CHUNK) as u64;
            self.open_page(vertex, ordinal);
            if from > 0 {
                self.page.flags |= BEGAN_EARLIER;
            }
            chunks.encode(from, to, true, &mut self.page.lists);
            self.page.end_list();
            let n = chunks.neighbors_before(to) - chunks.neighbors_before(from);
            self.arcs += n as u64;
            if to < all {
                self.page.flags |= GOES_ON;
                self.close_page()?;
            }
            from = to;
        }
        Ok(())
    }

    /// The most chunks after `from` that fit on the open page, by bisection.
    fn last_that_fits(&self, chunks: &Chunks, from: usize) -> usize {
        let room = self.page.room();
        let (mut fits, mut over) = (from, chunks.count() + 1);
        while fits + 1 < over {
            let middle = fits.midpoint(over);
            if chunks.encoded_bytes(from, middle, true) + 2 <= room {
                fits = middle;
            } else {
                over = middle;
            }
        }
        fits
    }

    /// Gives the vertices up to `vertex`, which have no neighbours, empty lists, or ends the page
    /// if there are more of them than it has room for.
    fn skip_to(&mut self, vertex: u64) -> Result<()> {
        if self.page.is_empty() {
            return Ok(());
        }
        let listed = self.page.first_vertex + self.page.ends.len() as u64;
        let skipped = vertex - listed;
        if skipped.saturating_mul(2) > self.page.room() as u64 {
            return self.close_page();
        }
        for _ in 0..skipped {
            self.page.end_list();
        }
        Ok(())
    }

    fn open_page(&mut self, vertex: u64, ordinal: u64) {
        if self.page.is_empty() {
            self.page.first_vertex = vertex;
            self.page.first_ordinal = ordinal;
            self.page.first_arc = self.arcs;
        }
    }

    fn close_page(&mut self) -> Result<()> {
        if self.page.is_empty() {
            return Ok(());
        }
        let number = self.index.len() as u64;
        self.index.push(self.page.first_vertex, self.page.first_ordinal);
        let at = self.block.len();
        self.block.resize(at + PAGE_BYTES, 0);
        self.page.write(&mut self.block[at..], number, self.sink.salt());
        self.page.clear();
        if self.block.len() + PAGE_BYTES > self.block_bytes {
            self.sink.put(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }

    fn check_order(&self, vertex: u64) -> Result<()> {
        if vertex >= self.next_vertex && vertex < u64::MAX {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Input, "write the neighbours of vertex")
            .object(vertex)
            .expected(format!("a vertex from {}", self.next_vertex))
            .got(vertex))
    }
}

impl OpenPage {
    fn write(&self, out: &mut [u8], number: u64, salt: Salt) {
        out[4] = MAGIC;
        out[5] = self.flags;
        put(out, 6, (self.ends.len() as u16).to_le_bytes());
        put(out, 8, self.first_vertex.to_le_bytes());
        put(out, 16, self.first_arc.to_le_bytes());
        put(out, 24, self.first_ordinal.to_le_bytes());
        for (i, end) in self.ends.iter().enumerate() {
            put(out, HEADER_BYTES + 2 * i, end.to_le_bytes());
        }
        let body = HEADER_BYTES + 2 * self.ends.len();
        out[body..body + self.lists.len()].copy_from_slice(&self.lists);
        let crc = checksum(out, number, salt);
        put(out, 0, crc.to_le_bytes());
    }
}
