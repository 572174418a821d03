//! Writes rows, the checksums of their pages and their own.

use std::collections::BTreeMap;

use tiergraph_core::Result;

use super::addition::Destination;
use super::layout::RowLayout;
use super::names::FeatureFiles;
use super::row_crc::RowCrcWriter;
use crate::flat::FlatWriter;
use crate::manifest::FileEntry;
use crate::pages::PageWriter;
use crate::sink::{BlockSink, FileSink};

/// A writer of feature rows: streams them to a sink of blocks, and the CRC-32C of every page and of
/// every row to a flat file each.
///
/// Holds one block. Rows are written in the order of their numbers, each copied once.
#[derive(Debug)]
pub struct FeatureWriter<S> {
    layout: RowLayout,
    pages: PageWriter<S>,
    rows: u64,
    row_crcs: RowCrcWriter,
}

/// What a [`FeatureWriter`] has written.
#[derive(Debug)]
pub struct WrittenFeatures<S> {
    /// The sink that has the rows.
    pub sink: S,
    /// The manifest's entry of the file of the pages' checksums.
    pub crc: FileEntry,
    /// The manifest's entry of the file of the rows' checksums.
    pub row_crc: FileEntry,
}

impl FeatureWriter<FileSink> {
    /// A writer to the new files `files` of `to`, in blocks of `block_bytes`.
    ///
    /// # Errors
    /// Those of [`Destination`].
    pub fn create(
        to: &mut dyn Destination,
        files: &FeatureFiles,
        layout: RowLayout,
        block_bytes: u32,
    ) -> Result<Self> {
        let sink = to.sink(&files.rows, block_bytes)?;
        let crcs = FlatWriter::create(&to.flat(&files.crc)?)?;
        let row_crcs = RowCrcWriter::create(to, files)?;
        Ok(Self::new(layout, block_bytes, sink, crcs, row_crcs))
    }

    /// Writes what is left; returns the manifest's entry of each of `files`, by name.
    ///
    /// # Errors
    /// I/O errors.
    pub fn finish_files(self, files: &FeatureFiles) -> Result<BTreeMap<String, FileEntry>> {
        let WrittenFeatures { sink, crc, row_crc } = self.finish()?;
        Ok([
            (files.rows.clone(), sink.finish()?),
            (files.crc.clone(), crc),
            (files.row_crc.clone(), row_crc),
        ]
        .into())
    }
}

impl<S: BlockSink> FeatureWriter<S> {
    /// A writer of blocks of `block_bytes` (whole pages) to `sink`, of the pages' checksums to `crcs`,
    /// and of the rows' checksums to `row_crcs`.
    pub fn new(
        layout: RowLayout,
        block_bytes: u32,
        sink: S,
        crcs: FlatWriter,
        row_crcs: RowCrcWriter,
    ) -> Self {
        Self { layout, pages: PageWriter::new(block_bytes, sink, crcs), rows: 0, row_crcs }
    }

    /// Appends a row's bytes, as [`RowLayout::encode`] made them.
    pub fn push(&mut self, row: &[u8]) -> Result<()> {
        self.pages.write_at(self.layout.offset(self.rows), row)?;
        // While the row is in the cache.
        self.row_crcs.push(row)?;
        self.rows += 1;
        Ok(())
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the last block, and the last checksums.
    pub fn finish(self) -> Result<WrittenFeatures<S>> {
        let (sink, crc) = self.pages.finish(self.layout.file_bytes(self.rows))?;
        Ok(WrittenFeatures { sink, crc, row_crc: self.row_crcs.finish()? })
    }
}
