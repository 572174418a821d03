//! Passes over `*.blocks` of codec `raw`, which hold neighbour lists as plain ids.

use std::ops::Range;

use tiergraph_cache::BlockKey;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::raw::{Ids, RawBlock, WeightSlice};
use tiergraph_kernels::widest;

use crate::raw_rows::RawFile;
use crate::reads::{Batches, bytes_of, is_fresh};
use crate::{Direction, Graph};
use tiergraph_io::pipeline::{Block, NextPass, Request};

/// The part of one vertex's neighbour list that lies in one block.
#[derive(Debug, Clone, Copy)]
pub struct RawRow<'a> {
    /// The vertex whose list it is.
    pub vertex: u64,
    /// Its neighbours in this block.
    pub neighbors: &'a [u32],
    /// The weights of the arcs to them.
    pub weights: WeightSlice<'a>,
}

/// A view of the neighbour lists in one block.
#[derive(Debug, Clone, Copy)]
pub struct RawLists<'a> {
    /// The vertex that `table` counts from.
    pub first_vertex: u64,
    /// For each list, its vertex (minus `first_vertex`) and where it begins in `ids`; a last entry says
    /// where the last list ends.
    pub table: &'a [[u32; 2]],
    /// The neighbours in all lists, one list after the other.
    pub ids: &'a [u32],
    weights: WeightSlice<'a>,
}

impl<'a> RawLists<'a> {
    /// The lists of `block`; ids that are stored in 64 bits are narrowed into `narrow`.
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

    /// Whether every id is below `vertices`, the number of vertices.
    pub(crate) fn are_below(&self, vertices: usize) -> bool {
        let ends = self.table.iter().rev().skip(1).map(|entry| entry[0]).max();
        let last = self.first_vertex.saturating_add(u64::from(ends.unwrap_or(0)));
        let largest = widest(|| self.ids.iter().fold(0, |largest, &id| largest.max(id)));
        last.max(u64::from(largest)) < vertices as u64 || self.table.len() < 2
    }

    /// The range of vertices that may have lists in this block.
    pub(crate) fn vertices(&self) -> Range<u64> {
        let last = self.table.iter().rev().nth(1).map_or(0, |entry| u64::from(entry[0]) + 1);
        self.first_vertex..self.first_vertex + last
    }

    /// The list of `vertex` in this block, found by bisection; `None` if it has none here.
    pub(crate) fn row(&self, vertex: u64) -> Option<RawRow<'a>> {
        let from = u32::try_from(vertex.checked_sub(self.first_vertex)?).ok()?;
        let (_, listed) = self.table.split_last()?;
        let at = listed.binary_search_by_key(&from, |entry| entry[0]).ok()?;
        let list = self.table[at][1] as usize..self.table[at + 1][1] as usize;
        let (neighbors, weights) = (&self.ids[list.clone()], self.weights.part(list));
        Some(RawRow { vertex, neighbors, weights })
    }

    /// The lists of the block, one by one.
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

/// A view of the neighbour lists of one direction as plain ids, made by [`Graph::raw`]: `out.blocks` or
/// `in.blocks` of codec `raw`, which the graph may lack ([`is_stored`](Self::is_stored)).
#[derive(Clone, Copy)]
pub struct RawBlocks<'g> {
    pub(crate) graph: &'g Graph,
    /// The direction that the file is named after.
    direction: Direction,
    file: Option<&'g RawFile>,
}

impl Graph {
    /// A view of the raw blocks of this direction. An undirected graph has one file for both directions.
    pub fn raw(&self, direction: Direction) -> RawBlocks<'_> {
        let direction = if self.manifest().directed { direction } else { Direction::Out };
        let file = self.raw_files.iter().find(|(d, _)| *d == direction).map(|(_, raw)| raw);
        RawBlocks { graph: self, direction, file }
    }
}

impl<'g> RawBlocks<'g> {
    /// The file, and the first vertices of blocks that were seen; `None` in a graph without raw blocks.
    pub(crate) fn file(self) -> Option<&'g RawFile> {
        self.file
    }

    /// The name of the file, relative to the graph's directory.
    pub(crate) fn name(self) -> String {
        format!("{}.blocks", self.direction)
    }

    /// Whether the graph has raw blocks in this direction.
    pub fn is_stored(self) -> bool {
        self.file.is_some()
    }

    /// Bytes of the file; 0 in a graph without raw blocks.
    pub fn bytes(self) -> u64 {
        self.graph.manifest().files.get(&self.name()).map_or(0, |file| file.bytes)
    }

    /// Hands every neighbour list to `visit`, one vertex's part in one block at a time.
    ///
    /// # Errors
    /// Those of [`Self::lists_pass`].
    pub fn pass<W>(
        self,
        next: NextPass,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawRow<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let lists = |state: &mut W, lists: &RawLists<'_>| {
            lists.rows().try_for_each(|row| visit(state, &row))
        };
        self.lists_pass(next, begin, lists, end)
    }

    /// Hands the lists of one block to `visit`; returns whether there are blocks after it.
    ///
    /// # Errors
    /// Those of [`Self::lists_pass`].
    pub fn block_pass<W>(
        self,
        block: u64,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawRow<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<bool> {
        let raw = self.stored()?;
        let request: Vec<Request> =
            (block..raw.blocks().min(block + 1)).map(|block| self.request(raw, block)).collect();
        let lists = |state: &mut W, lists: &RawLists<'_>| {
            lists.rows().try_for_each(|row| visit(state, &row))
        };
        self.requests_pass(&request, NextPass::Unknown, begin, lists, end)?;
        Ok(block + 1 < raw.blocks())
    }

    /// Hands every neighbour list to `visit`, one block's lists at a time.
    ///
    /// # Errors
    /// Those of [`Tiles::pass`](crate::Tiles::pass); ids of 2³² and more do not fit the vertex state in memory.
    pub fn lists_pass<W>(
        self,
        next: NextPass,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawLists<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let raw = self.stored()?;
        let requests: Vec<Request> =
            (0..raw.blocks()).map(|block| self.request(raw, block)).collect();
        self.requests_pass(&requests, next, begin, visit, end)
    }

    /// The opened file; an error in a graph without raw blocks.
    fn stored(self) -> Result<&'g RawFile> {
        self.file.ok_or_else(|| self.graph.missing_layout("pass over", "raw blocks"))
    }

    /// The read request for the whole block `block` of `raw`, the file of this view.
    pub(crate) fn request(self, raw: &RawFile, block: u64) -> Request {
        let len = self.graph.block_bytes();
        let key = Some(BlockKey { file: self.direction.blocks_file(), block });
        Request { file: raw.file, offset: block * len as u64, len, key }
    }

    /// Hands the lists of the blocks that `requests` name to `visit`, one block's at a time.
    pub(crate) fn requests_pass<W>(
        self,
        requests: &[Request],
        next: NextPass,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawLists<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let (raw, name) = (self.stored()?, self.name());
        let (salt, name) = (self.graph.manifest().salt(&name), self.graph.file_name(&name));
        let one = |(state, narrow): &mut (W, Vec<u32>), block: &Block| {
            let (bytes, fresh) = (bytes_of(block), is_fresh(block));
            let number = requests[block.number].offset / self.graph.block_bytes() as u64;
            if fresh && !self.graph.is_unchecked() {
                self.graph.check_block(bytes, &name, number, salt)?;
            }
            // What is resident was looked at when it arrived.
            let block = if fresh { RawBlock::parse(bytes)? } else { RawBlock::parse_again(bytes)? };
            raw.see(number, block.header().first_vertex);
            let lists = RawLists::of(&block, narrow)?;
            if fresh && self.graph.is_unchecked() && !lists.are_below(self.graph.vertices()) {
                return Err(strange(&name, number));
            }
            visit(state, &lists)
        };
        self.graph.read_all(
            (requests, next),
            &Batches::NONE,
            |w| (begin(w), Vec::new()),
            |state, blocks| blocks.iter().try_for_each(|block| one(state, block)),
            |(state, _)| end(state),
        )
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
