//! Writes rows and the checksums of their pages.

use tiergraph_core::Result;

use super::layout::RowLayout;
use super::page::PAGE_BYTES;
use crate::flat::FlatWriter;
use crate::manifest::FileEntry;
use crate::sink::BlockSink;

/// Streams rows to a sink of blocks, and the CRC-32C of every page to a flat file.
///
/// Holds one block. Rows are written in the order of their numbers, each copied once.
#[derive(Debug)]
pub struct FeatureWriter<S> {
    layout: RowLayout,
    sink: S,
    crcs: FlatWriter,
    block: Vec<u8>,
    blocks: u64,
    rows: u64,
}

impl<S: BlockSink> FeatureWriter<S> {
    /// A writer of blocks of `block_bytes`, whole pages.
    pub fn new(layout: RowLayout, block_bytes: u32, sink: S, crcs: FlatWriter) -> Self {
        let block = vec![0; block_bytes as usize];
        Self { layout, sink, crcs, block, blocks: 0, rows: 0 }
    }

    /// Appends a row's bytes, as [`RowLayout::encode`] made them.
    pub fn push(&mut self, mut row: &[u8]) -> Result<()> {
        let size = self.block.len();
        let mut offset = self.layout.offset(self.rows);
        while !row.is_empty() {
            let block = offset / size as u64;
            while self.blocks < block {
                self.put_block(size)?;
            }
            let at = (offset % size as u64) as usize;
            let (now, later) = row.split_at(row.len().min(size - at));
            self.block[at..at + now.len()].copy_from_slice(now);
            offset += now.len() as u64;
            row = later;
        }
        self.rows += 1;
        Ok(())
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the last block; the sink, and what the manifest records about the checksums.
    pub fn finish(mut self) -> Result<(S, FileEntry)> {
        let bytes = self.layout.file_bytes(self.rows);
        let rest = bytes - self.blocks * self.block.len() as u64;
        if rest > 0 {
            self.put_block(rest as usize)?;
        }
        Ok((self.sink, self.crcs.finish()?))
    }

    fn put_block(&mut self, bytes: usize) -> Result<()> {
        let block = &self.block[..bytes];
        let crcs: Vec<u32> = block.chunks(PAGE_BYTES).map(crc32c::crc32c).collect();
        self.crcs.extend(&crcs)?;
        self.sink.put(block)?;
        self.block.fill(0);
        self.blocks += 1;
        Ok(())
    }
}
