//! Between the user's vertices and the graph's: results come back in the user's order.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::flat;

use crate::{Direction, Graph};

const ORDER: &str = "order.ids";
const USER: &str = "user.ids";

impl Graph {
    /// The numbers of the order's chunks; none if the orders agree.
    fn chunks(&self) -> Range<u64> {
        0..self.manifest().files.get(ORDER).map_or(0, |entry| entry.chunks.len() as u64)
    }

    /// Calls `place(vertex, position)` for every vertex of chunk `number` of the order: where it
    /// stands in the user's order.
    fn place_chunk(&self, number: u64, mut place: impl FnMut(usize, usize)) -> Result<()> {
        let entry = self.dir().entry(ORDER)?;
        let path = self.dir().path().join(ORDER);
        let wide = entry.bytes == self.manifest().vertices * 8;
        let first = number as usize * (flat::CHUNK_BYTES / if wide { 8 } else { 4 });
        if wide {
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
    pub fn for_each_position(&self, end: usize, place: impl Fn(usize, usize) + Sync) -> Result<()> {
        if !self.is_reordered() {
            (0..end).for_each(|v| place(v, v));
            return Ok(());
        }
        let least = flat::CHUNK_BYTES / size_of::<u64>();
        let chunks = 0..self.chunks().end.min(end.div_ceil(least) as u64);
        let placed = self.team().share(chunks, |_, numbers| {
            for number in numbers {
                self.place_chunk(number, &place)?;
            }
            Ok(())
        })?;
        placed.into_iter().collect()
    }

    /// Whether vertices were re-ordered.
    pub fn is_reordered(&self) -> bool {
        self.manifest().files.contains_key(ORDER)
    }

    /// Moves `values`, `width` for each vertex, from the graph's order to the user's.
    pub fn to_user_order<T: Copy + Default>(&self, values: Vec<T>, width: usize) -> Result<Vec<T>> {
        if !self.is_reordered() {
            return Ok(values);
        }
        let mut out = vec![T::default(); self.vertices() * width];
        for number in self.chunks() {
            self.place_chunk(number, |vertex, position| {
                let (from, to) = (vertex * width, position * width);
                if let Some(to) = out.get_mut(to..to + width) {
                    // One value is a move, several are a call.
                    match width {
                        1 => to[0] = values[from],
                        _ => to.copy_from_slice(&values[from..from + width]),
                    }
                }
            })?;
        }
        Ok(out)
    }

    /// Moves `values`, `width` for each vertex, from the user's order to the graph's.
    pub fn from_user_order<T: Copy + Default>(&self, values: &[T], width: usize) -> Result<Vec<T>> {
        if !self.is_reordered() {
            return Ok(values.to_vec());
        }
        let mut out = vec![T::default(); self.vertices() * width];
        for number in self.chunks() {
            self.place_chunk(number, |vertex, position| {
                let (to, from) = (vertex * width, position * width);
                if let Some(from) = values.get(from..from + width) {
                    match width {
                        1 => out[to] = from[0],
                        _ => out[to..to + width].copy_from_slice(from),
                    }
                }
            })?;
        }
        Ok(out)
    }

    /// The user's ids in the user's order; `None` when they are 0 … |V| − 1.
    pub fn user_ids(&self) -> Result<Option<Vec<u64>>> {
        match self.manifest().files.get(USER) {
            Some(entry) => flat::read(&self.dir().path().join(USER), entry).map(Some),
            None => Ok(None),
        }
    }

    /// The graph's vertices that the user calls `ids`, in that order.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for an id that the graph does not have.
    pub fn find(&self, ids: &[u64]) -> Result<Vec<u32>> {
        let names = self.user_ids()?;
        let position = |&id: &u64| {
            let at = match &names {
                Some(names) => names.binary_search(&id).ok().map(|p| p as u64),
                None => Some(id).filter(|&id| id < self.manifest().vertices),
            };
            at.ok_or_else(|| {
                Error::new(ErrorKind::Input, "find vertex").object(id).expected(match &names {
                    Some(names) => format!("one of the graph's {} ids", names.len()),
                    None => format!("an id below {}", self.manifest().vertices),
                })
            })
        };
        let positions = ids.iter().map(position).collect::<Result<Vec<u64>>>()?;
        if !self.is_reordered() {
            return Ok(positions.into_iter().map(|p| p as u32).collect());
        }
        let mut places: Vec<(usize, usize)> =
            positions.iter().enumerate().map(|(i, &p)| (p as usize, i)).collect();
        places.sort_unstable();
        let found: Vec<AtomicU32> = ids.iter().map(|_| AtomicU32::new(0)).collect();
        self.for_each_position(self.vertices(), |vertex, position| {
            let from = match places[..] {
                // One id, the usual number, is looked for without a search.
                [(place, _)] => usize::from(place != position),
                _ => places.partition_point(|place| place.0 < position),
            };
            for &(_, i) in places[from..].iter().take_while(|place| place.0 == position) {
                found[i].store(vertex as u32, Ordering::Relaxed);
            }
        })?;
        Ok(found.into_iter().map(AtomicU32::into_inner).collect())
    }

    /// Degrees in the graph's order. In an undirected graph both directions are one.
    pub fn degrees(&self, direction: Direction) -> Result<Vec<u32>> {
        let wanted = if self.manifest().directed { direction } else { Direction::Out };
        let name = format!("{wanted}.degrees");
        flat::read(&self.dir().path().join(&name), self.dir().entry(&name)?)
    }
}
