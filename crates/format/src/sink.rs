//! Where finished blocks go: files, one a stripe, or memory.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use tiergraph_core::{Error, ErrorKind, Result, crc32c};

use crate::manifest::{FileEntry, FileKind};
use crate::salt::Salt;

/// A receiver of finished blocks, which come in the order of their numbers.
///
/// All blocks have one size, except that the last may be shorter.
pub trait BlockSink {
    /// Takes the next block.
    fn put(&mut self, block: &[u8]) -> Result<()>;

    /// The salt of the checksums of the blocks and pages that the sink receives.
    fn salt(&self) -> Salt {
        Salt::NONE
    }
}

/// How much is written to a stripe between two advices to the kernel to drop it from memory.
const ADVICE_BYTES: u64 = 32 << 20;

/// A sink that writes a file: block i to stripe i mod n, at `(i / n) × block_bytes`.
///
/// Written bytes are soon pushed out of the page cache: advising `DONTNEED` starts the writeback of
/// dirty pages, and drops them when it is given again after the next 32 MiB.
#[derive(Debug)]
pub struct FileSink {
    stripes: Vec<Stripe>,
    kind: FileKind,
    salt: Salt,
    block_bytes: u32,
    blocks: u64,
    bytes: u64,
    crc: u32,
}

#[derive(Debug)]
struct Stripe {
    file: File,
    path: PathBuf,
    written: u64,
    advised: u64,
}

impl FileSink {
    /// Creates one file for each stripe; `paths` has one path when the file is not striped.
    pub fn create(paths: &[PathBuf], kind: FileKind, block_bytes: u32) -> Result<Self> {
        let stripes = paths.iter().map(|path| Stripe::create(path)).collect::<Result<Vec<_>>>()?;
        let salt = Salt::NONE;
        Ok(Self { stripes, kind, salt, block_bytes, blocks: 0, bytes: 0, crc: 0 })
    }

    /// The same sink, with the salt of a build's file.
    #[must_use]
    pub fn salted(self, salt: Salt) -> Self {
        Self { salt, ..self }
    }

    /// The paths of the file, one a stripe.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.stripes.iter().map(|stripe| stripe.path.as_path())
    }

    /// Forces the file to the device (`fsync`) and returns its entry for the manifest.
    pub fn finish(self) -> Result<FileEntry> {
        for stripe in &self.stripes {
            let sync = |e| Error::io("write", stripe.path.display(), e);
            stripe.file.sync_all().map_err(sync)?;
            stripe.advise();
        }
        Ok(FileEntry {
            kind: self.kind,
            bytes: self.bytes,
            blocks: self.blocks,
            crc32c: self.crc,
            chunks: Vec::new(),
        })
    }
}

impl BlockSink for FileSink {
    fn put(&mut self, block: &[u8]) -> Result<()> {
        let size = u64::from(self.block_bytes);
        if block.len() as u64 > size || self.bytes != self.blocks * size {
            return Err(Error::new(ErrorKind::Input, "write block")
                .object(self.blocks)
                .expected(format!("blocks of {size} bytes, of which only the last may be shorter"))
                .got(format!("{} bytes after {}", block.len(), self.bytes)));
        }
        let stripe = (self.blocks % self.stripes.len() as u64) as usize;
        self.stripes[stripe].write(block)?;
        self.crc = crc32c::crc32c_append(self.crc, block);
        self.blocks += 1;
        self.bytes += block.len() as u64;
        Ok(())
    }

    fn salt(&self) -> Salt {
        self.salt
    }
}

impl Stripe {
    fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|e| Error::io("create", path.display(), e))?;
        Ok(Self { file, path: path.to_owned(), written: 0, advised: 0 })
    }

    fn write(&mut self, block: &[u8]) -> Result<()> {
        self.file.write_all(block).map_err(|e| Error::io("write", self.path.display(), e))?;
        self.written += block.len() as u64;
        if self.written - self.advised >= ADVICE_BYTES {
            self.advise();
            self.advised = self.written;
        }
        Ok(())
    }

    /// Advice only: a file system that ignores it costs page cache, not correctness.
    fn advise(&self) {
        let from = self.advised.saturating_sub(ADVICE_BYTES);
        // No length: to the end of the file.
        let _ = fadvise(&self.file, from, None, Advice::DontNeed);
    }
}

/// A sink that keeps the blocks in memory: for tests, and for graphs that never reach a disk.
#[derive(Debug, Clone, Default)]
pub struct VecSink {
    /// The blocks, in order.
    pub blocks: Vec<Vec<u8>>,
}

impl BlockSink for VecSink {
    fn put(&mut self, block: &[u8]) -> Result<()> {
        self.blocks.push(block.to_vec());
        Ok(())
    }
}

impl<S: BlockSink + ?Sized> BlockSink for &mut S {
    fn put(&mut self, block: &[u8]) -> Result<()> {
        (**self).put(block)
    }

    fn salt(&self) -> Salt {
        (**self).salt()
    }
}
