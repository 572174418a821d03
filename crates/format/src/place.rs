//! Where a graph is put: built beside its place, under a name that nobody opens, and renamed into it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tiergraph_core::{Error, ErrorKind, Result};

/// The name of the file that makes a directory a graph.
pub const MANIFEST: &str = "manifest.json";
/// The name of the file that makes a directory a heterogeneous graph.
pub const HETERO: &str = "hetero.json";

/// What to do with a graph, or a file of one, that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Keep it and fail.
    Refuse,
    /// Replace it when the new one is complete.
    Replace,
}

/// A directory's final path, and where it is until it gets there.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// The name that its hidden siblings begin with.
    pub(crate) name: String,
    pub(crate) building: PathBuf,
    pub(crate) old: PathBuf,
    /// While it is locked, no other build takes what is being built for a leftover.
    lock: Option<File>,
}

impl Place {
    pub(crate) fn new(path: PathBuf) -> Result<Self> {
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            return Err(Error::new(ErrorKind::Input, "create")
                .object(path.display())
                .expected("a path that ends in a name"));
        };
        let sibling = |role| path.with_file_name(format!(".{name}.{role}-{}", std::process::id()));
        Ok(Self { building: sibling("building"), old: sibling("old"), lock: None, name, path })
    }

    /// The same place whose directory gets the name `NAME-ID` in the end.
    pub(crate) fn known_as(mut self, id: &str) -> Self {
        self.path = self.path.with_file_name(format!("{}-{id}", self.name));
        self
    }

    /// Makes the directory and locks it.
    pub(crate) fn create(&mut self) -> Result<()> {
        let io = |e| Error::io("create", self.building.display(), e);
        loop {
            fs::create_dir(&self.building).map_err(io)?;
            let lock = File::open(&self.building).map_err(io)?;
            // A file system without locks has no leftovers that are known to be such.
            let _ = lock.lock();
            // Another build may have taken it for a leftover before it was locked.
            if self.building.exists() {
                self.lock = Some(lock);
                return Ok(());
            }
        }
    }

    /// Puts the new directory in place and the old one, if any, aside: in one step where the file
    /// system can exchange two names.
    pub(crate) fn swap_in(&self) -> std::io::Result<()> {
        if self.path.exists() {
            if self.old.exists() {
                return Err(std::io::ErrorKind::AlreadyExists.into());
            }
            // Locked, it is no leftover yet. An addition that is under way has the lock already.
            let _lock = File::open(&self.path).inspect(|old| drop(old.try_lock()));
            if renameat_with(CWD, &self.building, CWD, &self.path, RenameFlags::EXCHANGE).is_ok() {
                fs::rename(&self.building, &self.old)?;
                return sync_parent(&self.path);
            }
            fs::rename(&self.path, &self.old)?;
        }
        let moved = fs::rename(&self.building, &self.path).and_then(|()| sync_parent(&self.path));
        if moved.is_err() {
            self.swap_out();
        }
        moved
    }

    /// Undoes [`Self::swap_in`] as far as it went.
    pub(crate) fn swap_out(&self) {
        if !self.building.exists() {
            let _ = fs::rename(&self.path, &self.building);
        }
        if self.old.exists() {
            let _ = fs::rename(&self.old, &self.path);
        }
    }
}

/// An existing graph is refused unless it may be replaced; anything else is always refused.
pub(crate) fn refuse(path: &Path, existing: Existing) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Input, "create").object(path.display());
    if !path.join(MANIFEST).exists() && !path.join(HETERO).is_file() {
        return Err(error
            .expected("nothing, or a graph to replace")
            .got("something that is no graph")
            .hint("choose another name"));
    }
    match existing {
        Existing::Replace => Ok(()),
        Existing::Refuse => Err(error
            .expected("nothing at this path")
            .got("a graph")
            .hint("`--overwrite` replaces it")),
    }
}

pub(crate) fn sync(dir: &Path) -> std::io::Result<()> {
    fs::File::open(dir)?.sync_all()
}

fn sync_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), sync)
}
