//! What a software controller's namespace holds.

use std::fmt;
use std::fs::File;

use tiergraph_core::Result;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

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

/// Files, one behind the other, each from a page on; what is behind a file's end in its last page is zeros.
#[derive(Debug)]
pub struct FileStorage {
    /// In the order of their places.
    files: Vec<Placed>,
    bytes: u64,
}

/// A file in a namespace.
#[derive(Debug)]
struct Placed {
    /// The byte of the namespace where it begins.
    start: u64,
    /// Bytes of the file, which must be there.
    len: u64,
    file: File,
}

impl FileStorage {
    /// A namespace of `files`, of which each has as many bytes as is said.
    pub fn new(files: impl IntoIterator<Item = (File, u64)>) -> Self {
        let mut storage = Self { files: Vec::new(), bytes: 0 };
        for (file, len) in files {
            storage.files.push(Placed { start: storage.bytes, len, file });
            // A drive has a block at least, though all files be empty.
            storage.bytes += len.max(1).next_multiple_of(PAGE_BYTES as u64);
        }
        storage
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

    fn read(&self, offset: u64, to: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        let (mut at, end) = (at, offset + len as u64);
        let mut number = self.files.partition_point(|placed| placed.start <= offset) - 1;
        let mut offset = offset;
        while offset < end {
            let Placed { start, len, file } = &self.files[number];
            let next = self.files.get(number + 1).map_or(self.bytes, |next| next.start);
            let (from, count) = (offset - start, (end.min(next) - offset) as usize);
            let read = to.read_file(file, from, at, count);
            let read = read.map_err(|_| Status::UNRECOVERED_READ_ERROR)?;
            if (read as u64) < len.saturating_sub(from).min(count as u64) {
                // The file is shorter than it was: zeros would be none of its bytes.
                return Err(Status::UNRECOVERED_READ_ERROR);
            }
            to.fill_zeros(at + read, count - read);
            (offset, at, number) = (offset + count as u64, at + count, number + 1);
        }
        Ok(())
    }
}
