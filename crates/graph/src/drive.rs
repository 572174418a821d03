//! Writing graphs to raw drives, from which engines of drives read them.

use std::path::{Path, PathBuf};

use tiergraph_core::{Cancel, Progress, Result};
use tiergraph_format::hetero::HeteroManifest;
use tiergraph_io::{FileSet, RawDrives, write_drives};
use tiergraph_nvme::Timing;

use crate::open::Opened;

/// Writes the files that engines read of the graph at `path`, heterogeneous or not, to `drives`. The graph
/// stays where it is: its manifest and indexes are read from there. Returns the bytes written.
///
/// # Errors
/// A directory that is no graph, and those of [`write_drives`].
pub fn write_to_drives(
    path: &Path,
    drives: RawDrives,
    force: bool,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<u64> {
    let graphs: Vec<PathBuf> = match HeteroManifest::is_at(path) {
        true => HeteroManifest::read(path)?.graphs().map(|graph| path.join(graph)).collect(),
        false => vec![path.to_path_buf()],
    };
    let mut files = FileSet::new();
    for graph in graphs {
        Opened::open(&graph, &mut files)?;
    }
    write_drives(&files, drives, force, Timing::default(), progress, cancel)
}
