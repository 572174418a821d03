//! Temporary files that never stay in the page cache.
//!
//! They are unlinked at once, so that not even a killed build leaves them behind.
//!
//! Where a file system tells the device of free space (`discard`), freeing a file takes a second for
//! every few hundred MB, so a thread of its own closes it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tiergraph_core::{Error, Result};

use super::direct::DirectFile;
use super::scratch::Held;

/// A file that is written once and read in pieces, and that is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    /// `None` only while it is dropped.
    file: Option<DirectFile>,
    end: AtomicU64,
    /// The counter of temporary files' bytes, if they are counted.
    held: Option<Arc<Held>>,
}

impl TemporaryFile {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = DirectFile::create(path)?;
        std::fs::remove_file(path).map_err(|e| Error::io("remove", path.display(), e))?;
        Ok(Self { file: Some(file), end: AtomicU64::new(0), held: None })
    }

    /// Counts the file's bytes in `held`, from the first on.
    pub(super) fn counted(mut self, held: Arc<Held>) -> Self {
        self.held = Some(held);
        self
    }

    /// Appends whole pages from an aligned buffer; returns their byte offset in the file.
    pub(crate) fn append(&self, pages: &[u8]) -> Result<u64> {
        let offset = self.end.fetch_add(pages.len() as u64, Ordering::Relaxed);
        let Some(file) = &self.file else { return Ok(offset) };
        file.write(pages, offset)?;
        self.held.iter().for_each(|held| held.add(pages.len() as u64));
        Ok(offset)
    }

    /// Reads whole pages into an aligned buffer.
    pub(crate) fn read(&self, pages: &mut [u8], offset: u64) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.read(pages, offset))
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
