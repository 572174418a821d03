//! Blocks of codec `raw`, read in place.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};

use super::{BEGAN_EARLIER, ENTRY_BYTES, F32_WEIGHTS, F64_WEIGHTS, GOES_ON, WIDE_IDS};
use crate::block::{HEADER_BYTES, Header, Layout};
use crate::manifest::Weights;

/// Neighbour ids as they lie in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids<'a> {
    /// 4-byte ids.
    U32(&'a [u32]),
    /// 8-byte ids.
    U64(&'a [u64]),
}

/// Weights as they lie in a block.
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
    /// The weight of arc number `i`: 1 in a file without weights.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn get(self, i: usize) -> f64 {
        match self {
            Self::None => 1.0,
            Self::F32(weights) => f64::from(weights[i]),
            Self::F64(weights) => weights[i],
        }
    }

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
/// [`crate::block::check`].
#[derive(Debug, Clone, Copy)]
pub struct RawBlock<'a> {
    header: Header,
    table: &'a [[u32; 2]],
    ids: Ids<'a>,
    weights: WeightSlice<'a>,
}

impl<'a> RawBlock<'a> {
    /// Parses a block that lies at an 8-byte boundary: finds its arrays and checks its table.
    pub fn parse(block: &'a [u8]) -> Result<Self> {
        let parsed = Self::parse_again(block)?;
        if parsed.table_is_sound() {
            return Ok(parsed);
        }
        Err(Error::new(ErrorKind::Format, "read raw block")
            .object(parsed.header.number)
            .expected("a table in ascending order that ends at the block's arcs"))
    }

    /// As [`parse`](Self::parse), for a block that was parsed before: its table is not checked again,
    /// which would take longer than finding a few vertices in it.
    pub fn parse_again(block: &'a [u8]) -> Result<Self> {
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
        Ok(Self {
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
        })
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

    /// For each listed vertex, its distance from the header's first vertex, and the index in
    /// [`Self::ids`] at which its list begins; one entry more has the index at which the last list ends.
    pub fn table(&self) -> &'a [[u32; 2]] {
        self.table
    }

    /// The weights of all lists, in the order of [`Self::ids`]; none if the file has no weights.
    pub fn weights(&self) -> WeightSlice<'a> {
        self.weights
    }

    /// The number of vertices that the block lists.
    pub fn len(&self) -> usize {
        self.table.len() - 1
    }

    /// Whether the block has no list of any vertex.
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

    /// The neighbours of `vertex` in this block, found by bisection; `None` if it is not listed.
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
