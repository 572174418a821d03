//! Between the user's vertices and the graph's: results come back in the user's order.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::flat;

use crate::{Direction, Graph};

const ORDER: &str = "order.ids";
const USER: &str = "user.ids";

impl Graph {
    /// Calls `visit(first vertex, positions)` for every chunk of the graph's own order: vertex
    /// `first + i` stands at `positions[i]` in the user's order. One chunk if the orders agree.
    fn for_each_position(&self, mut visit: impl FnMut(usize, &[u64])) -> Result<()> {
        let Some(entry) = self.manifest().files.get(ORDER) else { return Ok(()) };
        let path = self.dir().path().join(ORDER);
        let wide = entry.bytes == self.manifest().vertices * 8;
        let mut first = 0;
        for number in 0..entry.chunks.len() as u64 {
            let positions: Vec<u64> = if wide {
                flat::read_chunk(&path, entry, number)?
            } else {
                let narrow: Vec<u32> = flat::read_chunk(&path, entry, number)?;
                narrow.into_iter().map(u64::from).collect()
            };
            visit(first, &positions);
            first += positions.len();
        }
        Ok(())
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
        self.for_each_position(|first, positions| {
            for (i, &position) in positions.iter().enumerate() {
                let (from, to) = ((first + i) * width, position as usize * width);
                if let Some(to) = out.get_mut(to..to + width) {
                    to.copy_from_slice(&values[from..from + width]);
                }
            }
        })?;
        Ok(out)
    }

    /// Moves `values`, `width` for each vertex, from the user's order to the graph's.
    pub fn from_user_order<T: Copy + Default>(&self, values: &[T], width: usize) -> Result<Vec<T>> {
        if !self.is_reordered() {
            return Ok(values.to_vec());
        }
        let mut out = vec![T::default(); self.vertices() * width];
        self.for_each_position(|first, positions| {
            for (i, &position) in positions.iter().enumerate() {
                let (to, from) = ((first + i) * width, position as usize * width);
                if let Some(from) = values.get(from..from + width) {
                    out[to..to + width].copy_from_slice(from);
                }
            }
        })?;
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
        let mut found = vec![0; ids.len()];
        self.for_each_position(|first, chunk| {
            for (i, position) in chunk.iter().enumerate() {
                for (slot, _) in positions.iter().enumerate().filter(|(_, p)| *p == position) {
                    found[slot] = (first + i) as u32;
                }
            }
        })?;
        Ok(found)
    }

    /// Degrees in the graph's order. In an undirected graph both directions are one.
    pub fn degrees(&self, direction: Direction) -> Result<Vec<u32>> {
        let wanted = if self.manifest().directed { direction } else { Direction::Out };
        let name = format!("{wanted}.degrees");
        flat::read(&self.dir().path().join(&name), self.dir().entry(&name)?)
    }
}
