//! The checksum of each row: writes them, and compares rows with them.

use std::ops::Range;
use std::path::PathBuf;

use tiergraph_core::{Error, ErrorKind, Result, crc32c};

use super::addition::Destination;
use super::layout::{FeaturesEntry, RowLayout};
use super::names::FeatureFiles;
use crate::flat::{self, FlatWriter};
use crate::manifest::FileEntry;

/// Checksums that are handed to their file at a time.
const AT_ONCE: usize = 1 << 10;

/// A writer of the checksum of each row: CRC-32C of the row's bytes, without the padding behind it.
#[derive(Debug)]
pub struct RowCrcWriter {
    file: FlatWriter,
    /// Checksums of the last rows, which are not in the file yet.
    latest: Vec<u32>,
}

impl RowCrcWriter {
    /// A writer to `file`.
    pub fn new(file: FlatWriter) -> Self {
        Self { file, latest: Vec::with_capacity(AT_ONCE) }
    }

    /// A writer to the new one of `files` in `to`.
    ///
    /// # Errors
    /// Those of [`Destination`].
    pub fn create(to: &mut dyn Destination, files: &FeatureFiles) -> Result<Self> {
        Ok(Self::new(FlatWriter::create(&to.flat(&files.row_crc)?)?))
    }

    /// Appends the checksum of `row`, the next row's bytes.
    ///
    /// # Errors
    /// I/O errors.
    pub fn push(&mut self, row: &[u8]) -> Result<()> {
        self.latest.push(crc32c::crc32c(row));
        if self.latest.len() == AT_ONCE { self.put() } else { Ok(()) }
    }

    /// Writes what is left; returns the manifest's entry of the file.
    ///
    /// # Errors
    /// I/O errors.
    pub fn finish(mut self) -> Result<FileEntry> {
        self.put()?;
        self.file.finish()
    }

    fn put(&mut self) -> Result<()> {
        self.file.extend(&self.latest)?;
        self.latest.clear();
        Ok(())
    }
}

/// A row that differs from its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowMismatch {
    /// The number of the row.
    pub row: u64,
    /// What its checksum should be.
    pub stored: u32,
    /// What its checksum is.
    pub computed: u32,
}

impl RowMismatch {
    /// The error that names the row of `file`, whose rows lie as `layout` says, and both checksums.
    pub fn error(&self, file: &str, layout: &RowLayout) -> Error {
        let Self { row, stored, computed } = self;
        let operation = format!("use row {row} (offset {}) of", layout.offset(*row));
        Error::new(ErrorKind::Format, operation)
            .object(file)
            .expected(format!("CRC-32C {stored:08x}"))
            .got(format!("{computed:08x}"))
            .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
    }
}

/// A comparison of the rows of a file with their checksums, block by block from the file's start to its
/// end. Holds one chunk of checksums.
#[derive(Debug)]
pub(crate) struct RowCheck {
    layout: RowLayout,
    rows: u64,
    /// The file of the checksums.
    path: PathBuf,
    crcs: FileEntry,
    /// The chunk of checksums that is in memory, and its number; empty where it is damaged.
    chunk: Vec<u32>,
    chunk_number: Option<u64>,
    /// The number of the next row to be compared, and what of it came in earlier blocks.
    row: u64,
    begun: Begun,
}

/// The part of a row that came in earlier blocks.
#[derive(Debug, Clone, Copy, Default)]
struct Begun {
    crc: u32,
    has_damage: bool,
}

/// The rows of a block that differ from their checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatches {
    /// The first of these rows.
    pub(crate) first: RowMismatch,
    /// The number of these rows.
    pub(crate) rows: u64,
}

impl RowCheck {
    /// A comparison of the rows that `entry` describes with the checksums `crcs` in the file `path`.
    pub(crate) fn new(entry: &FeaturesEntry, path: PathBuf, crcs: FileEntry) -> Self {
        let (layout, rows, begun) = (entry.layout, entry.rows, Begun::default());
        Self { layout, rows, path, crcs, chunk: Vec::new(), chunk_number: None, row: 0, begun }
    }

    /// Where the rows lie.
    pub(crate) fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// Compares the rows that end in `block`, which begins at byte `offset` of the file, but for those
    /// with a part in a page of which `is_damaged(byte)` holds.
    pub(crate) fn check(
        &mut self,
        offset: u64,
        block: &[u8],
        is_damaged: impl Fn(Range<u64>) -> bool,
    ) -> Option<Mismatches> {
        let (end, row_bytes) = (offset + block.len() as u64, self.layout.row_bytes() as u64);
        let mut found: Option<Mismatches> = None;
        while self.row < self.rows {
            let begin = self.layout.offset(self.row);
            let row_end = begin + row_bytes;
            if begin >= end {
                break;
            }
            let (from, to) = (begin.max(offset), row_end.min(end));
            let part = &block[(from - offset) as usize..(to - offset) as usize];
            let begun = Begun {
                crc: crc32c::crc32c_append(self.begun.crc, part),
                has_damage: self.begun.has_damage || is_damaged(from..to),
            };
            if row_end > end {
                self.begun = begun;
                break;
            }
            let (row, computed) = (self.row, begun.crc);
            (self.row, self.begun) = (row + 1, Begun::default());
            if begun.has_damage {
                continue;
            }
            if let Some(stored) = self.stored(row).filter(|&stored| stored != computed) {
                let this = Mismatches { first: RowMismatch { row, stored, computed }, rows: 0 };
                found.get_or_insert(this).rows += 1;
            }
        }
        found
    }

    /// The checksum of row `row`; `None` where its chunk is damaged, which is found in its own file.
    fn stored(&mut self, row: u64) -> Option<u32> {
        const EACH: u64 = (flat::CHUNK_BYTES / size_of::<u32>()) as u64;
        if self.chunk_number != Some(row / EACH) {
            self.chunk_number = Some(row / EACH);
            self.chunk = flat::read_chunk(&self.path, &self.crcs, row / EACH).unwrap_or_default();
        }
        self.chunk.get((row % EACH) as usize).copied()
    }
}
