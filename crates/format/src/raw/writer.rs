//! Writes lists of neighbours to blocks of codec `raw`.

use tiergraph_core::{Error, ErrorKind, Result};

use super::{BEGAN_EARLIER, ENTRY_BYTES, F32_WEIGHTS, F64_WEIGHTS, GOES_ON, IdWidth, WIDE_IDS};
use crate::block::{self, HEADER_BYTES, Header, Layout};
use crate::le::put;
use crate::manifest::Weights;
use crate::sink::BlockSink;

/// A writer of `*.blocks` of codec `raw`. Holds one block in memory.
#[derive(Debug)]
pub struct RawWriter<S> {
    sink: S,
    ids: IdWidth,
    weights: Weights,
    block: Vec<u8>,
    open: OpenBlock,
    number: u64,
    next_vertex: u64,
}

/// The parts of the block being filled.
#[derive(Debug, Default)]
struct OpenBlock {
    first_vertex: u64,
    flags: u16,
    table: Vec<[u32; 2]>,
    arcs: usize,
    ids: Vec<u8>,
    weights: Vec<u8>,
}

impl<S: BlockSink> RawWriter<S> {
    /// A writer that hands blocks of `block_bytes` (a multiple of 4 KiB) to `sink`.
    pub fn new(sink: S, block_bytes: u32, ids: IdWidth, weights: Weights) -> Self {
        let block = vec![0; block_bytes as usize];
        Self { sink, ids, weights, block, open: OpenBlock::default(), number: 0, next_vertex: 0 }
    }

    /// Adds `vertex`, above all before it, with its neighbours in their order, and a weight for
    /// each if the file has weights.
    pub fn push(&mut self, vertex: u64, neighbors: &[u64], weights: Option<&[f64]>) -> Result<()> {
        self.check(vertex, neighbors, weights)?;
        self.next_vertex = vertex + 1;
        let mut done = 0;
        while done < neighbors.len() {
            let n = self.room(vertex).min(neighbors.len() - done);
            if n == 0 {
                self.close()?;
                continue;
            }
            self.append(vertex, &neighbors[done..done + n], weights.map(|w| &w[done..done + n]));
            if done > 0 && self.open.table.len() == 1 {
                self.open.flags |= BEGAN_EARLIER;
            }
            done += n;
            if done < neighbors.len() {
                self.open.flags |= GOES_ON;
                self.close()?;
            }
        }
        Ok(())
    }

    /// Writes what is left and returns the sink.
    pub fn finish(mut self) -> Result<S> {
        self.close()?;
        Ok(self.sink)
    }

    /// How many arcs of `vertex` the open block takes.
    fn room(&self, vertex: u64) -> usize {
        let open = &self.open;
        if !open.table.is_empty() && vertex - open.first_vertex > u64::from(u32::MAX) {
            return 0;
        }
        let table = (open.table.len() + 2) * ENTRY_BYTES;
        let padding = ENTRY_BYTES;
        let fixed = HEADER_BYTES + table + padding;
        let arcs =
            self.block.len().saturating_sub(fixed) / (self.ids.bytes() + self.weights.bytes());
        arcs.saturating_sub(open.arcs)
    }

    fn append(&mut self, vertex: u64, neighbors: &[u64], weights: Option<&[f64]>) {
        let open = &mut self.open;
        if open.table.is_empty() {
            open.first_vertex = vertex;
        }
        open.table.push([(vertex - open.first_vertex) as u32, open.arcs as u32]);
        open.arcs += neighbors.len();
        for id in neighbors {
            open.ids.extend_from_slice(&id.to_le_bytes()[..self.ids.bytes()]);
        }
        for &weight in weights.unwrap_or(&[]) {
            match self.weights {
                Weights::None => {}
                Weights::F32 => open.weights.extend_from_slice(&(weight as f32).to_le_bytes()),
                Weights::F64 => open.weights.extend_from_slice(&weight.to_le_bytes()),
            }
        }
    }

    fn close(&mut self) -> Result<()> {
        let open = std::mem::take(&mut self.open);
        if open.table.is_empty() {
            return Ok(());
        }
        self.block.fill(0);
        let mut at = HEADER_BYTES;
        for [vertex, begin] in open.table.iter().copied().chain([[0, open.arcs as u32]]) {
            put(&mut self.block, at, vertex.to_le_bytes());
            put(&mut self.block, at + 4, begin.to_le_bytes());
            at += ENTRY_BYTES;
        }
        for part in [&open.ids, &open.weights] {
            self.block[at..at + part.len()].copy_from_slice(part);
            at += part.len().next_multiple_of(8);
        }
        let header = Header {
            layout: Layout::Raw,
            flags: open.flags | self.shape(),
            number: self.number,
            first_vertex: open.first_vertex,
            arcs: open.arcs as u32,
            payload_bytes: (at - HEADER_BYTES) as u32,
            items: open.table.len() as u32,
        };
        header.write(&mut self.block);
        block::seal(&mut self.block, self.sink.salt());
        self.number += 1;
        self.sink.put(&self.block)
    }

    fn shape(&self) -> u16 {
        let ids = if self.ids == IdWidth::Eight { WIDE_IDS } else { 0 };
        ids | match self.weights {
            Weights::None => 0,
            Weights::F32 => F32_WEIGHTS,
            Weights::F64 => F64_WEIGHTS,
        }
    }

    fn check(&self, vertex: u64, neighbors: &[u64], weights: Option<&[f64]>) -> Result<()> {
        let bad = |expected: String, got: String| {
            Error::new(ErrorKind::Input, "write the neighbours of vertex")
                .object(vertex)
                .expected(expected)
                .got(got)
        };
        if vertex < self.next_vertex || vertex == u64::MAX {
            return Err(bad(format!("a vertex from {}", self.next_vertex), vertex.to_string()));
        }
        let wanted = if self.weights == Weights::None { 0 } else { neighbors.len() };
        let given = weights.map_or(0, <[f64]>::len);
        if given != wanted {
            return Err(bad(format!("{wanted} weights"), format!("{given}")));
        }
        let wide = |id: &&u64| self.ids == IdWidth::Four && **id > u64::from(u32::MAX);
        if let Some(id) = neighbors.iter().find(wide) {
            return Err(bad("ids of 4 bytes".into(), id.to_string()));
        }
        Ok(())
    }
}
