//! Passes over `*.blocks` of codec `raw`.

use tiergraph_cache::BlockKey;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::block;
use tiergraph_format::raw::{Ids, RawBlock, WeightSlice};
use tiergraph_io::FileId;

use crate::plan::Want;
use crate::reads::Then;
use crate::{Direction, Graph};

/// What one block holds of one vertex's list.
#[derive(Debug, Clone, Copy)]
pub struct RawRow<'a> {
    /// The vertex whose list it is.
    pub vertex: u64,
    /// Its neighbours.
    pub neighbors: &'a [u32],
    /// The same, and the lists after it as far as they are known: what to prefetch.
    pub onward: &'a [u32],
    /// Their weights.
    pub weights: WeightSlice<'a>,
}

impl Graph {
    pub(crate) fn raw_file(&self, direction: Direction) -> Option<(Direction, FileId)> {
        // An undirected graph has one file for both.
        let wanted = if self.manifest().directed { direction } else { Direction::Out };
        self.raw.iter().find(|(d, _)| *d == wanted).copied()
    }

    /// Whether the graph has plain ids.
    pub fn has_raw(&self) -> bool {
        !self.raw.is_empty()
    }

    /// Bytes of the plain ids of one direction.
    pub fn raw_bytes(&self, direction: Direction) -> u64 {
        let name = self.raw_file(direction).map(|(d, _)| format!("{d}.blocks"));
        name.and_then(|n| self.manifest().files.get(&n)).map_or(0, |f| f.bytes)
    }

    /// Hands the neighbours of every vertex to `visit`, block by block.
    ///
    /// # Errors
    /// As [`Graph::tile_pass`]; ids of 2³² and more do not fit the vertex state in memory.
    pub fn raw_pass<W>(
        &self,
        direction: Direction,
        then: Then,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawRow<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let Some((direction, file)) = self.raw_file(direction) else {
            return Err(self.missing_layout("pass over", "raw blocks"));
        };
        let name = format!("{direction}.blocks");
        let entry = self.dir().entry(&name)?;
        let size = self.block_bytes() as u64;
        let number = match direction {
            Direction::Out => 3,
            Direction::In => 4,
        };
        let want = |block: u64| {
            let key = Some(BlockKey { file: number, block });
            Want { file, offset: block * size, len: size as usize, key }
        };
        let wants: Vec<Want> = (0..entry.blocks).map(want).collect();
        let name = self.file_name(&name);
        let one = |(state, narrow): &mut (W, Vec<u32>), i: usize, bytes: &[u8], fresh: bool| {
            if fresh {
                block::check(bytes, &name, i as u64)?;
            }
            let block = RawBlock::parse(bytes)?;
            let mut left = if let Ids::U32(ids) = block.ids() { ids } else { &[] };
            for (vertex, list) in block.iter() {
                let (neighbors, onward) = match list.ids {
                    Ids::U32(ids) => {
                        let onward = left;
                        left = &left[ids.len()..];
                        (ids, onward)
                    }
                    Ids::U64(ids) => {
                        narrow.clear();
                        narrow.extend(ids.iter().map(|&id| id as u32));
                        if ids.iter().any(|&id| id > u64::from(u32::MAX)) {
                            return Err(wide(vertex));
                        }
                        (narrow.as_slice(), narrow.as_slice())
                    }
                };
                let weights = list.weights;
                visit(state, &RawRow { vertex, neighbors, onward, weights })?;
            }
            Ok(())
        };
        self.read_all(&wants, then, |w| (begin(w), Vec::new()), one, |(state, _)| end(state))
    }
}

fn wide(vertex: u64) -> Error {
    Error::new(ErrorKind::Input, "pass over the neighbours of vertex")
        .object(vertex)
        .expected("ids below 2^32, which vertex state in memory is made for")
}
