//! Temporary files that never stay in the page cache.
//!
//! They are unlinked at once, so that not even a killed process leaves them behind. What was read and is not needed
//! any more is written over: a build's arcs take the places of the edges that they come from.
//!
//! Where a file system tells the device of free space (`discard`), freeing a file takes a second for
//! every few hundred MB, so a thread of its own closes it.

mod direct;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::{Error, Result};

pub use direct::PagesFile;

/// Free places that are looked at before the file grows: those that were freed last.
const LOOKED_AT: usize = 16;

/// The number that the next file of this process gets.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Bytes in temporary files: now, and the most so far; and bytes that were written to them and read from them.
#[derive(Debug, Default)]
pub struct Held {
    now: AtomicU64,
    most: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
}

impl Held {
    fn add(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn remove(&self, bytes: u64) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes now.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The most bytes so far.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// Has the bytes that there are now be the most so far.
    pub fn forget_most(&self) {
        self.most.store(self.now(), Ordering::Relaxed);
    }

    /// Bytes that were written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes that were read so far.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// A file that is written and read in pieces, and that is gone when it is dropped.
#[derive(Debug)]
pub struct TemporaryFile {
    /// `None` only while it is dropped.
    file: Option<PagesFile>,
    end: AtomicU64,
    /// Places that may be written again.
    free: Mutex<Vec<Range<u64>>>,
    /// The counter of temporary files' bytes, if they are counted.
    held: Option<Arc<Held>>,
}

impl TemporaryFile {
    /// Creates one in `folder`, by a name of which there is one.
    ///
    /// # Errors
    /// Those of [`create`](Self::create).
    pub fn create_in(folder: &Path) -> Result<Self> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self::create(&folder.join(format!(".tiergraph-{}-{number}", std::process::id())))
    }

    /// Creates it at `path`, which must not be there and is not there afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) where the system refuses.
    pub fn create(path: &Path) -> Result<Self> {
        let file = PagesFile::create(path)?;
        std::fs::remove_file(path).map_err(|e| Error::io("remove", path.display(), e))?;
        let (end, free) = (AtomicU64::new(0), Mutex::default());
        Ok(Self { file: Some(file), end, free, held: None })
    }

    /// Counts the file's bytes in `held`, from the first on.
    pub fn counted(mut self, held: Arc<Held>) -> Self {
        self.held = Some(held);
        self
    }

    /// Writes whole pages from an aligned buffer, where there is a free place or else at the end; returns their
    /// byte offset in the file.
    ///
    /// # Errors
    /// Those of the system, such as a full disk.
    pub fn append(&self, pages: &[u8]) -> Result<u64> {
        let bytes = pages.len() as u64;
        let (offset, grows) = match self.take_free(bytes) {
            Some(offset) => (offset, false),
            None => (self.end.fetch_add(bytes, Ordering::Relaxed), true),
        };
        let Some(file) = &self.file else { return Ok(offset) };
        file.write(pages, offset)?;
        if let Some(held) = &self.held {
            held.written.fetch_add(bytes, Ordering::Relaxed);
            if grows {
                held.add(bytes);
            }
        }
        Ok(offset)
    }

    /// Takes a free place of some bytes.
    fn take_free(&self, bytes: u64) -> Option<u64> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let looked_at = free.len().saturating_sub(LOOKED_AT)..free.len();
        let fits = |place: &usize| free[*place].end - free[*place].start >= bytes;
        let found = looked_at.rev().find(fits)?;
        let offset = free[found].start;
        free[found].start += bytes;
        if free[found].is_empty() {
            free.swap_remove(found);
        }
        Some(offset)
    }

    /// Lets what was appended be written over.
    pub fn release(&self, place: Range<u64>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match free.last_mut() {
            Some(last) if last.end == place.start => last.end = place.end,
            _ => free.push(place),
        }
    }

    /// Reads whole pages into an aligned buffer.
    ///
    /// # Errors
    /// Those of the system, and pages behind the file's end.
    pub fn read(&self, pages: &mut [u8], offset: u64) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.read(pages, offset)?;
        self.held.iter().for_each(|held| {
            held.read.fetch_add(pages.len() as u64, Ordering::Relaxed);
        });
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

    #[test]
    fn what_is_released_is_written_over_and_the_file_does_not_grow() {
        let dir = tempfile::tempdir().unwrap();
        let file = TemporaryFile::create(&dir.path().join("t")).unwrap();
        let page = AlignedBuf::zeroed(4096).unwrap();
        let pages = AlignedBuf::zeroed(16384).unwrap();
        assert_eq!((file.append(&pages).unwrap(), file.append(&page).unwrap()), (0, 16384));
        file.release(0..16384);
        let offsets = [(); 5].map(|()| file.append(&page).unwrap());
        assert_eq!(offsets, [0, 4096, 8192, 12288, 20480]);
        file.release(4096..8192);
        assert_eq!(file.append(&pages).unwrap(), 24576);
        assert_eq!(file.append(&page).unwrap(), 4096);
    }
}
