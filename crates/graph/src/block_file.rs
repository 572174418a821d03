//! The block files that passes on a device read whole: their sizes, requests, salts and errors.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use tiergraph_cache::BlockKey;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::block;
use tiergraph_format::salt::Salt;
use tiergraph_io::FileId;
use tiergraph_io::pipeline::Request;

use crate::{Direction, Graph};

impl Graph {
    /// Compares a block of a pass, which was just read, with its checksum, and counts the time.
    ///
    /// # Errors
    /// As [`block::check`].
    pub(crate) fn check_block(
        &self,
        bytes: &[u8],
        file: &str,
        number: u64,
        salt: Salt,
    ) -> Result<()> {
        let since = Instant::now();
        block::check(bytes, file, number, salt)?;
        self.totals().checked(since);
        Ok(())
    }
}

/// The name of a block file that passes on a device read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockFile {
    /// `tiles.blocks`: the packed tiles of the adjacency.
    Tiles,
    /// `out.blocks` or `in.blocks`: plain ids. An undirected graph has only `out.blocks`.
    Raw(Direction),
}

/// A view of one block file of a graph, made by [`Graph::blocks`].
#[derive(Clone, Copy)]
pub struct Blocks<'g> {
    graph: &'g Graph,
    file: BlockFile,
}

impl Graph {
    /// A view of the block file `file`, for passes on a device; nothing is read yet.
    pub fn blocks(&self, file: BlockFile) -> Blocks<'_> {
        Blocks { graph: self, file }
    }
}

impl Blocks<'_> {
    /// The number of blocks in the file.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn count(self) -> Result<u32> {
        let (_, name) = self.find()?;
        Ok(self.graph.dir().entry(&name)?.blocks as u32)
    }

    /// Read requests for whole `blocks`, by number, for a pass on a device. The device compares
    /// checksums itself: the requests' cache keys are not those of blocks that the CPU has checked.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn requests(self, blocks: &[u32]) -> Result<Vec<Request>> {
        let (id, _) = self.find()?;
        let file = match self.file {
            BlockFile::Tiles => tiergraph_cache::BlockFile::TilesForDevice,
            BlockFile::Raw(Direction::Out) => tiergraph_cache::BlockFile::OutBlocksForDevice,
            BlockFile::Raw(Direction::In) => tiergraph_cache::BlockFile::InBlocksForDevice,
        };
        let len = self.graph.block_bytes();
        let request = |&block: &u32| {
            let key = Some(BlockKey { file, block: block.into() });
            Request { file: id, offset: u64::from(block) * len as u64, len, key }
        };
        Ok(blocks.iter().map(request).collect())
    }

    /// How many of `blocks` such requests would have to read: those that are not in the host's memory.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn missing(self, blocks: &[u32]) -> Result<usize> {
        let is_missing =
            |request: &Request| request.key.is_none_or(|key| !self.graph.cache().contains(key));
        Ok(self.requests(blocks)?.iter().filter(|&request| is_missing(request)).count())
    }

    /// The salt that the checksums of the file's blocks are computed with.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn salt(self) -> Result<Salt> {
        let (_, name) = self.find()?;
        Ok(self.graph.manifest().salt(&name))
    }

    fn find(self) -> Result<(FileId, String)> {
        let found = match self.file {
            BlockFile::Tiles => {
                self.graph.tile_file.as_ref().map(|tiles| (tiles.file(), "tiles.blocks".to_owned()))
            }
            BlockFile::Raw(direction) => {
                let raw = self.graph.raw(direction);
                raw.file().map(|file| (file.file, raw.name()))
            }
        };
        found.ok_or_else(|| {
            self.graph.missing_layout("pass over the blocks of", "tiles or raw blocks")
        })
    }

    /// The error of a `block` that the device found damaged; reads it again to see if the file is.
    pub fn damaged(self, block: u32) -> Error {
        let read = || -> Result<Error> {
            let (_, name) = self.find()?;
            let paths = self.graph.dir().paths(&name)?;
            let size = self.graph.block_bytes() as u64;
            let (stripe, unit) =
                (block as usize % paths.len(), u64::from(block) / paths.len() as u64);
            let mut bytes = vec![0; size as usize];
            let opened = File::open(&paths[stripe]).and_then(|file| {
                let left = file.metadata()?.len().saturating_sub(unit * size).min(size);
                file.read_exact_at(&mut bytes[..left as usize], unit * size)
            });
            opened.map_err(|e| Error::io("read", paths[stripe].display(), e))?;
            let salt = self.graph.manifest().salt(&name);
            let name = self.graph.file_name(&name);
            Ok(match block::check(&bytes, &name, block.into(), salt) {
                Err(error) => error,
                Ok(_) => Error::new(ErrorKind::Device, format!("compute on block {block} of"))
                    .object(name)
                    .expected("the bytes that are in the file")
                    .got("others on the device")
                    .hint("run again; if it happens again, check the GPU's memory and its slot"),
            })
        };
        read().unwrap_or_else(|error| error)
    }
}
