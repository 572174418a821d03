//! Neighbours of few vertices, read from raw blocks.

use tiergraph_core::Result;
use tiergraph_format::block;
use tiergraph_format::raw::{Ids, RawBlock};
use tiergraph_format::rows::PAGE_BYTES;
use tiergraph_format::salt::Salt;
use tiergraph_mem::Reservation;

use super::slots::Slots;
use super::{Extent, KEPT, READS, fewest};
use crate::raw::{RawBlocks, RawLists, strange};
use crate::raw_rows::RawFile;
use crate::{Direction, Graph, PageReader};

/// The fewest blocks that a reader keeps: a list may go on in the next block.
const FEW: u64 = 2;

/// A reader of neighbour lists in raw blocks, which keeps the blocks that it read last.
pub(super) struct NearRaw<'a> {
    graph: &'a Graph,
    blocks: RawBlocks<'a>,
    raw: &'a RawFile,
    name: String,
    salt: Salt,
    reader: PageReader,
    slots: Slots,
    _held: Reservation,
}

impl<'a> NearRaw<'a> {
    /// The least bytes that a reader takes; 0 in a graph without raw blocks.
    pub(super) fn least_bytes(graph: &Graph, direction: Direction) -> u64 {
        let Some(raw) = graph.raw(direction).file() else { return 0 };
        let slot_bytes = Slots::slot_bytes(graph.block_bytes());
        fewest(graph, graph.block_bytes(), raw.blocks(), FEW) * slot_bytes
            + PageReader::most_bytes(graph, READS)
    }

    /// A reader that takes at most `bytes`; `None` without raw blocks, or where that memory is not left.
    pub(super) fn new(graph: &'a Graph, direction: Direction, bytes: u64) -> Result<Option<Self>> {
        let blocks = graph.raw(direction);
        let Some(raw) = blocks.file() else { return Ok(None) };
        let slot_bytes = Slots::slot_bytes(graph.block_bytes());
        let most = bytes.saturating_sub(PageReader::most_bytes(graph, READS)) / slot_bytes;
        let count = most.min(raw.blocks());
        if count < fewest(graph, graph.block_bytes(), raw.blocks(), FEW) || count == 0 {
            return Ok(None);
        }
        let reader = PageReader::with_reads(graph, READS)?;
        let needed = count * slot_bytes + reader.resident_bytes();
        let Some(held) = graph.memory().reserve_if_left(needed, KEPT)? else { return Ok(None) };
        let name = blocks.name();
        let (salt, name) = (graph.manifest().salt(&name), graph.file_name(&name));
        let slots = Slots::new(count as usize, graph.block_bytes())?;
        Ok(Some(Self { graph, blocks, raw, name, salt, reader, slots, _held: held }))
    }
}

impl NearRaw<'_> {
    /// The extent of the lists of `vertices`, which ascend. What part of a block a list takes is not known.
    pub(super) fn extent(&self, vertices: &[u32]) -> Extent {
        let is_here = |number: u64| {
            let key = self.blocks.request(self.raw, number).key;
            self.slots.get(number).is_some()
                || key.is_some_and(|key| self.graph.cache().contains(key))
        };
        let missing = self.raw.blocks_of(vertices).into_iter().filter(|&block| !is_here(block));
        let block = self.graph.block_bytes() as u64;
        let missing = missing.count() as u64 * block;
        Extent { missing, lists: 0, all: self.raw.blocks() * block }
    }

    /// Calls `visit(vertex, neighbour)` for every neighbour of `vertices`, which ascend.
    pub(super) fn visit(
        &mut self,
        vertices: &[u32],
        visit: &mut impl FnMut(u32, u64),
    ) -> Result<()> {
        for number in self.raw.blocks_of(vertices) {
            let key = self.blocks.request(self.raw, number).key;
            match key.and_then(|key| self.graph.cache().get(key)) {
                Some(resident) => walk(&RawBlock::parse_again(&resident)?, vertices, visit),
                None => walk(&RawBlock::parse_again(self.kept(number)?)?, vertices, visit),
            }
        }
        Ok(())
    }

    /// A block in its slot, read and checked if it is not there.
    fn kept(&mut self, number: u64) -> Result<&[u8]> {
        let Self { graph, raw, name, salt, reader, slots, .. } = self;
        let per_block = (graph.block_bytes() / PAGE_BYTES) as u64;
        let first = number * per_block;
        let pages: Vec<u64> = (first..first + per_block).collect();
        slots.get_or(number, |slot| {
            let place = |page: u64, bytes: &[u8]| {
                slot[(page - first) as usize * PAGE_BYTES..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            };
            let read = reader.read(raw.file, &pages, || Ok(false), place)?;
            graph.totals().read_pages(read.bytes, read.reads);
            if !graph.is_unchecked() {
                block::check(slot, name, number, *salt)?;
            }
            let (block, mut narrow) = (RawBlock::parse(slot)?, Vec::new());
            if graph.is_unchecked() {
                let lists = RawLists::of(&block, &mut narrow)?;
                if !lists.are_below(graph.vertices()) {
                    return Err(strange(name, number));
                }
            }
            raw.see(number, block.header().first_vertex);
            Ok(())
        })
    }
}

/// Visits the neighbours that a block has of `vertices`, which ascend.
fn walk(block: &RawBlock<'_>, vertices: &[u32], visit: &mut impl FnMut(u32, u64)) {
    let first = block.header().first_vertex;
    let last = block.table().iter().rev().nth(1).map_or(0, |entry| u64::from(entry[0]) + 1);
    let from = vertices.partition_point(|&v| u64::from(v) < first);
    for &v in vertices[from..].iter().take_while(|&&v| u64::from(v) < first + last) {
        match block.find(v.into()).map(|list| list.ids) {
            Some(Ids::U32(ids)) => ids.iter().for_each(|&u| visit(v, u.into())),
            Some(Ids::U64(ids)) => ids.iter().for_each(|&u| visit(v, u)),
            None => {}
        }
    }
}
