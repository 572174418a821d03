//! Files that are read and written past the page cache, in whole pages.
//!
//! A file system without direct I/O gets buffered I/O, whose pages are dropped soon.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, OFlags, fadvise};
use tiergraph_core::{Error, Result};
use tiergraph_mem::PAGE_BYTES;

/// Bytes after which a buffered file is pushed out of the page cache again.
const ADVICE_BYTES: u64 = 16 << 20;

/// A file that is read and written in whole pages, from and to aligned buffers.
#[derive(Debug)]
pub struct PagesFile {
    file: File,
    path: PathBuf,
    direct: bool,
}

impl PagesFile {
    /// Creates the file `path`, which must not be there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) where the system refuses.
    pub fn create(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let again = || {
            // A refused direct open may have created the file.
            let _ = std::fs::remove_file(path);
        };
        Self::with(&options, path, again).map_err(|e| Error::io("create", path.display(), e))
    }

    /// Opens the file `path` for reading.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) where the system refuses.
    pub fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        Self::with(options.read(true), path, || {})
            .map_err(|e| Error::io("open", path.display(), e))
    }

    fn with(options: &OpenOptions, path: &Path, again: impl Fn()) -> std::io::Result<Self> {
        let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let is_direct = direct.is_ok();
        let file = direct.or_else(|_| {
            again();
            options.open(path)
        })?;
        Ok(Self { file, path: path.to_owned(), direct: is_direct })
    }

    /// Writes whole pages at byte `offset`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) where the system refuses.
    pub fn write(&self, pages: &[u8], offset: u64) -> Result<()> {
        debug_assert!(pages.len().is_multiple_of(PAGE_BYTES));
        let io = |e| Error::io("write", self.path.display(), e);
        self.file.write_all_at(pages, offset).map_err(io)?;
        let end = offset + pages.len() as u64;
        if !self.direct && offset / ADVICE_BYTES != end / ADVICE_BYTES {
            let _ = fadvise(&self.file, 0, None, Advice::DontNeed);
        }
        Ok(())
    }

    /// Reads whole pages from byte `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) where the system refuses, or the file ends before.
    pub fn read(&self, pages: &mut [u8], offset: u64) -> Result<()> {
        debug_assert!(pages.len().is_multiple_of(PAGE_BYTES));
        let io = |e| Error::io("read", self.path.display(), e);
        self.file.read_exact_at(pages, offset).map_err(io)?;
        if !self.direct {
            let len = std::num::NonZeroU64::new(pages.len() as u64);
            let _ = fadvise(&self.file, offset, len, Advice::DontNeed);
        }
        Ok(())
    }
}
