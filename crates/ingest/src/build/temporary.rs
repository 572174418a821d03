//! Temporary files that never stay in the page cache.
//!
//! They are opened for direct I/O and unlinked at once, so that not even a killed build leaves
//! them behind. A file system without direct I/O gets buffered I/O, whose pages are dropped soon.
//!
//! Where a file system tells the device of free space (`discard`), freeing a file takes a second for
//! every few hundred MB, so a thread of its own closes it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Advice, OFlags, fadvise};
use tiergraph_core::{Error, Result};
use tiergraph_mem::PAGE_BYTES;

use super::scratch::Held;

/// Bytes after which a buffered file is pushed out of the page cache again.
const ADVICE_BYTES: u64 = 16 << 20;

/// A file that is written once and read in pieces, and that is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    /// `None` only while it is dropped.
    file: Option<File>,
    path: PathBuf,
    direct: bool,
    end: AtomicU64,
    /// The counter of temporary files' bytes, if they are counted.
    held: Option<Arc<Held>>,
}

impl TemporaryFile {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let is_direct = direct.is_ok();
        let io = |e| Error::io("create", path.display(), e);
        // A refused direct open may have created the file.
        let buffered = |_| {
            let _ = std::fs::remove_file(path);
            options.open(path)
        };
        let file = direct.or_else(buffered).map_err(io)?;
        std::fs::remove_file(path).map_err(|e| Error::io("remove", path.display(), e))?;
        let end = AtomicU64::new(0);
        Ok(Self { file: Some(file), path: path.to_owned(), direct: is_direct, end, held: None })
    }

    /// Counts the file's bytes in `held`, from the first on.
    pub(super) fn counted(mut self, held: Arc<Held>) -> Self {
        self.held = Some(held);
        self
    }

    /// Appends whole pages from an aligned buffer; returns their byte offset in the file.
    pub(crate) fn append(&self, pages: &[u8]) -> Result<u64> {
        debug_assert!(pages.len().is_multiple_of(PAGE_BYTES));
        let offset = self.end.fetch_add(pages.len() as u64, Ordering::Relaxed);
        let Some(file) = &self.file else { return Ok(offset) };
        file.write_all_at(pages, offset).map_err(|e| Error::io("write", self.path.display(), e))?;
        self.held.iter().for_each(|held| held.add(pages.len() as u64));
        if !self.direct && offset / ADVICE_BYTES != (offset + pages.len() as u64) / ADVICE_BYTES {
            let _ = fadvise(file, 0, None, Advice::DontNeed);
        }
        Ok(offset)
    }

    /// Reads whole pages into an aligned buffer.
    pub(crate) fn read(&self, pages: &mut [u8], offset: u64) -> Result<()> {
        debug_assert!(pages.len().is_multiple_of(PAGE_BYTES));
        let Some(file) = &self.file else { return Ok(()) };
        file.read_exact_at(pages, offset).map_err(|e| Error::io("read", self.path.display(), e))?;
        if !self.direct {
            let len = std::num::NonZeroU64::new(pages.len() as u64);
            let _ = fadvise(file, offset, len, Advice::DontNeed);
        }
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        self.held.iter().for_each(|held| held.remove(*self.end.get_mut()));
        let file = self.file.take();
        // Without a thread the closure drops here, and with it the file.
        let _ = std::thread::Builder::new().name("free-space".into()).spawn(move || drop(file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiergraph_mem::AlignedBuf;

    #[test]
    fn what_is_appended_is_read_and_no_name_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let file = TemporaryFile::create(&dir.path().join("t")).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut pages = AlignedBuf::zeroed(8192).unwrap();
        pages.fill(3);
        assert_eq!(file.append(&pages).unwrap(), 0);
        pages.fill(4);
        assert_eq!(file.append(&pages[..4096]).unwrap(), 8192);
        file.read(&mut pages, 4096).unwrap();
        assert!(pages[..4096].iter().all(|&b| b == 3) && pages[4096..].iter().all(|&b| b == 4));
        assert!(file.read(&mut pages, 8192).is_err());
    }
}
