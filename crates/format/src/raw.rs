//! Codec `raw`: plain neighbour ids in adjacency order, as the papers' engines read them.
//!
//! ```text
//! header   64 bytes ([`crate::block`]); items = listed vertices
//! table    (items + 1) × { u32 vertex − first vertex, u32 where its arcs begin in this block };
//!          the last entry is { 0, arcs }
//! ids      arcs × id width, padded to 8 bytes
//! weights  arcs × weight width
//! ```
//! Vertices without neighbours are not listed. A list that does not fit goes on in the next block:
//! flags say whether the first list began earlier and whether the last goes on. In a block that
//! lies at an 8-byte boundary the ids are read in place.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::block::{self, HEADER_BYTES, Header, Layout};
use crate::le::put;
use crate::manifest::Weights;
use crate::sink::BlockSink;

const BEGAN_EARLIER: u16 = 1;
const GOES_ON: u16 = 2;
const WIDE_IDS: u16 = 4;
const F32_WEIGHTS: u16 = 8;
const F64_WEIGHTS: u16 = 16;
const ENTRY_BYTES: usize = 8;

/// How wide ids are in a raw file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdWidth {
    /// `u32`.
    Four,
    /// `u64`.
    Eight,
}

impl IdWidth {
    /// The width in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

impl Weights {
    /// The width of a weight in bytes; 0 without weights.
    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Writes `*.blocks` of codec `raw`. Holds one block in memory.
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
        block::seal(&mut self.block);
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

/// Neighbour ids, in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids<'a> {
    /// 4-byte ids.
    U32(&'a [u32]),
    /// 8-byte ids.
    U64(&'a [u64]),
}

/// Weights, in place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WeightSlice<'a> {
    /// The file has no weights.
    None,
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 64-bit floats.
    F64(&'a [f64]),
}

impl WeightSlice<'_> {
    /// The weights at `range`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn part(self, range: Range<usize>) -> Self {
        match self {
            Self::None => Self::None,
            Self::F32(weights) => Self::F32(&weights[range]),
            Self::F64(weights) => Self::F64(&weights[range]),
        }
    }
}

/// The part of a vertex's neighbours that is in one block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbors<'a> {
    /// The neighbours' ids.
    pub ids: Ids<'a>,
    /// Their weights.
    pub weights: WeightSlice<'a>,
}

/// A parsed block of codec `raw`, its arrays in place.
///
/// Parsing checks every bound and the table (8 bytes a vertex), but not the checksum: see
/// [`block::check`].
#[derive(Debug, Clone, Copy)]
pub struct RawBlock<'a> {
    header: Header,
    table: &'a [[u32; 2]],
    ids: Ids<'a>,
    weights: WeightSlice<'a>,
}

impl<'a> RawBlock<'a> {
    /// Finds the arrays of a block that lies at an 8-byte boundary.
    pub fn parse(block: &'a [u8]) -> Result<Self> {
        let header = Header::read(block)?;
        let bad = |expected: &str| {
            Error::new(ErrorKind::Format, "read raw block").object(header.number).expected(expected)
        };
        if header.layout != Layout::Raw {
            return Err(bad("layout raw").got(format!("{:?}", header.layout)));
        }
        let arcs = header.arcs as usize;
        let mut rest = &block[HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize];
        let mut take = |bytes: usize| {
            let part = rest.split_off(..bytes)?;
            rest = rest.get(bytes.next_multiple_of(8) - bytes..).unwrap_or(&[]);
            Some(part)
        };
        let short = || bad("table, ids and weights inside the payload");
        let table = take((header.items as usize + 1) * ENTRY_BYTES).ok_or_else(short)?;
        let wide = header.flags & WIDE_IDS != 0;
        let ids = take(arcs * if wide { 8 } else { 4 }).ok_or_else(short)?;
        let kind = match header.flags & (F32_WEIGHTS | F64_WEIGHTS) {
            0 => Weights::None,
            F32_WEIGHTS => Weights::F32,
            F64_WEIGHTS => Weights::F64,
            _ => return Err(bad("weights of one width")),
        };
        let weights = take(arcs * kind.bytes()).ok_or_else(short)?;
        let place = |_| bad("a block at an 8-byte boundary");
        let parsed = Self {
            header,
            table: bytemuck::try_cast_slice(table).map_err(place)?,
            ids: match wide {
                false => Ids::U32(bytemuck::try_cast_slice(ids).map_err(place)?),
                true => Ids::U64(bytemuck::try_cast_slice(ids).map_err(place)?),
            },
            weights: match kind {
                Weights::None => WeightSlice::None,
                Weights::F32 => WeightSlice::F32(bytemuck::try_cast_slice(weights).map_err(place)?),
                Weights::F64 => WeightSlice::F64(bytemuck::try_cast_slice(weights).map_err(place)?),
            },
        };
        if !parsed.table_is_sound() {
            return Err(bad("a table in ascending order that ends at the block's arcs"));
        }
        Ok(parsed)
    }

    /// The block's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the first vertex's list began in an earlier block.
    pub fn began_earlier(&self) -> bool {
        self.header.flags & BEGAN_EARLIER != 0
    }

    /// Whether the last vertex's list goes on in the next block.
    pub fn goes_on(&self) -> bool {
        self.header.flags & GOES_ON != 0
    }

    /// The ids of all lists, one list after the other.
    pub fn ids(&self) -> Ids<'a> {
        self.ids
    }

    /// Of each listed vertex, its distance from the header's first and where its list begins in
    /// [`Self::ids`]; at the end, where the last list ends.
    pub fn table(&self) -> &'a [[u32; 2]] {
        self.table
    }

    /// The weights of all lists, as the ids lie.
    pub fn weights(&self) -> WeightSlice<'a> {
        self.weights
    }

    /// How many vertices are listed.
    pub fn len(&self) -> usize {
        self.table.len() - 1
    }

    /// Whether no vertex is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `i`-th listed vertex and its neighbours in this block.
    ///
    /// # Panics
    /// If `i` is not below [`Self::len`].
    #[inline]
    pub fn get(&self, i: usize) -> (u64, Neighbors<'a>) {
        let [[vertex, begin], [_, end]] = [self.table[i], self.table[i + 1]];
        let range = begin as usize..end as usize;
        let ids = match self.ids {
            Ids::U32(ids) => Ids::U32(&ids[range.clone()]),
            Ids::U64(ids) => Ids::U64(&ids[range.clone()]),
        };
        let neighbors = Neighbors { ids, weights: self.weights.part(range) };
        (self.header.first_vertex + u64::from(vertex), neighbors)
    }

    /// Every listed vertex with its neighbours in this block, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, Neighbors<'a>)> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The neighbours of `vertex` in this block, found by bisection.
    pub fn find(&self, vertex: u64) -> Option<Neighbors<'a>> {
        let delta = u32::try_from(vertex.checked_sub(self.header.first_vertex)?).ok()?;
        let i = self.table[..self.len()].binary_search_by_key(&delta, |entry| entry[0]).ok()?;
        Some(self.get(i).1)
    }

    fn table_is_sound(&self) -> bool {
        let (listed, ends) = (&self.table[..self.len()], self.table);
        let last = listed.last().map_or(0, |entry| u64::from(entry[0]));
        listed.is_sorted_by(|a, b| a[0] < b[0])
            && ends.is_sorted_by_key(|entry| entry[1])
            && ends[0][1] == 0
            && ends[self.len()][1] == self.header.arcs
            && self.header.first_vertex.checked_add(last).is_some()
    }
}
