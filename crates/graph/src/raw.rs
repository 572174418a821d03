//! Passes over `*.blocks` of codec `raw`.

use std::ops::Range;

use tiergraph_cache::BlockKey;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::block;
use tiergraph_format::raw::{Ids, RawBlock, WeightSlice};
use tiergraph_kernels::widest;

use crate::raw_rows::RawFile;
use crate::{Direction, Graph};
use tiergraph_io::pipeline::NextPass;
use tiergraph_io::pipeline::Request;

/// What one block holds of one vertex's list.
#[derive(Debug, Clone, Copy)]
pub struct RawRow<'a> {
    /// The vertex whose list it is.
    pub vertex: u64,
    /// Its neighbours.
    pub neighbors: &'a [u32],
    /// Their weights.
    pub weights: WeightSlice<'a>,
}

/// The lists of one block.
#[derive(Debug, Clone, Copy)]
pub struct RawLists<'a> {
    /// The vertex that `table` counts from.
    pub first_vertex: u64,
    /// Each list's vertex, counted from the first, and where it begins in `ids`; then where the
    /// last one ends.
    pub table: &'a [[u32; 2]],
    /// The neighbours, one list after the other.
    pub ids: &'a [u32],
    weights: WeightSlice<'a>,
}

impl<'a> RawLists<'a> {
    /// Of a block; `narrow` is room for ids that are stored in 64 bits.
    pub(crate) fn of(block: &RawBlock<'a>, narrow: &'a mut Vec<u32>) -> Result<Self> {
        let (first_vertex, table) = (block.header().first_vertex, block.table());
        let ids = match block.ids() {
            Ids::U32(ids) => ids,
            Ids::U64(ids) => {
                narrow.clear();
                for (i, &id) in ids.iter().enumerate() {
                    narrow.push(u32::try_from(id).map_err(|_| {
                        let list = table.partition_point(|&[_, begin]| begin as usize <= i) - 1;
                        wide(first_vertex + u64::from(table[list][0]), id)
                    })?);
                }
                narrow
            }
        };
        Ok(Self { first_vertex, table, ids, weights: block.weights() })
    }

    /// Whether every id is that of a vertex.
    pub(crate) fn are_below(&self, vertices: usize) -> bool {
        let ends = self.table.iter().rev().skip(1).map(|entry| entry[0]).max();
        let last = self.first_vertex.saturating_add(u64::from(ends.unwrap_or(0)));
        let largest = widest(|| self.ids.iter().fold(0, |largest, &id| largest.max(id)));
        last.max(u64::from(largest)) < vertices as u64 || self.table.len() < 2
    }

    /// The vertices that may have lists here.
    pub(crate) fn vertices(&self) -> Range<u64> {
        let last = self.table.iter().rev().nth(1).map_or(0, |entry| u64::from(entry[0]) + 1);
        self.first_vertex..self.first_vertex + last
    }

    /// The list of `vertex`, found by bisection.
    pub(crate) fn row(&self, vertex: u64) -> Option<RawRow<'a>> {
        let from = u32::try_from(vertex.checked_sub(self.first_vertex)?).ok()?;
        let (_, listed) = self.table.split_last()?;
        let at = listed.binary_search_by_key(&from, |entry| entry[0]).ok()?;
        let list = self.table[at][1] as usize..self.table[at + 1][1] as usize;
        let (neighbors, weights) = (&self.ids[list.clone()], self.weights.part(list));
        Some(RawRow { vertex, neighbors, weights })
    }

    /// The lists one by one.
    pub fn rows(&self) -> impl Iterator<Item = RawRow<'a>> {
        let Self { first_vertex, ids, weights, .. } = *self;
        self.table.windows(2).map(move |entries| {
            let list = entries[0][1] as usize..entries[1][1] as usize;
            RawRow {
                vertex: first_vertex + u64::from(entries[0][0]),
                neighbors: &ids[list.clone()],
                weights: weights.part(list),
            }
        })
    }
}

impl Graph {
    pub(crate) fn raw_file(&self, direction: Direction) -> Option<(Direction, &RawFile)> {
        // An undirected graph has one file for both.
        let wanted = if self.manifest().directed { direction } else { Direction::Out };
        self.raw.iter().find(|(d, _)| *d == wanted).map(|(d, raw)| (*d, raw))
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

    /// Hands the neighbours of every vertex to `visit`, vertex by vertex.
    ///
    /// # Errors
    /// As [`Graph::raw_lists_pass`].
    pub fn raw_pass<W>(
        &self,
        direction: Direction,
        next: NextPass,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawRow<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let lists = |state: &mut W, lists: &RawLists<'_>| {
            lists.rows().try_for_each(|row| visit(state, &row))
        };
        self.raw_lists_pass(direction, next, begin, lists, end)
    }

    /// Hands the neighbours of every vertex to `visit`, block by block.
    ///
    /// # Errors
    /// As [`Graph::tile_pass`]; ids of 2³² and more do not fit the vertex state in memory.
    pub fn raw_lists_pass<W>(
        &self,
        direction: Direction,
        next: NextPass,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawLists<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let Some((direction, raw)) = self.raw_file(direction) else {
            return Err(self.missing_layout("pass over", "raw blocks"));
        };
        let blocks = self.dir().entry(&format!("{direction}.blocks"))?.blocks;
        let requests: Vec<Request> =
            (0..blocks).map(|block| self.want_raw(direction, raw, block)).collect();
        self.raw_wants_pass(direction, &requests, next, begin, visit, end)
    }

    /// A block of the file that [`Graph::raw_file`] gave.
    pub(crate) fn want_raw(&self, direction: Direction, raw: &RawFile, block: u64) -> Request {
        let len = self.block_bytes();
        let key = Some(BlockKey { file: direction.blocks_file(), block });
        Request { file: raw.file, offset: block * len as u64, len, key }
    }

    /// Hands the lists of the wanted blocks to `visit`.
    pub(crate) fn raw_wants_pass<W>(
        &self,
        direction: Direction,
        requests: &[Request],
        next: NextPass,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawLists<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let Some((_, raw)) = self.raw_file(direction) else {
            return Err(self.missing_layout("pass over", "raw blocks"));
        };
        let name = format!("{direction}.blocks");
        let (salt, name) = (self.manifest().salt(&name), self.file_name(&name));
        let one = |(state, narrow): &mut (W, Vec<u32>), i: usize, bytes: &[u8], fresh: bool| {
            let number = requests[i].offset / self.block_bytes() as u64;
            if fresh && !self.is_unchecked() {
                block::check(bytes, &name, number, salt)?;
            }
            // What is resident was looked at when it arrived.
            let block = if fresh { RawBlock::parse(bytes)? } else { RawBlock::parse_again(bytes)? };
            raw.see(number, block.header().first_vertex);
            let lists = RawLists::of(&block, narrow)?;
            if fresh && self.is_unchecked() && !lists.are_below(self.vertices()) {
                return Err(strange(&name, number));
            }
            visit(state, &lists)
        };
        self.read_all(requests, next, |w| (begin(w), Vec::new()), one, |(state, _)| end(state))
    }
}

pub(crate) fn strange(file: &str, block: u64) -> Error {
    Error::new(ErrorKind::Format, format!("use block {block} of"))
        .object(file)
        .expected("ids of vertices")
        .got("others: the block is damaged")
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
}

fn wide(vertex: u64, id: u64) -> Error {
    Error::new(ErrorKind::Input, "pass over the neighbours of vertex")
        .object(vertex)
        .expected("ids below 2^32, which vertex state in memory is made for")
        .got(id)
}
