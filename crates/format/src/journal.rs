//! The journal of an addition: what is left to do once new files of a graph are complete.
//!
//! Several files and the manifest cannot be renamed in one step. So the renames are written down first,
//! in `adding.json`, and renaming that file into place is what commits the addition: the next process
//! that opens the graph finishes what is left. Every step can be done twice.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, Result};

use crate::features::FOLDERS;
use crate::manifest::Manifest;
use crate::seal::{FORMAT_VERSION, parse_sealed, write_sealed};

/// The file that holds a [`Journal`] until its steps are done.
pub(crate) const JOURNAL: &str = "adding.json";

/// The renames and removals that turn a graph into the one that `manifest` describes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    format_version: u32,
    /// Hidden file and final name, relative to the graph's directory or a stripe.
    moves: Vec<(PathBuf, PathBuf)>,
    /// Names of files that the graph no longer has.
    removals: Vec<PathBuf>,
    manifest: Manifest,
}

impl Journal {
    pub(crate) fn new(
        moves: Vec<(PathBuf, PathBuf)>,
        removals: Vec<PathBuf>,
        manifest: Manifest,
    ) -> Self {
        Self { format_version: FORMAT_VERSION, moves, removals, manifest }
    }

    /// Puts the journal into the graph at `path`: from here on, its files are the graph's.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        write_sealed(self, path, JOURNAL)
    }

    /// Does the steps and removes the journal. The caller holds the graph's lock.
    pub(crate) fn finish(&self, path: &Path) -> Result<()> {
        let places = places(path, &self.manifest);
        for (from, to) in &self.moves {
            for place in places.iter().filter(|place| place.join(from).exists()) {
                let (from, to) = (place.join(from), place.join(to));
                let moved = fs::rename(&from, &to).and_then(|()| sync_folder(&to));
                moved.map_err(|e| Error::io("rename into place", to.display(), e))?;
            }
        }
        self.manifest.write(path)?;
        for name in &self.removals {
            for place in &places {
                let _ = fs::remove_file(place.join(name));
            }
        }
        let journal = path.join(JOURNAL);
        let removed = fs::remove_file(&journal).and_then(|()| sync_folder(&journal));
        removed.map_err(|e| Error::io("remove", journal.display(), e))
    }
}

/// Finishes an addition to the graph at `path` whose process ended before it had done so; waits
/// for one that is about to.
pub(crate) fn recover(path: &Path) -> Result<()> {
    if !path.join(JOURNAL).exists() {
        return Ok(());
    }
    let lock = File::open(path).and_then(|directory| directory.lock().map(|()| directory));
    let _lock = lock.map_err(|e| Error::io("lock", path.display(), e))?;
    recover_locked(path)
}

/// As [`recover`], where the caller holds the graph's lock.
pub(crate) fn recover_locked(path: &Path) -> Result<()> {
    let file = path.join(JOURNAL);
    if !file.exists() {
        return Ok(());
    }
    let bytes = fs::read(&file).map_err(|e| Error::io("read", file.display(), e))?;
    let journal: Journal = parse_sealed(&bytes, &file.display().to_string())?;
    journal.finish(path).map_err(|e| {
        Error::new(e.kind(), "finish an interrupted addition to")
            .object(path.display())
            .source(e)
            .hint("open the graph once where its directory can be written to")
    })
}

/// Removes hidden files that additions left whose processes ended before they were complete. The
/// caller holds the graph's lock, so none is being written.
pub(crate) fn remove_leftovers(path: &Path, manifest: &Manifest) {
    for place in places(path, manifest) {
        for folder in FOLDERS.iter().map(|folder| place.join(folder)).chain([place.clone()]) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name().to_str().is_some_and(is_hidden) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

/// The hidden name under which `name` is written until it is renamed.
pub(crate) fn hidden(name: &str) -> String {
    format!(".{name}.adding-{}", std::process::id())
}

/// The name of a temporary file of an addition.
pub(crate) fn temporary() -> String {
    format!(".temporary-{}", std::process::id())
}

fn is_hidden(name: &str) -> bool {
    let process = match name.strip_prefix(".temporary-") {
        Some(process) => Some(process),
        None => name.strip_prefix('.').and_then(|name| Some(name.rsplit_once(".adding-")?.1)),
    };
    process.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))
}

/// The directories that a graph's files are in.
fn places(path: &Path, manifest: &Manifest) -> Vec<PathBuf> {
    [path.to_owned()].into_iter().chain(manifest.stripes.iter().cloned()).collect()
}

fn sync_folder(file: &Path) -> std::io::Result<()> {
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
