//! Writes the checksums of rows for features that a graph has.

use std::path::Path;

use tiergraph_core::{Cancel, Progress, Result};
use tiergraph_format::directory::Existing;
use tiergraph_format::features::{Addition, FeatureFiles, NewFiles, RowCrcWriter};
use tiergraph_format::manifest::Manifest;
use tiergraph_mem::Budget;

use super::stored::{StoredRows, stored_entry};
use crate::build::Ticker;

/// Computes the checksum of every row of the features `name` of the graph at `path`, and adds them to
/// the graph, or puts them in place of those that it has. Rows stay where they are.
///
/// Reads every row once and checks its pages, in `memory` bytes (half of what is available by default):
/// a block, and 4 bytes a page. The graph stays open to readers. After an error or a crash, it is as it
/// was.
///
/// # Errors
/// [`ErrorKind::Input`](tiergraph_core::ErrorKind::Input) for features that the graph does not have;
/// [`ErrorKind::Format`](tiergraph_core::ErrorKind::Format) for damaged pages; a budget error; I/O
/// errors.
pub fn checksum(
    path: &Path,
    name: &str,
    memory: Option<u64>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Manifest> {
    let mut addition = Addition::begin(path, Existing::Replace)?;
    let budget = Budget::of(memory)?;
    let entry = stored_entry(addition.dir().manifest(), name, "checksum the features")?;
    let files = FeatureFiles::of(name);
    let mut rows = StoredRows::open(addition.dir(), &files, &entry, &budget)?;
    let mut row_crcs = RowCrcWriter::create(&mut addition, &files)?;
    let mut ticker = Ticker::new(progress, "checksum", "rows", entry.rows);
    for _ in 0..entry.rows {
        ticker.add(1);
        row_crcs.push(rows.next(cancel)?)?;
    }
    let mut new = NewFiles::default();
    new.files.insert(files.row_crc, row_crcs.finish()?);
    Ok(addition.commit(new)?.manifest().clone())
}
