//! What a software controller's namespace holds.

use std::fmt;

use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

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

    fn write(&self, offset: u64, from: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        from.copy_to(at, &self.memory, offset as usize, len);
        Ok(())
    }
}
