//! Files of blocks, as passes over a device's memory name them.

use std::fs::File;
use std::os::unix::fs::FileExt;

use tiergraph_cache::BlockKey;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::block;
use tiergraph_format::salt::Salt;
use tiergraph_io::FileId;
use tiergraph_io::pipeline::Request;

use crate::{Direction, Graph};

/// A file of blocks that passes read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockFile {
    /// `tiles.blocks`.
    Tiles,
    /// `out.blocks` or `in.blocks`; of an undirected graph, `out.blocks` either way.
    Raw(Direction),
}

impl Graph {
    /// How many blocks a file has.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn blocks_of(&self, file: BlockFile) -> Result<u32> {
        let (_, name) = self.block_file(file)?;
        Ok(self.dir().entry(&name)?.blocks as u32)
    }

    /// The requests of whole `blocks` of a file, for workers that a device's consumers have. The device
    /// checks what it gets, so that these blocks are never taken for ones that the CPU has checked.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn block_requests(&self, file: BlockFile, blocks: &[u32]) -> Result<Vec<Request>> {
        let (id, _) = self.block_file(file)?;
        let file = match file {
            BlockFile::Tiles => tiergraph_cache::BlockFile::TilesForDevice,
            BlockFile::Raw(Direction::Out) => tiergraph_cache::BlockFile::OutBlocksForDevice,
            BlockFile::Raw(Direction::In) => tiergraph_cache::BlockFile::InBlocksForDevice,
        };
        let len = self.block_bytes();
        let request = |&block: &u32| {
            let key = Some(BlockKey { file, block: block.into() });
            Request { file: id, offset: u64::from(block) * len as u64, len, key }
        };
        Ok(blocks.iter().map(request).collect())
    }

    /// What the checksums of a file's blocks are salted with.
    ///
    /// # Errors
    /// The graph has no such file.
    pub fn salt_of(&self, file: BlockFile) -> Result<Salt> {
        let (_, name) = self.block_file(file)?;
        Ok(self.manifest().salt(&name))
    }

    pub(crate) fn block_file(&self, file: BlockFile) -> Result<(FileId, String)> {
        let found = match file {
            BlockFile::Tiles => self.tiles.as_ref().map(|t| (t.file(), "tiles.blocks".to_owned())),
            BlockFile::Raw(direction) => {
                self.raw_file(direction).map(|(d, raw)| (raw.file, format!("{d}.blocks")))
            }
        };
        found.ok_or_else(|| self.missing_layout("pass over the blocks of", "tiles or raw blocks"))
    }

    /// The error of a block that arrived damaged, from reading it again.
    pub fn damaged_block(&self, file: BlockFile, block: u32) -> Error {
        let read = || -> Result<Error> {
            let (_, name) = self.block_file(file)?;
            let paths = self.dir().paths(&name)?;
            let size = self.block_bytes() as u64;
            let (stripe, unit) =
                (block as usize % paths.len(), u64::from(block) / paths.len() as u64);
            let mut bytes = vec![0; size as usize];
            let opened = File::open(&paths[stripe]).and_then(|file| {
                let left = file.metadata()?.len().saturating_sub(unit * size).min(size);
                file.read_exact_at(&mut bytes[..left as usize], unit * size)
            });
            opened.map_err(|e| Error::io("read", paths[stripe].display(), e))?;
            let salt = self.manifest().salt(&name);
            let name = self.file_name(&name);
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
