//! A graph directory: built beside its place and renamed into it, opened with every length checked.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use crate::features::{FOLDERS, NewFiles, make_folder};
use crate::journal::recover;
use crate::leftovers::{BUILD_ID, remove_leftovers, remove_whole};
use crate::manifest::{FileEntry, FileKind, Manifest};
use crate::place::{Place, refuse, sync};
use crate::salt::Salt;
use crate::sink::FileSink;

pub use crate::place::Existing;

/// An opened graph directory: its path and its manifest.
#[derive(Debug, Clone)]
pub struct GraphDir {
    path: PathBuf,
    manifest: Manifest,
}

impl GraphDir {
    /// Opens a graph: reads the manifest and compares the length of every file with it. An addition
    /// of files that was interrupted after it was committed is finished first.
    pub fn open(path: &Path) -> Result<Self> {
        let graph = Self::open_unchecked(path)?;
        for (name, entry) in &graph.manifest.files {
            for (file, bytes) in graph.stripes_of(name, entry) {
                check_length(&file, bytes)?;
            }
        }
        Ok(graph)
    }

    /// Opens a graph whose files may be cut or missing, for `verify`.
    pub(crate) fn open_unchecked(path: &Path) -> Result<Self> {
        recover(path)?;
        let graph = Self { path: path.to_owned(), manifest: Manifest::read(path)? };
        for stripe in &graph.manifest.stripes {
            let file = stripe.join(BUILD_ID);
            let id = fs::read(&file).map_err(|e| Error::io("read", file.display(), e))?;
            let id = String::from_utf8_lossy(&id);
            if id != graph.manifest.build_id {
                return Err(Error::new(ErrorKind::Format, "open")
                    .object(stripe.display())
                    .expected(format!("a stripe of build {}", graph.manifest.build_id))
                    .got(format!("one of build {id}"))
                    .hint("the stripes are of different graphs: rebuild the graph"));
            }
        }
        Ok(graph)
    }

    /// Begins a graph at `path`, striped over `stripes` unless that is empty.
    ///
    /// Everything is written to hidden siblings until [`Building::commit`].
    pub fn create(path: &Path, existing: Existing, stripes: &[PathBuf]) -> Result<Building> {
        Building::begin(path, existing, stripes)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The graph's manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The manifest's entry of file `name`; [`ErrorKind::Input`] if the graph has no such file.
    pub fn entry(&self, name: &str) -> Result<&FileEntry> {
        self.manifest.files.get(name).ok_or_else(|| {
            let files: Vec<_> = self.manifest.files.keys().map(String::as_str).collect();
            Error::new(ErrorKind::Input, "read")
                .object(self.path.join(name).display())
                .expected(format!("one of {}", files.join(", ")))
        })
    }

    /// The paths that hold file `name`: one, or one for each stripe. Block i is on path i mod n, at
    /// `(i / n) × block_bytes`.
    pub fn paths(&self, name: &str) -> Result<Vec<PathBuf>> {
        let entry = self.entry(name)?;
        Ok(self.stripes_of(name, entry).into_iter().map(|(path, _)| path).collect())
    }

    /// The paths of a file and the length that each must have.
    pub(crate) fn stripes_of(&self, name: &str, entry: &FileEntry) -> Vec<(PathBuf, u64)> {
        let stripes = &self.manifest.stripes;
        if entry.kind == FileKind::Flat || stripes.is_empty() {
            return vec![(self.path.join(name), entry.bytes)];
        }
        let (n, size) = (stripes.len() as u64, u64::from(self.manifest.block_bytes));
        let short = entry.blocks * size - entry.bytes;
        let blocks = |stripe: u64| entry.blocks.saturating_sub(stripe).div_ceil(n);
        let last = entry.blocks.checked_sub(1).map(|block| block % n);
        let bytes = |s: u64| blocks(s) * size - if last == Some(s) { short } else { 0 };
        stripes.iter().zip(0..).map(|(dir, s)| (dir.join(name), bytes(s))).collect()
    }
}

pub(crate) fn check_length(file: &Path, expected: u64) -> Result<()> {
    let bytes = fs::metadata(file).map_err(|e| Error::io("open", file.display(), e))?.len();
    if bytes == expected {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Format, "open")
        .object(file.display())
        .expected(format!("{expected} bytes"))
        .got(format!("{bytes} bytes"))
        .hint("the file was cut or replaced: rebuild the graph"))
}

/// A graph that is being written. Dropped without [`Self::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct Building {
    /// The graph's directory first, then its stripes.
    places: Vec<Place>,
    existing: Existing,
    build_id: String,
}

impl Building {
    fn begin(path: &Path, existing: Existing, stripes: &[PathBuf]) -> Result<Self> {
        let absolute =
            |p: &Path| std::path::absolute(p).map_err(|e| Error::io("create", p.display(), e));
        let path = absolute(path)?;
        refuse(&path, existing)?;
        let build_id = format!("{:016x}", RandomState::new().build_hasher().finish());
        let mut places = vec![Place::new(path.clone())?];
        for (i, stripe) in stripes.iter().enumerate() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let place = Place::new(absolute(stripe)?.join(format!("{name}.stripe{i}")))?;
            // Beside the stripe of a graph that it replaces, which is whole until this one is.
            places.push(place.known_as(&build_id));
        }
        let mut building = Self { places: Vec::new(), existing, build_id };
        for mut place in places {
            remove_leftovers(&place);
            place.create()?;
            building.places.push(place);
        }
        for stripe in &building.places[1..] {
            let file = stripe.building.join(BUILD_ID);
            fs::write(&file, &building.build_id)
                .map_err(|e| Error::io("write", file.display(), e))?;
        }
        Ok(building)
    }

    /// The path to write the flat array `name` to.
    pub fn flat(&self, name: &str) -> PathBuf {
        self.places[0].building.join(name)
    }

    /// Creates file `name`, of blocks, rows or features, and returns the sink that its blocks go to.
    pub fn sink(&self, name: &str, kind: FileKind, block_bytes: u32) -> Result<FileSink> {
        let dirs = if self.places.len() > 1 { &self.places[1..] } else { &self.places[..] };
        let paths: Vec<_> = dirs.iter().map(|place| place.building.join(name)).collect();
        paths.iter().try_for_each(|path| make_folder(path))?;
        Ok(FileSink::create(&paths, kind, block_bytes)?.salted(Salt::of(&self.build_id, name)))
    }

    /// Writes the manifest (stripes and build id are filled in), forces everything to the device
    /// and renames the graph into place. A graph that was there is gone afterwards, or back in its
    /// place if this fails.
    pub fn commit(self, mut manifest: Manifest) -> Result<GraphDir> {
        manifest.stripes = self.places[1..].iter().map(|place| place.path.clone()).collect();
        manifest.build_id.clone_from(&self.build_id);
        let path = &self.places[0].path;
        manifest.write(&self.places[0].building)?;
        refuse(path, self.existing)?;
        let io = |place: &Place, e| Error::io("rename into place", place.path.display(), e);
        for place in &self.places {
            let folders = FOLDERS.iter().map(|folder| place.building.join(folder));
            folders
                .filter(|folder| folder.exists())
                .chain([place.building.clone()])
                .try_for_each(|dir| sync(&dir))
                .map_err(|e| io(place, e))?;
        }
        // The directory with the manifest last: it is what makes a graph, and its stripes are
        // nobody's before.
        for (done, place) in self.places.iter().rev().enumerate() {
            if let Err(e) = place.swap_in() {
                self.places.iter().rev().take(done).for_each(Place::swap_out);
                return Err(io(place, e));
            }
        }
        self.places.iter().for_each(|place| remove_whole(&place.old));
        Ok(GraphDir { path: path.clone(), manifest })
    }
}

/// A graph whose files are written but whose manifest is not, so that files may still be added. Dropped
/// without [`Self::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct Assembled {
    building: Building,
    dir: GraphDir,
}

impl Building {
    /// Gives the graph a manifest, which describes the files that were written so far.
    pub fn assemble(self, mut manifest: Manifest) -> Assembled {
        manifest.build_id.clone_from(&self.build_id);
        let dir = GraphDir { path: self.places[0].building.clone(), manifest };
        Assembled { building: self, dir }
    }
}

impl Assembled {
    /// The graph, at the path where it is being built. Its stripes are not in the manifest yet.
    pub fn dir(&self) -> &GraphDir {
        &self.dir
    }

    /// Enters the files `new` in the manifest and renames the graph into place.
    ///
    /// # Errors
    /// As [`Building::commit`].
    pub fn commit(self, new: NewFiles) -> Result<GraphDir> {
        let mut manifest = self.dir.manifest;
        new.enter(&mut manifest);
        self.building.commit(manifest)
    }

    pub(crate) fn building(&mut self) -> &mut Building {
        &mut self.building
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        for place in &self.places {
            let _ = fs::remove_dir_all(&place.building);
        }
    }
}
