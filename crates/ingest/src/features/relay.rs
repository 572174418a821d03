//! Relaying a graph's features: moving their rows to another order.
//!
//! Rows that the same mini-batches want share pages if they lie side by side, and pages are what is
//! read. Which order that is, a sampler knows; here rows are moved, once, within a memory budget:
//! the old file is read from its start to its end, each row goes where it belongs ([`Scatter`]), and
//! the new file is written from its start to its end. Rows are moved as they are stored.

use std::collections::BTreeMap;
use std::path::Path;

use tiergraph_core::{Cancel, Error, ErrorKind, Progress, Result};
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::features::{
    Addition, Destination, FeatureFiles, FeatureWriter, FeaturesEntry, NewFiles,
};
use tiergraph_format::flat::{self, FlatWriter};
use tiergraph_format::manifest::{FileEntry, Manifest};
use tiergraph_mem::Budget;

use super::place::check_permutation;
use super::scatter::Scatter;
use super::stored::{StoredRows, stored_entry};
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
    let budget = Budget::of(memory)?;
    let entry = stored_entry(addition.dir().manifest(), name, "re-lay the features")?;
    if let Some(rows) = &order.rows {
        check_permutation(rows, entry.rows)?;
    }
    let files = FeatureFiles::of(name);
    let moved = move_rows(&mut addition, &files, &entry, order, &budget, progress, cancel)?;
    let mut new = NewFiles { files: moved, ..NewFiles::default() };
    if let Some(rows) = &order.rows {
        let mut ids = FlatWriter::create(&addition.flat(&files.ids)?)?;
        ids.extend(rows)?;
        new.files.insert(files.ids, ids.finish()?);
    }
    new.features.insert(name.into(), entry);
    new.sources.insert(format!("features.{name}.order"), order.name.clone());
    Ok(addition.commit(new)?.manifest().clone())
}

/// Writes the new files of rows and of checksums; returns the entry of each by name.
fn move_rows(
    addition: &mut Addition,
    files: &FeatureFiles,
    entry: &FeaturesEntry,
    order: &RowOrder,
    budget: &Budget,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<BTreeMap<String, FileEntry>> {
    let block_bytes = addition.dir().manifest().block_bytes;
    let _block = budget.reserve(block_bytes.into(), "a block of feature rows")?;
    let mut rows = StoredRows::open(addition.dir(), files, entry, budget)?;
    let mut writer = FeatureWriter::create(addition, files, entry.layout, block_bytes)?;
    let mut ticker = Ticker::new(progress, "re-lay", "rows", entry.rows);
    let held = budget.reserve(entry.rows * 4, "the places of feature rows")?;
    let places = places(addition.dir(), files, order, entry)?;
    let spill = addition.temporary();
    let mut scatter = Scatter::new(entry.rows, entry.layout.row_bytes(), budget, &spill)?;
    for place in places {
        ticker.add(1);
        scatter.push(place.into(), rows.next(cancel)?)?;
    }
    drop((rows, held));
    scatter.finish(cancel, |row| writer.push(row))?;
    writer.finish_files(files)
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
