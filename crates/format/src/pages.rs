//! Files of pages without headers, with the CRC-32C of every page in a file of its own.
//!
//! Rows of features and columns of edges are such files: what they hold fills whole pages, any page
//! can be read and checked alone, and blocks of pages are striped.

use tiergraph_core::{Error, ErrorKind, Result, crc32c};

use crate::flat::FlatWriter;
use crate::manifest::FileEntry;
use crate::sink::BlockSink;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// A writer of a file of pages: streams bytes at ascending offsets to a sink of blocks, and the checksum
/// of every page to a flat file. Bytes never written are zero. Holds one block.
#[derive(Debug)]
pub struct PageWriter<S> {
    sink: S,
    crcs: FlatWriter,
    block: Vec<u8>,
    /// Blocks that were written.
    blocks: u64,
}

impl<S: BlockSink> PageWriter<S> {
    /// A writer of blocks of `block_bytes` (whole pages) to `sink`, and of checksums to `crcs`.
    pub fn new(block_bytes: u32, sink: S, crcs: FlatWriter) -> Self {
        Self { sink, crcs, block: vec![0; block_bytes as usize], blocks: 0 }
    }

    /// Writes `bytes` at `offset`, which is not below the end of what was written before.
    pub fn write_at(&mut self, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        let size = self.block.len();
        while !bytes.is_empty() {
            while self.blocks < offset / size as u64 {
                self.put_block(size)?;
            }
            let at = (offset % size as u64) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(size - at));
            self.block[at..at + now.len()].copy_from_slice(now);
            offset += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Ends the file at `bytes` bytes, whole pages; returns the sink, and the manifest's entry of the
    /// file of checksums.
    pub fn finish(mut self, bytes: u64) -> Result<(S, FileEntry)> {
        let size = self.block.len();
        while bytes - self.blocks * size as u64 > size as u64 {
            self.put_block(size)?;
        }
        let rest = (bytes - self.blocks * size as u64) as usize;
        if rest > 0 {
            self.put_block(rest)?;
        }
        Ok((self.sink, self.crcs.finish()?))
    }

    fn put_block(&mut self, bytes: usize) -> Result<()> {
        let block = &self.block[..bytes];
        let crcs: Vec<u32> = block.chunks(PAGE_BYTES).map(crc32c::crc32c).collect();
        self.crcs.extend(&crcs)?;
        self.sink.put(block)?;
        self.block.fill(0);
        self.blocks += 1;
        Ok(())
    }
}

/// Checks page `number` of `file` against `crcs`, the checksums of all its pages.
///
/// # Errors
/// [`ErrorKind::Format`] that names the file, the page and its offset.
pub fn check_page(page: &[u8], crcs: &[u32], file: &str, number: u64) -> Result<()> {
    let computed = crc32c::crc32c(page);
    let stored = usize::try_from(number).ok().and_then(|number| crcs.get(number));
    if page.len() == PAGE_BYTES && stored == Some(&computed) {
        return Ok(());
    }
    let offset = number.saturating_mul(PAGE_BYTES as u64);
    let bad = Error::new(ErrorKind::Format, format!("use page {number} (offset {offset}) of"))
        .object(file)
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it");
    Err(match stored {
        _ if page.len() != PAGE_BYTES => {
            bad.expected(format!("{PAGE_BYTES} bytes")).got(format!("{} bytes", page.len()))
        }
        Some(stored) => {
            bad.expected(format!("CRC-32C {stored:08x}")).got(format!("{computed:08x}"))
        }
        None => bad.expected(format!("one of {} pages", crcs.len())),
    })
}
