//! Writing a column of values in checksummed pages.

use std::collections::BTreeMap;

use tiergraph_core::Result;
use tiergraph_format::edges::{column_bytes, crc_file};
use tiergraph_format::features::Destination;
use tiergraph_format::flat::FlatWriter;
use tiergraph_format::manifest::FileEntry;
use tiergraph_format::pages::PageWriter;
use tiergraph_format::sink::FileSink;

/// Values that are collected before they are written.
const PIECE: usize = 1 << 13;

/// A writer of a column: takes a value for each arc, in their order.
pub(super) struct ColumnWriter {
    name: String,
    pages: PageWriter<FileSink>,
    width: usize,
    piece: Vec<u8>,
    /// Bytes that were written so far.
    written: u64,
}

impl ColumnWriter {
    /// The most bytes that it holds in memory: a block, and a piece.
    pub(super) fn bytes(block_bytes: u32) -> u64 {
        u64::from(block_bytes) + (PIECE * size_of::<u64>()) as u64
    }

    /// Creates the file `name`, for values of `width` bytes.
    pub(super) fn create(
        to: &mut dyn Destination,
        name: String,
        width: usize,
        block_bytes: u32,
    ) -> Result<Self> {
        let sink = to.sink(&name, block_bytes)?;
        let crcs = FlatWriter::create(&to.flat(&crc_file(&name))?)?;
        let pages = PageWriter::new(block_bytes, sink, crcs);
        let piece = Vec::with_capacity(PIECE * width);
        Ok(Self { name, pages, width, piece, written: 0 })
    }

    /// Bytes of a value.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Appends a value: the first [`width`](Self::width) bytes of `value`.
    pub(super) fn push(&mut self, value: &[u8]) -> Result<()> {
        self.piece.extend_from_slice(&value[..self.width]);
        if self.piece.len() < PIECE * self.width { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<()> {
        self.pages.write_at(self.written, &self.piece)?;
        self.written += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }

    /// Ends the file and enters it and its checksums among `files`.
    pub(super) fn finish(mut self, files: &mut BTreeMap<String, FileEntry>) -> Result<()> {
        self.flush()?;
        let bytes = column_bytes(self.written / self.width as u64, self.width);
        let (sink, crcs) = self.pages.finish(bytes)?;
        files.insert(crc_file(&self.name), crcs);
        files.insert(self.name, sink.finish()?);
        Ok(())
    }
}
