//! Adding files to a graph: one that is being built, or one that exists.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tiergraph_core::{Error, ErrorKind, Result};

use super::layout::FeaturesEntry;
use super::names::FeatureFiles;
use crate::directory::{Assembled, Building, Existing, GraphDir};
use crate::edges::{self, Side, numbers_file};
use crate::journal::{Journal, hidden, recover_locked, remove_leftovers, temporary};
use crate::manifest::{FileEntry, FileKind, Manifest};
use crate::sink::FileSink;

/// A graph, finished or not, that new files can be written to.
pub trait Destination {
    /// Creates the file `name` of pages, and returns the sink that its blocks of `block_bytes` go to.
    fn sink(&mut self, name: &str, block_bytes: u32) -> Result<FileSink>;

    /// The path to write the flat file `name` to.
    fn flat(&mut self, name: &str) -> Result<PathBuf>;

    /// The path at which one temporary file may be created; the caller removes it.
    fn temporary(&self) -> PathBuf;
}

impl Destination for Building {
    fn sink(&mut self, name: &str, block_bytes: u32) -> Result<FileSink> {
        Self::sink(self, name, FileKind::Features, block_bytes)
    }

    fn flat(&mut self, name: &str) -> Result<PathBuf> {
        let path = Self::flat(self, name);
        make_folder(&path)?;
        Ok(path)
    }

    fn temporary(&self) -> PathBuf {
        Self::flat(self, ".temporary")
    }
}

/// A graph that files are being added to: one that exists ([`Addition`]), or one that lacks only its
/// manifest ([`Assembled`]). Dropped without [`Self::commit`], it keeps none of them.
pub trait Growing: Destination + Send {
    /// The graph as it is without the new files.
    fn dir(&self) -> &GraphDir;

    /// Fails if the graph has the file `name` already and may not replace it.
    ///
    /// # Errors
    /// [`ErrorKind::Input`].
    fn refuse(&self, name: &str) -> Result<()>;

    /// Enters the files `new` in the manifest and puts them in place, all of them or none.
    ///
    /// # Errors
    /// I/O errors.
    fn commit(self: Box<Self>, new: NewFiles) -> Result<GraphDir>;
}

/// The manifest's entries of files that are added to a graph.
#[derive(Debug, Clone, Default)]
pub struct NewFiles {
    /// The entry of each new file, by name.
    pub files: BTreeMap<String, FileEntry>,
    /// The entry of each new feature matrix of vertices, by name; its rows are in one of `files`.
    pub features: BTreeMap<String, FeaturesEntry>,
    /// The entry of each new feature matrix of edges, by name; its rows are in one of `files`.
    pub edge_features: BTreeMap<String, FeaturesEntry>,
    /// The source that each was made from, by name: becomes provenance options.
    pub sources: BTreeMap<String, String>,
}

impl NewFiles {
    /// Adds the entries to `manifest`, in place of entries of the same names.
    pub fn enter(self, manifest: &mut Manifest) {
        manifest.files.extend(self.files);
        manifest.features.extend(self.features);
        manifest.edge_features.extend(self.edge_features);
        manifest.provenance.options.extend(self.sources);
    }
}

/// An addition of files to a graph. Dropped without [`Self::commit`], it leaves nothing behind.
///
/// New files are written beside their places under hidden names. A journal of the renames that are
/// left commits them in one step, so that the graph has all of them or none, whenever the process
/// ends.
#[derive(Debug)]
pub struct Addition {
    dir: GraphDir,
    existing: Existing,
    /// Where files are now and where they go, relative to the graph's directory or a stripe.
    moves: Vec<(PathBuf, PathBuf)>,
    /// Held while the graph is changed.
    _lock: File,
}

impl Addition {
    /// Locks the graph at `path` to add files to it, and removes what killed additions left there.
    ///
    /// # Errors
    /// As [`GraphDir::open`]; [`ErrorKind::Input`] while another process adds files.
    pub fn begin(path: &Path, existing: Existing) -> Result<Self> {
        GraphDir::open(path)?;
        let lock = File::open(path).map_err(|e| Error::io("open", path.display(), e))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Error::new(ErrorKind::Input, "add to")
                .object(path.display())
                .expected("a graph that nobody else changes")
                .got("one that another process adds to"));
        }
        // Again, because a process that had the lock may have changed it.
        recover_locked(path)?;
        let dir = GraphDir::open(path)?;
        remove_leftovers(path, dir.manifest());
        Ok(Self { dir, existing, moves: Vec::new(), _lock: lock })
    }

    /// The graph as it is without the new files.
    pub fn dir(&self) -> &GraphDir {
        &self.dir
    }

    /// Fails if the graph has the file `name` already and may not replace it.
    ///
    /// # Errors
    /// [`ErrorKind::Input`].
    pub fn refuse(&self, name: &str) -> Result<()> {
        if self.existing == Existing::Replace || !self.dir.manifest().files.contains_key(name) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Input, "add")
            .object(name)
            .expected(format!("a name that `{}` does not have", self.dir.path().display()))
            .got("one that it has")
            .hint("`--overwrite` replaces it"))
    }

    /// Enters the files in the manifest and renames them into place. After an error, and after a
    /// process that ended at any moment, the graph is what it was or has all of them.
    ///
    /// # Errors
    /// I/O errors.
    pub fn commit(mut self, new: NewFiles) -> Result<GraphDir> {
        let path = self.dir.path();
        let mut manifest = self.dir.manifest().clone();
        let replaced = remove_replaced(&mut manifest, &new);
        new.enter(&mut manifest);
        // What a replaced matrix had and the new one has not.
        let gone = replaced.into_iter().filter(|name| !manifest.files.contains_key(name));
        let journal = Journal::new(
            std::mem::take(&mut self.moves),
            gone.map(PathBuf::from).collect(),
            manifest.clone(),
        );
        journal.write(path)?;
        journal.finish(path)?;
        GraphDir::open(path)
    }

    /// Where file `name` of `place` is written until it is renamed.
    fn beside(&mut self, place: &Path, name: &str) -> Result<PathBuf> {
        let to = PathBuf::from(name);
        make_folder(&place.join(&to))?;
        let from = to.with_file_name(hidden(&to.file_name().unwrap_or_default().to_string_lossy()));
        let path = place.join(&from);
        if !self.moves.iter().any(|(known, _)| *known == from) {
            self.moves.push((from, to));
        }
        Ok(path)
    }

    /// The directories that striped files are in.
    fn stripes(&self) -> Vec<PathBuf> {
        let stripes = &self.dir.manifest().stripes;
        if stripes.is_empty() { vec![self.dir.path().to_owned()] } else { stripes.clone() }
    }
}

impl Destination for Addition {
    fn sink(&mut self, name: &str, block_bytes: u32) -> Result<FileSink> {
        self.refuse(name)?;
        let stripes = self.stripes();
        let paths = stripes.iter().map(|stripe| self.beside(stripe, name));
        FileSink::create(&paths.collect::<Result<Vec<_>>>()?, FileKind::Features, block_bytes)
    }

    fn flat(&mut self, name: &str) -> Result<PathBuf> {
        self.refuse(name)?;
        let place = self.dir.path().to_owned();
        self.beside(&place, name)
    }

    fn temporary(&self) -> PathBuf {
        self.dir.path().join(temporary())
    }
}

impl Growing for Addition {
    fn dir(&self) -> &GraphDir {
        Self::dir(self)
    }

    fn refuse(&self, name: &str) -> Result<()> {
        Self::refuse(self, name)
    }

    fn commit(self: Box<Self>, new: NewFiles) -> Result<GraphDir> {
        Self::commit(*self, new)
    }
}

impl Destination for Assembled {
    fn sink(&mut self, name: &str, block_bytes: u32) -> Result<FileSink> {
        Destination::sink(self.building(), name, block_bytes)
    }

    fn flat(&mut self, name: &str) -> Result<PathBuf> {
        Destination::flat(self.building(), name)
    }

    fn temporary(&self) -> PathBuf {
        self.dir().path().join(".temporary")
    }
}

impl Growing for Assembled {
    fn dir(&self) -> &GraphDir {
        Self::dir(self)
    }

    fn refuse(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn commit(self: Box<Self>, new: NewFiles) -> Result<GraphDir> {
        Self::commit(*self, new)
    }
}

impl Drop for Addition {
    fn drop(&mut self) {
        for (hidden, _) in &self.moves {
            for place in self.stripes().iter().map(PathBuf::as_path).chain([self.dir.path()]) {
                let _ = fs::remove_file(place.join(hidden));
            }
        }
    }
}

/// Takes what `new` replaces out of a manifest; the names of the files that are gone from it.
fn remove_replaced(manifest: &mut Manifest, new: &NewFiles) -> Vec<String> {
    let mut names: Vec<String> = new.files.keys().cloned().collect();
    for name in new.features.keys() {
        if manifest.features.remove(name).is_some() {
            let FeatureFiles { rows, crc, row_crc, ids } = FeatureFiles::of(name);
            names.extend([rows, crc, row_crc, ids]);
        }
    }
    // Another order of edges: what belongs to the one before goes.
    if names.contains(&numbers_file(Side::Out)) || names.contains(&numbers_file(Side::In)) {
        manifest.edge_features.clear();
        manifest.provenance.options.retain(|name, _| !name.starts_with(edges::NODE_TIMES));
        let folder = |name: &&String| name.split_once('/').is_some_and(|(f, _)| f == edges::FOLDER);
        names.extend(manifest.files.keys().filter(folder).cloned());
    }
    names.retain(|name| manifest.files.remove(name).is_some());
    names
}

/// Makes the folder that a file is to be in.
pub(crate) fn make_folder(file: &Path) -> Result<()> {
    let folder = folder(file);
    fs::create_dir_all(folder).map_err(|e| Error::io("create", folder.display(), e))
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}
