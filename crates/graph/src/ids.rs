//! The ids that the user gave vertices, and how they are found.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::flat;
use tiergraph_format::manifest::FileEntry;
use tiergraph_mem::{HUGE_PAGE_BYTES, zeroed_vec};

use crate::Graph;

const USER: &str = "user.ids";
/// The number of ids in a chunk of the file.
const CHUNK_IDS: u64 = (flat::CHUNK_BYTES / size_of::<u64>()) as u64;

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
    pub fn of_positions(self, positions: Vec<u32>) -> Result<Vec<u64>> {
        const PART: usize = HUGE_PAGE_BYTES / size_of::<u64>();
        let mut names: Vec<u64> = zeroed_vec(positions.len());
        let parts = positions.chunks(PART).zip(names.chunks_mut(PART));
        self.graph.thread_pool().share(parts, |_, parts| {
            for (positions, names) in parts {
                names.iter_mut().zip(positions).for_each(|(name, &at)| *name = at.into());
            }
        })?;
        drop(positions);
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
        self.graph.manifest().vertices * if self.file().is_some() { 16 } else { 12 }
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
        let mut places: Vec<(usize, usize)> =
            positions.iter().enumerate().map(|(i, &p)| (p as usize, i)).collect();
        places.sort_unstable();
        let found: Vec<AtomicU32> = ids.iter().map(|_| AtomicU32::new(0)).collect();
        let left = AtomicUsize::new(ids.len());
        let place = |vertex: usize, position: usize| {
            let from = match places[..] {
                // One id, the usual number, is looked for without a search.
                [(place, _)] => usize::from(place != position),
                _ => places.partition_point(|place| place.0 < position),
            };
            for &(_, i) in places[from..].iter().take_while(|place| place.0 == position) {
                found[i].store(vertex as u32, Ordering::Relaxed);
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
        Ok(found.into_iter().map(AtomicU32::into_inner).collect())
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
