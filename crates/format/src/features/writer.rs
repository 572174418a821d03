//! Writes rows and the checksums of their pages.

use tiergraph_core::Result;

use super::layout::RowLayout;
use crate::flat::FlatWriter;
use crate::manifest::FileEntry;
use crate::pages::PageWriter;
use crate::sink::BlockSink;

/// A writer of feature rows: streams them to a sink of blocks, and the CRC-32C of every page to a flat
/// file.
///
/// Holds one block. Rows are written in the order of their numbers, each copied once.
#[derive(Debug)]
pub struct FeatureWriter<S> {
    layout: RowLayout,
    pages: PageWriter<S>,
    rows: u64,
}

impl<S: BlockSink> FeatureWriter<S> {
    /// A writer of blocks of `block_bytes` (whole pages) to `sink`, and of checksums to `crcs`.
    pub fn new(layout: RowLayout, block_bytes: u32, sink: S, crcs: FlatWriter) -> Self {
        Self { layout, pages: PageWriter::new(block_bytes, sink, crcs), rows: 0 }
    }

    /// Appends a row's bytes, as [`RowLayout::encode`] made them.
    pub fn push(&mut self, row: &[u8]) -> Result<()> {
        self.pages.write_at(self.layout.offset(self.rows), row)?;
        self.rows += 1;
        Ok(())
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the last block; returns the sink, and the manifest's entry of the file of checksums.
    pub fn finish(self) -> Result<(S, FileEntry)> {
        self.pages.finish(self.layout.file_bytes(self.rows))
    }
}
