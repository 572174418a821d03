//! How many arcs vertices have.

use tiergraph_core::Result;
use tiergraph_format::flat;

use crate::{Direction, Graph};

impl Graph {
    /// No vertex from this one on has an arc: in degree order, where isolated vertices come last,
    /// far fewer than all (almost half of an R-MAT graph's are isolated).
    ///
    /// # Errors
    /// Degrees that cannot be read, or are damaged.
    pub fn vertices_with_arcs(&self) -> Result<usize> {
        if self.has_tiles() {
            return Ok(self.vertices_with_tiles());
        }
        if let Some(&known) = self.vertices_with_arcs.get() {
            return Ok(known);
        }
        let last = |direction| self.last_with_degree(&self.degrees_name(direction));
        let outgoing = last(Direction::Out)?;
        let incoming = if self.manifest().directed { last(Direction::In)? } else { outgoing };
        Ok(*self.vertices_with_arcs.get_or_init(|| outgoing.max(incoming)))
    }

    /// Degrees in the graph's order. In an undirected graph both directions are one.
    pub fn degrees(&self, direction: Direction) -> Result<Vec<u32>> {
        self.read_array(&self.degrees_name(direction))
    }

    /// Vertices by the number of binary digits of their degrees: place 0 counts degree 0, place i
    /// those of 2^(i - 1) to 2^i - 1. Reads 4 bytes a vertex, a chunk of 1 MiB at a time.
    ///
    /// # Errors
    /// As [`Self::vertices_with_arcs`].
    pub fn degree_histogram(&self, direction: Direction) -> Result<Vec<u64>> {
        let name = self.degrees_name(direction);
        let (path, entry) = (self.dir().path().join(&name), self.dir().entry(&name)?);
        let mut counts = Vec::new();
        for chunk in 0..entry.blocks {
            let degrees: Vec<u32> = flat::read_chunk(&path, entry, chunk)?;
            for degree in degrees {
                let digits = (u32::BITS - degree.leading_zeros()) as usize;
                counts.resize(counts.len().max(digits + 1), 0);
                counts[digits] += 1;
            }
        }
        Ok(counts)
    }

    fn degrees_name(&self, direction: Direction) -> String {
        let wanted = if self.manifest().directed { direction } else { Direction::Out };
        format!("{wanted}.degrees")
    }

    /// One more than the last vertex with a degree, found from the file's end, a chunk at a time.
    fn last_with_degree(&self, name: &str) -> Result<usize> {
        let (path, entry) = (self.dir().path().join(name), self.dir().entry(name)?);
        for chunk in (0..entry.blocks).rev() {
            let degrees: Vec<u32> = flat::read_chunk(&path, entry, chunk)?;
            if let Some(last) = degrees.iter().rposition(|&degree| degree > 0) {
                return Ok(chunk as usize * (flat::CHUNK_BYTES / size_of::<u32>()) + last + 1);
            }
        }
        Ok(0)
    }
}
