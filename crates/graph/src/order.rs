//! The graph's order of vertices and the user's, and moving values between them.

use std::ops::Range;
use std::sync::atomic::Ordering;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;
use tiergraph_format::flat;
use tiergraph_mem::{as_atomic, zeroed_vec};

use crate::Graph;

const ORDER: &str = "order.ids";
/// Vertices that a thread takes at a time where the orders agree.
const PART: usize = 1 << 16;

/// A view of the graph's order of vertices beside the user's (ascending ids), made by [`Graph::order`].
#[derive(Clone, Copy)]
pub struct VertexOrder<'g> {
    graph: &'g Graph,
}

impl Graph {
    /// A view of the order of vertices on disk, which moves values between that and the user's order.
    pub fn order(&self) -> VertexOrder<'_> {
        VertexOrder { graph: self }
    }
}

impl VertexOrder<'_> {
    /// The numbers of the chunks of the order's file; empty if the orders agree.
    pub(crate) fn chunks(self) -> Range<u64> {
        0..self.graph.manifest().files.get(ORDER).map_or(0, |entry| entry.chunks.len() as u64)
    }

    fn has_wide_order(self) -> bool {
        let bytes = self.graph.manifest().files.get(ORDER).map_or(0, |entry| entry.bytes);
        bytes == self.graph.manifest().vertices * 8
    }

    /// The number of vertices in a chunk of the order's file.
    fn chunk_vertices(self) -> usize {
        flat::CHUNK_BYTES / if self.has_wide_order() { 8 } else { 4 }
    }

    /// Calls `place(vertex, position)` for every vertex in chunk `number` of the order's file; the
    /// position is its rank in the user's order.
    pub(crate) fn place_chunk(
        self,
        number: u64,
        mut place: impl FnMut(usize, usize),
    ) -> Result<()> {
        let entry = self.graph.dir().entry(ORDER)?;
        let path = self.graph.dir().path().join(ORDER);
        let first = number as usize * self.chunk_vertices();
        if self.has_wide_order() {
            let positions: Vec<u64> = flat::read_chunk(&path, entry, number)?;
            (first..).zip(positions).for_each(|(v, position)| place(v, position as usize));
        } else {
            let positions: Vec<u32> = flat::read_chunk(&path, entry, number)?;
            (first..).zip(positions).for_each(|(v, position)| place(v, position as usize));
        }
        Ok(())
    }

    /// Calls `place(vertex, its position in the user's order)` for the vertices below `end`, and
    /// perhaps for some after them, on all threads.
    ///
    /// # Errors
    /// An order that cannot be read, or is damaged.
    pub fn for_each_position(self, end: usize, place: impl Fn(usize, usize) + Sync) -> Result<()> {
        if !self.is_reordered() {
            let parts = (0..end).step_by(PART).map(|start| start..(start + PART).min(end));
            self.graph.thread_pool().share(parts, |_, parts| {
                parts.flatten().for_each(|v| place(v, v));
            })?;
            return Ok(());
        }
        let least = flat::CHUNK_BYTES / size_of::<u64>();
        let chunks = 0..self.chunks().end.min(end.div_ceil(least) as u64);
        let placed = self.graph.thread_pool().share(chunks, |_, numbers| {
            for number in numbers {
                self.place_chunk(number, &place)?;
            }
            Ok(())
        })?;
        placed.into_iter().collect()
    }

    /// Whether the build put vertices in another order than the user's (by degree, say).
    pub fn is_reordered(self) -> bool {
        self.graph.manifest().files.contains_key(ORDER)
    }

    /// The user's position of each vertex; `None` if the orders agree, or if positions take 64 bits.
    ///
    /// # Errors
    /// An order that cannot be read, or is damaged.
    pub fn positions(self) -> Result<Option<Vec<u32>>> {
        if !self.is_reordered() || self.has_wide_order() {
            return Ok(None);
        }
        self.graph.read_array(ORDER).map(Some)
    }

    /// The user's positions of some `vertices`, in their order. Reads the chunks of the order that have them.
    ///
    /// # Errors
    /// An order that cannot be read, or is damaged.
    pub fn positions_of(self, vertices: &[u32]) -> Result<Vec<u64>> {
        if !self.is_reordered() {
            return Ok(vertices.iter().map(|&v| v.into()).collect());
        }
        let mut places: Vec<(u32, usize)> = vertices.iter().copied().zip(0..).collect();
        places.sort_unstable();
        let mut positions = vec![0; vertices.len()];
        let size = self.chunk_vertices();
        for of_chunk in places.chunk_by(|a, b| a.0 as usize / size == b.0 as usize / size) {
            let mut wanted = of_chunk.iter().peekable();
            self.place_chunk((of_chunk[0].0 as usize / size) as u64, |v, position| {
                while let Some(&(_, place)) = wanted.next_if(|(wanted, _)| *wanted as usize == v) {
                    positions[place] = position as u64;
                }
            })?;
        }
        Ok(positions)
    }

    /// Moves `values`, `width` for each vertex, from the graph's order to the user's.
    ///
    /// # Errors
    /// An order that cannot be read, or is damaged.
    pub fn to_user<T: Pod + Send + Sync>(self, values: Vec<T>, width: usize) -> Result<Vec<T>> {
        if !self.is_reordered() {
            return Ok(values);
        }
        self.in_user(width, |vertex| &values[vertex * width..])
    }

    /// The values of all vertices in the user's order, put there by all threads: the first `width` of
    /// `values(v)` for each v.
    ///
    /// # Errors
    /// As [`Self::to_user`].
    pub fn in_user<'v, T: Pod + Send + Sync>(
        self,
        width: usize,
        values: impl Fn(usize) -> &'v [T] + Sync,
    ) -> Result<Vec<T>> {
        const { assert!(size_of::<T>().is_multiple_of(size_of::<u32>()), "values are whole words") };
        let mut out: Vec<T> = zeroed_vec(self.graph.vertices() * width);
        let words = width * size_of::<T>() / size_of::<u32>();
        let places = as_atomic(bytemuck::cast_slice_mut(&mut out));
        self.for_each_position(self.graph.vertices(), |vertex, position| {
            let Some(to) = places.get(position * words..(position + 1) * words) else { return };
            let from: &[u32] = bytemuck::cast_slice(&values(vertex)[..width]);
            to.iter().zip(from).for_each(|(to, &word)| to.store(word, Ordering::Relaxed));
        })?;
        Ok(out)
    }

    /// Moves `values`, `width` for each vertex, from the user's order to the graph's.
    ///
    /// # Errors
    /// As [`Self::to_user`].
    pub fn from_user<T: Copy + Zeroable + Send + Sync>(
        self,
        values: &[T],
        width: usize,
    ) -> Result<Vec<T>> {
        let mut out = zeroed_vec(self.graph.vertices() * width);
        self.from_user_into(values, width, &mut out)?;
        Ok(out)
    }

    /// Moves `values`, `width` for each vertex, from the user's order to the graph's, into `out`.
    ///
    /// # Errors
    /// As [`Self::to_user`].
    pub fn from_user_into<T: Copy + Zeroable + Send + Sync>(
        self,
        values: &[T],
        width: usize,
        out: &mut [T],
    ) -> Result<()> {
        if !self.is_reordered() {
            out[..values.len()].copy_from_slice(values);
            return Ok(());
        }
        let out = &mut out[..self.graph.vertices() * width];
        let chunks = self.chunks().zip(out.chunks_mut(self.chunk_vertices() * width));
        let placed = self.graph.thread_pool().share(chunks, |_, chunks| {
            for (number, out) in chunks {
                let first = number as usize * self.chunk_vertices();
                self.place_chunk(number, |vertex, position| {
                    let (to, from) = ((vertex - first) * width, position * width);
                    if let Some(from) = values.get(from..from + width) {
                        set(&mut out[to..to + width], from);
                    }
                })?;
            }
            Ok(())
        })?;
        placed.into_iter().collect()
    }
}

/// Copies the first of `from`. One value is a move, several are a call.
#[inline(always)]
fn set<T: Copy>(to: &mut [T], from: &[T]) {
    match to {
        [to] => *to = from[0],
        several => several.copy_from_slice(&from[..several.len()]),
    }
}
