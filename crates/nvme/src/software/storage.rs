//! What a software controller's namespace holds.

use std::fmt;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use super::FileRead;
use crate::SharedMemory;
use crate::completion::Status;

/// The bytes of a namespace. Several threads may move bytes at a time.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Bytes of the namespace: whole blocks.
    fn bytes(&self) -> u64;

    /// Copies `len` bytes from `offset` on to byte `at` of `to`; all of them are there.
    ///
    /// # Errors
    /// The status of the command.
    fn read(&self, offset: u64, to: &SharedMemory, at: usize, len: usize) -> Result<(), Status>;

    /// Lists the reads of files by which `len` bytes from `offset` on come to byte `at` of `to`; all of them
    /// are there. What needs no file is there at once. False, with nothing listed, of a storage in memory.
    fn plan(
        &self,
        _offset: u64,
        _to: &SharedMemory,
        _at: usize,
        _len: usize,
        _reads: &mut dyn FnMut(FileRead),
    ) -> bool {
        false
    }

    /// Begins to fetch `len` bytes from `offset` on, all of which are there: they are read soon.
    fn prefetch(&self, _offset: u64, _len: usize) {}

    /// Copies `len` bytes from byte `at` of `from` to those from `offset` on; all of them are there.
    ///
    /// # Errors
    /// The status of the command: of a namespace that is only read, that there is no such command.
    fn write(
        &self,
        _offset: u64,
        _from: &SharedMemory,
        _at: usize,
        _len: usize,
    ) -> Result<(), Status> {
        Err(Status::INVALID_OPCODE)
    }
}

impl<S: Storage + ?Sized> Storage for Arc<S> {
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }

    fn read(&self, offset: u64, to: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        (**self).read(offset, to, at, len)
    }

    fn plan(
        &self,
        offset: u64,
        to: &SharedMemory,
        at: usize,
        len: usize,
        reads: &mut dyn FnMut(FileRead),
    ) -> bool {
        (**self).plan(offset, to, at, len, reads)
    }

    fn prefetch(&self, offset: u64, len: usize) {
        (**self).prefetch(offset, len);
    }

    fn write(&self, offset: u64, from: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        (**self).write(offset, from, at, len)
    }
}

/// Bytes in memory, which can be written.
#[derive(Debug)]
pub struct MemoryStorage {
    memory: SharedMemory,
    len: usize,
}

impl MemoryStorage {
    /// A copy of `content`, whose length is that of whole blocks.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub fn new(content: &[u8]) -> Result<Self> {
        let mut memory = AlignedBuf::zeroed(content.len())?;
        memory[..content.len()].copy_from_slice(content);
        Ok(Self { memory: SharedMemory::from_buffer(memory), len: content.len() })
    }
}

impl Storage for MemoryStorage {
    fn bytes(&self) -> u64 {
        self.len as u64
    }

    fn read(&self, offset: u64, to: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        self.memory.copy_to(offset as usize, to, at, len);
        Ok(())
    }

    fn prefetch(&self, offset: u64, len: usize) {
        self.memory.prefetch(offset as usize, len);
    }

    fn write(&self, offset: u64, from: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        from.copy_to(at, &self.memory, offset as usize, len);
        Ok(())
    }
}

/// The part of a storage that one of several drives holds, to be read: unit i lies on drive i mod n, and
/// behind the end are zeros.
#[derive(Debug)]
pub struct StripedStorage<S> {
    whole: S,
    drive: u64,
    drives: u64,
    unit_bytes: u64,
}

impl<S: Storage> StripedStorage<S> {
    /// What drive number `drive` of `drives` holds of `whole`, in units of `unit_bytes`.
    pub fn new(whole: S, drive: usize, drives: usize, unit_bytes: u64) -> Self {
        Self { whole, drive: drive as u64, drives: drives as u64, unit_bytes }
    }

    /// The pieces of the whole in the drive's `len` bytes from `offset` on, whose first is byte `at` of memory.
    fn pieces(&self, offset: u64, at: usize, len: usize) -> impl Iterator<Item = StripedPiece> {
        let mut done = 0;
        std::iter::from_fn(move || {
            if done == len {
                return None;
            }
            let on_drive = offset + done as u64;
            let (unit, within) = (on_drive / self.unit_bytes, on_drive % self.unit_bytes);
            let offset = (unit * self.drives + self.drive) * self.unit_bytes + within;
            let count = ((len - done) as u64).min(self.unit_bytes - within);
            let there = count.min(self.whole.bytes().saturating_sub(offset)) as usize;
            let piece =
                StripedPiece { offset, at: at + done, there, behind: count as usize - there };
            done += count as usize;
            Some(piece)
        })
    }
}

/// Bytes of a drive's unit: those of the whole, and how many are behind its end.
struct StripedPiece {
    offset: u64,
    at: usize,
    there: usize,
    behind: usize,
}

impl<S: Storage> Storage for StripedStorage<S> {
    fn bytes(&self) -> u64 {
        self.whole.bytes().div_ceil(self.unit_bytes * self.drives) * self.unit_bytes
    }

    fn prefetch(&self, offset: u64, len: usize) {
        let first = self.pieces(offset, 0, len).next().filter(|piece| piece.there > 0);
        first.into_iter().for_each(|piece| self.whole.prefetch(piece.offset, piece.there));
    }

    fn plan(
        &self,
        offset: u64,
        to: &SharedMemory,
        at: usize,
        len: usize,
        reads: &mut dyn FnMut(FileRead),
    ) -> bool {
        self.pieces(offset, at, len).all(|piece| {
            if piece.there > 0 && !self.whole.plan(piece.offset, to, piece.at, piece.there, reads) {
                return false;
            }
            to.fill_zeros(piece.at + piece.there, piece.behind);
            true
        })
    }

    fn read(&self, offset: u64, to: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        self.pieces(offset, at, len).try_for_each(|piece| {
            to.fill_zeros(piece.at + piece.there, piece.behind);
            match piece.there {
                0 => Ok(()),
                there => self.whole.read(piece.offset, to, piece.at, there),
            }
        })
    }
}

/// Files, one behind the other, each from a page on; what is behind a file's end in its last page is zeros.
/// Those that lie in memory (tmpfs) are read in place, others many at a time ([`FileRead`]).
#[derive(Debug)]
pub struct FileStorage {
    /// In the order of their places.
    files: Vec<Placed>,
    bytes: u64,
    /// Whether all files are.
    is_in_memory: bool,
}

/// A file in a namespace.
#[derive(Debug)]
struct Placed {
    /// The byte of the namespace where it begins.
    start: u64,
    /// Bytes of the file, which must be there.
    len: u64,
    file: File,
    /// The file's bytes, if it lies in memory.
    mapped: Option<SharedMemory>,
}

impl FileStorage {
    /// A namespace of `files`, of which each has as many bytes as is said.
    pub fn new(files: impl IntoIterator<Item = (File, u64)>) -> Self {
        let mut storage = Self { files: Vec::new(), bytes: 0, is_in_memory: true };
        for (file, len) in files {
            let is_mapped = len > 0
                && SharedMemory::is_in_memory(&file)
                && file.metadata().is_ok_and(|about| about.len() >= len);
            let map = || SharedMemory::of_file(&file, len as usize).ok();
            let mapped = is_mapped.then(map).flatten();
            storage.is_in_memory &= mapped.is_some() || len == 0;
            storage.files.push(Placed { start: storage.bytes, len, file, mapped });
            // A drive has a block at least, though all files be empty.
            storage.bytes += len.max(1).next_multiple_of(PAGE_BYTES as u64);
        }
        storage
    }

    /// Copies those of `len` bytes from `offset` on that lie in memory to byte `at` of `to`, and calls `read`
    /// for the others of each file.
    fn each(
        &self,
        offset: u64,
        to: &SharedMemory,
        at: usize,
        len: usize,
        read: &mut dyn FnMut(FileRead),
    ) {
        let (mut at, end) = (at, offset + len as u64);
        let mut number = self.files.partition_point(|placed| placed.start <= offset) - 1;
        let mut offset = offset;
        while offset < end {
            let Placed { start, len, file, mapped } = &self.files[number];
            let next = self.files.get(number + 1).map_or(self.bytes, |next| next.start);
            let (from, count) = (offset - start, (end.min(next) - offset) as usize);
            let there = len.saturating_sub(from).min(count as u64) as usize;
            match mapped {
                Some(mapped) => {
                    mapped.copy_to((from as usize).min(mapped.len()), to, at, there);
                    to.fill_zeros(at + there, count - there);
                }
                None if there == 0 => to.fill_zeros(at, count),
                None => {
                    let file = file.as_raw_fd();
                    read(FileRead { file, offset: from, to: to.clone(), at, len: count, there });
                }
            }
            (offset, at, number) = (offset + count as u64, at + count, number + 1);
        }
    }

    /// The byte of the namespace at which each file begins.
    pub fn starts(&self) -> Vec<u64> {
        self.files.iter().map(|placed| placed.start).collect()
    }
}

impl Storage for FileStorage {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn prefetch(&self, offset: u64, len: usize) {
        let number = self.files.partition_point(|placed| placed.start <= offset) - 1;
        let Placed { start, len: there, mapped, .. } = &self.files[number];
        let from = offset - start;
        if let Some(mapped) = mapped
            && from + len as u64 <= *there
        {
            mapped.prefetch(from as usize, len);
        }
    }

    fn read(&self, offset: u64, to: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        let mut reads = Vec::new();
        self.each(offset, to, at, len, &mut |read| reads.push(read));
        let read = |read: &FileRead| read.finish(0).map_err(|_| Status::UNRECOVERED_READ_ERROR);
        reads.iter().try_for_each(read)
    }

    fn plan(
        &self,
        offset: u64,
        to: &SharedMemory,
        at: usize,
        len: usize,
        reads: &mut dyn FnMut(FileRead),
    ) -> bool {
        if !self.is_in_memory {
            self.each(offset, to, at, len, reads);
        }
        !self.is_in_memory
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn files_in_memory_are_read_as_others_are() {
        let content: Vec<u8> = (0..10_000_u32).map(|i| (i / 7) as u8).collect();
        let read = |folder: &str| {
            let path = std::path::Path::new(folder).join(format!("nvme-{}", std::process::id()));
            let mut file = File::create_new(&path).unwrap();
            let to_read = File::open(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            file.write_all(&content).unwrap();
            let lengths = [10_000, 10_000];
            let storage =
                FileStorage::new(lengths.map(|len| (to_read.try_clone().unwrap(), len as u64)));
            assert_eq!(storage.starts(), [0, 3 * 4096]);
            let to = SharedMemory::from_buffer(AlignedBuf::zeroed(6 * 4096).unwrap());
            to.write_bytes(0, &[99; 6 * 4096]);
            storage.prefetch(512, 4096);
            storage.prefetch(8192, 4096);
            storage.read(512, &to, 512, 6 * 4096 - 512).unwrap();
            let mut bytes = vec![0; 6 * 4096];
            to.read_bytes(0, &mut bytes);
            bytes
        };
        let [in_memory, others] = ["/dev/shm", env!("CARGO_MANIFEST_DIR")].map(read);
        assert!(in_memory == others);
        assert!(others[512..10_000] == content[512..]);
        assert!(others[3 * 4096..][..10_000] == content);
        assert!(others[10_000..3 * 4096].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn drives_hold_every_unit_in_turn_and_zeros_behind_the_end() {
        let content: Vec<u8> = (0..11_u8).flat_map(|page| [page + 1; 4096]).collect();
        let whole = Arc::new(MemoryStorage::new(&content).unwrap());
        // Units of two pages: 0 1 | 6 7, 2 3 | 8 9, 4 5 | 10.
        let expected = [[1, 2, 7, 8], [3, 4, 9, 10], [5, 6, 11, 0]];
        for (drive, pages) in expected.into_iter().enumerate() {
            let striped = StripedStorage::new(Arc::clone(&whole), drive, 3, 8192);
            assert_eq!(striped.bytes(), 4 * 4096);
            let to = SharedMemory::from_buffer(AlignedBuf::zeroed(5 * 4096).unwrap());
            to.write_bytes(0, &[99; 5 * 4096]);
            striped.read(0, &to, 4096, 4 * 4096).unwrap();
            striped.read(4096, &to, 0, 512).unwrap();
            let mut bytes = vec![0; 5 * 4096];
            to.read_bytes(0, &mut bytes);
            assert_eq!([0, 1, 2, 3].map(|page| bytes[(page + 1) * 4096 + 9]), pages);
            assert_eq!((bytes[511], bytes[512]), (pages[1], 99));
            assert!(striped.write(0, &to, 0, 4096).is_err(), "it is only read");
        }
    }
}
