//! Reads the rows of features that a graph has, as they are stored.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::features::{FeatureFiles, FeaturesEntry, PAGE_BYTES, check_page};
use tiergraph_format::flat;
use tiergraph_format::manifest::Manifest;
use tiergraph_mem::{Budget, Reservation};

/// What the manifest says about the vertices' features `name`; an error of `operation` for a graph
/// without them.
pub(super) fn stored_entry(
    manifest: &Manifest,
    name: &str,
    operation: &str,
) -> Result<FeaturesEntry> {
    let names: Vec<&str> = manifest.features.keys().map(String::as_str).collect();
    let refused = || Error::new(ErrorKind::Input, operation).object(name);
    match manifest.features.get(name) {
        Some(&entry) => Ok(entry),
        None if names.is_empty() => Err(refused().expected("a graph with features").got("none")),
        None => Err(refused().expected(format!("one of the graph's: {}", names.join(", ")))),
    }
}

/// A reader of the rows of a file, one after the other, with their pages checked.
pub(super) struct StoredRows {
    name: String,
    stripes: Vec<(PathBuf, File)>,
    crcs: Vec<u32>,
    entry: FeaturesEntry,
    file_bytes: u64,
    /// The number of the next row.
    row: u64,
    /// The block in memory; `number` tells which.
    block: Vec<u8>,
    number: Option<u64>,
    block_bytes: usize,
    /// A copy of a row that crosses blocks.
    whole: Vec<u8>,
    _held: [Reservation; 2],
}

impl StoredRows {
    /// Opens the rows of `entry`, and reserves what it holds of them: a block, and their pages'
    /// checksums.
    pub(super) fn open(
        dir: &GraphDir,
        files: &FeatureFiles,
        entry: &FeaturesEntry,
        budget: &Budget,
    ) -> Result<Self> {
        let block_bytes = dir.manifest().block_bytes;
        let crc = dir.entry(&files.crc)?;
        let held = [
            budget.reserve(block_bytes.into(), "a block of feature rows")?,
            budget.reserve(crc.bytes, "the checksums of feature pages")?,
        ];
        let open = |path: PathBuf| match File::open(&path) {
            Ok(file) => Ok((path, file)),
            Err(e) => Err(Error::io("open", path.display(), e)),
        };
        let stripes = dir.paths(&files.rows)?.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Self {
            name: files.rows.clone(),
            stripes,
            crcs: flat::read(&dir.path().join(&files.crc), crc)?,
            entry: *entry,
            file_bytes: dir.entry(&files.rows)?.bytes,
            row: 0,
            block: Vec::new(),
            number: None,
            block_bytes: block_bytes as usize,
            whole: Vec::new(),
            _held: held,
        })
    }

    /// The next row's bytes.
    pub(super) fn next(&mut self, cancel: &Cancel) -> Result<&[u8]> {
        let size = self.block_bytes as u64;
        let begin = self.entry.layout.offset(self.row);
        let end = begin + self.entry.layout.row_bytes() as u64;
        self.row += 1;
        self.whole.clear();
        let mut at = begin;
        while at < end {
            self.load(at / size, cancel)?;
            let from = (at % size) as usize;
            let to = (from + (end - at) as usize).min(self.block_bytes);
            if from + (end - begin) as usize == to {
                return Ok(&self.block[from..to]);
            }
            self.whole.extend_from_slice(&self.block[from..to]);
            at += (to - from) as u64;
        }
        Ok(&self.whole)
    }

    /// Reads block `number` into memory; blocks are asked for in their order.
    fn load(&mut self, number: u64, cancel: &Cancel) -> Result<()> {
        while self.number.is_none_or(|held| held < number) {
            cancel.check("read features")?;
            let next = self.number.map_or(0, |held| held + 1);
            let first = next * self.block_bytes as u64;
            let bytes = (self.file_bytes - first).min(self.block_bytes as u64);
            self.block.resize(bytes as usize, 0);
            let stripe = (next % self.stripes.len() as u64) as usize;
            let (path, file) = &mut self.stripes[stripe];
            file.read_exact(&mut self.block).map_err(|e| Error::io("read", path.display(), e))?;
            let pages = (first / PAGE_BYTES as u64..).zip(self.block.chunks(PAGE_BYTES));
            for (number, page) in pages {
                check_page(page, &self.crcs, &self.name, number)?;
            }
            self.number = Some(next);
        }
        Ok(())
    }
}
