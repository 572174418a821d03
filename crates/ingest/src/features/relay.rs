//! Relaying a graph's features: moving their rows to another order.
//!
//! Rows that the same mini-batches want share pages if they lie side by side, and pages are what is
//! read. Which order that is, a sampler knows; here rows are moved, once, within a memory budget:
//! the old file is read from its start to its end, each row goes where it belongs ([`Scatter`]), and
//! the new file is written from its start to its end. Rows are moved as they are stored.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use tiergraph_core::{Cancel, Error, ErrorKind, Progress, Result};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::features::{
    Addition, Destination, FeatureFiles, FeatureWriter, FeaturesEntry, NewFiles, PAGE_BYTES,
    check_page,
};
use tiergraph_format::flat::{self, FlatWriter};
use tiergraph_format::manifest::{FileEntry, Manifest};
use tiergraph_mem::{Budget, available_memory_bytes};

use super::place::check_permutation;
use super::scatter::Scatter;
use crate::build::Ticker;

/// An order of feature rows.
#[derive(Debug, Clone)]
pub struct RowOrder {
    /// The name of the order, for the graph's provenance.
    pub name: String,
    /// The row of each vertex in the graph's order; `None` for that order itself.
    pub rows: Option<Vec<u32>>,
}

/// Moves the rows of the features `name` of the graph at `path` to `order`, in `memory` bytes (half of
/// what is available by default).
///
/// The graph stays open to readers, who see what they opened. An error or a crash leaves the graph
/// as it was, or (while the new files are renamed) without these features.
///
/// # Errors
/// [`ErrorKind::Input`] for features that the graph does not have or an order that is no
/// permutation of its vertices; [`ErrorKind::Format`] for damaged pages; a budget error; I/O errors.
pub fn relay(
    path: &Path,
    name: &str,
    order: &RowOrder,
    memory: Option<u64>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Manifest> {
    let mut addition = Addition::begin(path, Existing::Replace)?;
    let budget = Budget::new(match memory {
        Some(memory) => memory,
        None => available_memory_bytes()? / 2,
    });
    let manifest = addition.dir().manifest();
    let Some(&entry) = manifest.features.get(name) else {
        let names: Vec<&str> = manifest.features.keys().map(String::as_str).collect();
        return Err(Error::new(ErrorKind::Input, "re-lay the features")
            .object(name)
            .expected(format!("one of the graph's: {}", names.join(", "))));
    };
    if let Some(rows) = &order.rows {
        check_permutation(rows, entry.rows)?;
    }
    let files = FeatureFiles::of(name);
    let mut new = NewFiles::default();
    let (rows, crc) = move_rows(&mut addition, &files, &entry, order, &budget, progress, cancel)?;
    new.files.insert(files.rows, rows);
    new.files.insert(files.crc, crc);
    if let Some(rows) = &order.rows {
        let mut ids = FlatWriter::create(&addition.flat(&files.ids)?)?;
        ids.extend(rows)?;
        new.files.insert(files.ids, ids.finish()?);
    }
    new.features.insert(name.into(), entry);
    new.sources.insert(format!("features.{name}.order"), order.name.clone());
    Ok(addition.commit(new)?.manifest().clone())
}

/// Writes the new files of rows and of checksums; returns their entries.
fn move_rows(
    addition: &mut Addition,
    files: &FeatureFiles,
    entry: &FeaturesEntry,
    order: &RowOrder,
    budget: &Budget,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<(FileEntry, FileEntry)> {
    let block_bytes = addition.dir().manifest().block_bytes;
    let _blocks = budget.reserve(2 * u64::from(block_bytes), "two blocks of feature rows")?;
    let crc_bytes = entry.layout.file_bytes(entry.rows) / PAGE_BYTES as u64 * 4;
    let _crcs = budget.reserve(crc_bytes, "the checksums of feature pages")?;
    let sink = addition.sink(&files.rows, block_bytes)?;
    let crcs = FlatWriter::create(&addition.flat(&files.crc)?)?;
    let mut writer = FeatureWriter::new(entry.layout, block_bytes, sink, crcs);
    let mut ticker = Ticker::new(progress, "re-lay", "rows", entry.rows);
    let held = budget.reserve(entry.rows * 4, "the places of feature rows")?;
    let places = places(addition.dir(), files, order, entry)?;
    let mut rows = Rows::open(addition.dir(), files, entry)?;
    let spill = addition.temporary();
    let mut scatter = Scatter::new(entry.rows, entry.layout.row_bytes(), budget, &spill)?;
    for place in places {
        ticker.add(1);
        scatter.push(place.into(), rows.next(cancel)?)?;
    }
    drop((rows, held));
    scatter.finish(cancel, |row| writer.push(row))?;
    let (sink, crcs) = writer.finish()?;
    Ok((sink.finish()?, crcs))
}

/// For each row of the old file, its place in the new one.
fn places(
    dir: &GraphDir,
    files: &FeatureFiles,
    order: &RowOrder,
    entry: &FeaturesEntry,
) -> Result<Vec<u32>> {
    let new = |vertex: usize| order.rows.as_ref().map_or(vertex as u32, |rows| rows[vertex]);
    let Some(ids) = dir.manifest().files.get(&files.ids) else {
        return Ok((0..entry.rows as usize).map(new).collect());
    };
    let path = dir.path().join(&files.ids);
    let mut places = vec![0; entry.rows as usize];
    let mut vertex = 0;
    for number in 0..ids.blocks {
        for row in flat::read_chunk::<u32>(&path, ids, number)? {
            let slot = places.get_mut(row as usize).ok_or_else(|| {
                Error::new(ErrorKind::Format, "use")
                    .object(path.display())
                    .expected(format!("rows below {}", entry.rows))
                    .got(row)
            })?;
            *slot = new(vertex);
            vertex += 1;
        }
    }
    Ok(places)
}

/// A reader of the rows of a file, one after the other, with their pages checked.
struct Rows {
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
}

impl Rows {
    fn open(dir: &GraphDir, files: &FeatureFiles, entry: &FeaturesEntry) -> Result<Self> {
        let open = |path: PathBuf| match File::open(&path) {
            Ok(file) => Ok((path, file)),
            Err(e) => Err(Error::io("open", path.display(), e)),
        };
        let stripes = dir.paths(&files.rows)?.into_iter().map(open).collect::<Result<_>>()?;
        Ok(Self {
            name: files.rows.clone(),
            stripes,
            crcs: flat::read(&dir.path().join(&files.crc), dir.entry(&files.crc)?)?,
            entry: *entry,
            file_bytes: dir.entry(&files.rows)?.bytes,
            row: 0,
            block: Vec::new(),
            number: None,
            block_bytes: dir.manifest().block_bytes as usize,
            whole: Vec::new(),
        })
    }

    /// The next row's bytes.
    fn next(&mut self, cancel: &Cancel) -> Result<&[u8]> {
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
            cancel.check("re-lay features")?;
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
