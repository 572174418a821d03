//! The ids that the user gave vertices, and how they are found.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::flat;
use tiergraph_format::manifest::FileEntry;
use tiergraph_mem::{HUGE_PAGE_BYTES, Reservation, zeroed_vec};

use crate::Graph;

const USER: &str = "user.ids";
/// The number of ids in a chunk of the file.
const CHUNK_IDS: u64 = (flat::CHUNK_BYTES / size_of::<u64>()) as u64;
/// Steps in which positions become ids, each after the memory of the positions before it was given back.
const STEPS: usize = 16;

/// A view of the user's ids of a graph's vertices, made by [`Graph::ids`].
///
/// A vertex has an id, which the user chose; a position, its rank among all ids; and an internal number,
/// which the graph's order chose.
#[derive(Clone, Copy)]
pub struct Ids<'g> {
    graph: &'g Graph,
}

impl Graph {
    /// A view of the user's ids, by a vertex's position among them and not by its internal id; nothing is
    /// read yet.
    pub fn ids(&self) -> Ids<'_> {
        Ids { graph: self }
    }
}

impl<'g> Ids<'g> {
    /// Reads all user ids, ascending, that is by position; `None` when they are 0 … |V| − 1.
    ///
    /// # Errors
    /// Ids that cannot be read, or are damaged.
    pub fn all(self) -> Result<Option<Vec<u64>>> {
        self.file().map(|_| self.graph.read_array(USER)).transpose()
    }

    /// The user's ids of the vertices at positions `wanted`; the range is cut at |V|. Reads the chunks
    /// that hold them, and holds one at a time.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub fn in_range(self, wanted: Range<u64>) -> Result<Vec<u64>> {
        let wanted = wanted.start..wanted.end.min(self.graph.manifest().vertices).max(wanted.start);
        let Some(entry) = self.file() else { return Ok(wanted.collect()) };
        let path = self.graph.dir().path().join(USER);
        let mut ids = Vec::with_capacity((wanted.end - wanted.start) as usize);
        for chunk in wanted.start / CHUNK_IDS..wanted.end.div_ceil(CHUNK_IDS) {
            let in_chunk = flat::read_chunk::<u64>(&path, entry, chunk)?;
            let place = |position: u64| position.saturating_sub(chunk * CHUNK_IDS).min(CHUNK_IDS);
            ids.extend(&in_chunk[place(wanted.start) as usize..place(wanted.end) as usize]);
        }
        Ok(ids)
    }

    /// The user's id of the vertex at each of `positions`.
    ///
    /// Holds at most [`of_positions_bytes`](Self::of_positions_bytes).
    ///
    /// # Errors
    /// As [`Self::all`].
    ///
    /// # Panics
    /// If there is no such position.
    pub fn of_positions(self, mut positions: Vec<u32>) -> Result<Vec<u64>> {
        const PART: usize = HUGE_PAGE_BYTES / size_of::<u64>();
        let mut names: Vec<u64> = zeroed_vec(positions.len());
        let step = positions.len().div_ceil(STEPS).max(PART);
        // From the end, so that positions whose names are there can give their memory back.
        while let Some(last) = positions.len().checked_sub(1) {
            let begin = last / step * step;
            let parts = positions[begin..].chunks(PART).zip(names[begin..].chunks_mut(PART));
            self.graph.thread_pool().share(parts, |_, parts| {
                for (positions, names) in parts {
                    names.iter_mut().zip(positions).for_each(|(name, &at)| *name = at.into());
                }
            })?;
            positions.truncate(begin);
            positions.shrink_to_fit();
        }
        if let Some(ids) = self.all()? {
            self.graph.thread_pool().share(names.chunks_mut(PART), |_, parts| {
                for name in parts.flatten() {
                    *name = ids[*name as usize];
                }
            })?;
        }
        Ok(names)
    }

    /// Bytes that [`of_positions`](Self::of_positions) of all vertices holds, with its result.
    pub fn of_positions_bytes(self) -> u64 {
        let vertices = self.graph.manifest().vertices;
        let positions = vertices.div_ceil(STEPS as u64) * 4;
        vertices * 8 + if self.file().is_some() { vertices * 8 } else { positions }
    }

    /// Whether ids are the user's own, and not 0 to |V| − 1.
    pub fn are_own(self) -> bool {
        self.file().is_some()
    }

    /// The user's ids of some `vertices`, by the graph's own numbers, in their order.
    ///
    /// # Errors
    /// An order or ids that cannot be read, or are damaged.
    pub fn of(self, vertices: &[u32]) -> Result<Vec<u64>> {
        let positions = self.graph.order().positions_of(vertices)?;
        let Some(entry) = self.file() else { return Ok(positions) };
        if positions.len() as u64 <= entry.blocks {
            let one = |&position: &u64| Ok(self.in_range(position..position + 1)?[0]);
            return positions.iter().map(one).collect();
        }
        let bytes = self.graph.manifest().vertices * size_of::<u64>() as u64;
        let _held = self.graph.memory().reserve(bytes, "the vertices' ids")?;
        let all: Vec<u64> = self.graph.read_array(USER)?;
        Ok(positions.into_iter().map(|position| all[position as usize]).collect())
    }

    /// The position of the vertex with each of `ids`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for an id that the graph does not have, ids that cannot be read.
    pub fn positions(self, ids: &[u64]) -> Result<Vec<u64>> {
        let vertices = self.graph.manifest().vertices;
        let none = |id: &u64, expected: String| {
            Error::new(ErrorKind::Input, "find vertex").object(id).expected(expected)
        };
        let Some(entry) = self.file() else {
            let position = |id: &u64| match *id < vertices {
                true => Ok(*id),
                false if vertices == 0 => Err(none(id, "a graph with vertices".to_owned())),
                false => Err(none(id, format!("an id below {vertices}"))),
            };
            return ids.iter().map(position).collect();
        };
        let chunks = entry.blocks;
        // A search reads a chunk a step.
        let few =
            ids.len() == 1 || ids.len() as u64 * u64::from(chunks.max(1).ilog2() + 1) < chunks;
        let held = if few { 0 } else { vertices * size_of::<u64>() as u64 };
        let _held = self.graph.memory().reserve(held, "the vertices' ids")?;
        let names = if few { Vec::new() } else { self.graph.read_array(USER)? };
        let position = |id: &u64| -> Result<u64> {
            let found = match few {
                true => self.search(entry, *id)?,
                false => names.binary_search(id).ok().map(|at| at as u64),
            };
            found.ok_or_else(|| none(id, format!("one of the graph's {vertices} ids")))
        };
        ids.iter().map(position).collect()
    }

    /// The internal number of the vertex with each of the user's `ids`, in the order of `ids`.
    ///
    /// # Errors
    /// As [`Self::positions`].
    pub fn find(self, ids: &[u64]) -> Result<Vec<u32>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let positions = self.positions(ids)?;
        if !self.graph.order().is_reordered() {
            return Ok(positions.into_iter().map(|p| p as u32).collect());
        }
        let wanted = Wanted::of(self.graph, &positions)?;
        let vertices: Vec<AtomicU32> = (0..wanted.len()).map(|_| AtomicU32::new(0)).collect();
        let left = AtomicUsize::new(vertices.len());
        let place = |vertex: usize, position: usize| {
            if let Some(rank) = wanted.rank(position as u64) {
                vertices[rank].store(vertex as u32, Ordering::Relaxed);
                left.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let order = self.graph.order();
        let searched = self.graph.thread_pool().share(order.chunks(), |_, numbers| {
            while left.load(Ordering::Relaxed) > 0 {
                let Some(number) = numbers.next() else { break };
                order.place_chunk(number, place)?;
            }
            Ok(())
        })?;
        searched.into_iter().collect::<Result<()>>()?;
        const PART: usize = 1 << 14;
        let mut found = vec![0; positions.len()];
        let parts = found.chunks_mut(PART).zip(positions.chunks(PART));
        self.graph.thread_pool().share(parts, |_, parts| {
            for (found, positions) in parts {
                for (to, &position) in found.iter_mut().zip(positions) {
                    let vertex = wanted.rank(position).map(|rank| &vertices[rank]);
                    *to = vertex.map_or(0, |vertex| vertex.load(Ordering::Relaxed));
                }
            }
        })?;
        Ok(found)
    }

    /// The entry of the file of ids; `None` where ids are 0 … |V| − 1.
    fn file(self) -> Option<&'g FileEntry> {
        self.graph.manifest().files.get(USER)
    }

    /// The position of `id`, by bisection over the chunks of `entry`; `None` where no vertex has it.
    fn search(self, entry: &FileEntry, id: u64) -> Result<Option<u64>> {
        let path = self.graph.dir().path().join(USER);
        let (mut low, mut high) = (0, entry.blocks);
        while low < high {
            let middle = low.midpoint(high);
            let names: Vec<u64> = flat::read_chunk(&path, entry, middle)?;
            if names.first().is_some_and(|&first| id < first) {
                high = middle;
            } else if names.last().is_some_and(|&last| last < id) {
                low = middle + 1;
            } else {
                let before = middle * CHUNK_IDS;
                return Ok(names.binary_search(&id).ok().map(|at| before + at as u64));
            }
        }
        Ok(None)
    }
}

/// Different positions that are looked for, in ascending order.
enum Wanted {
    /// A few, themselves.
    Few(Vec<u64>),
    /// Many, a bit each from the least to the greatest: others cost a look at one bit.
    Many { least: u64, bits: Vec<u64>, before: Vec<u32>, _held: Reservation },
}

impl Wanted {
    /// The most that are looked for among themselves, without memory for bits.
    const FEW: usize = 1 << 10;

    fn of(graph: &Graph, positions: &[u64]) -> Result<Self> {
        let (Some(&least), Some(&greatest)) = (positions.iter().min(), positions.iter().max())
        else {
            return Ok(Self::Few(Vec::new()));
        };
        if positions.len() <= Self::FEW {
            let mut few = positions.to_vec();
            few.sort_unstable();
            few.dedup();
            return Ok(Self::Few(few));
        }
        let words = ((greatest - least) / 64 + 1) as usize;
        let bytes = words * (size_of::<u64>() + size_of::<u32>());
        let held = graph.memory().reserve(bytes as u64, "the vertices that are looked for")?;
        let mut bits: Vec<u64> = zeroed_vec(words);
        for place in positions.iter().map(|position| position - least) {
            bits[(place / 64) as usize] |= 1 << (place % 64);
        }
        let mut ones = 0;
        let before = bits.iter().map(|word| {
            ones += word.count_ones();
            ones - word.count_ones()
        });
        Ok(Self::Many { least, before: before.collect(), bits, _held: held })
    }

    fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.len(),
            Self::Many { bits, .. } => bits.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The place of `position` among them; `None` if it is not looked for.
    #[inline(always)]
    fn rank(&self, position: u64) -> Option<usize> {
        match self {
            Self::Few(few) => few.binary_search(&position).ok(),
            Self::Many { least, bits, before, .. } => {
                let place = position.wrapping_sub(*least);
                let (at, bit) = ((place / 64) as usize, 1u64 << (place % 64));
                let word = bits.get(at)?;
                let lower = (word & (bit - 1)).count_ones();
                (word & bit != 0).then(|| (before[at] + lower) as usize)
            }
        }
    }
}
