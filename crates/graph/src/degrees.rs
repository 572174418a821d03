//! How many arcs vertices have.

use tiergraph_core::Result;

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
        let last = |direction| -> Result<usize> {
            let degrees = self.degrees(direction)?;
            Ok(degrees.iter().rposition(|&d| d > 0).map_or(0, |v| v + 1))
        };
        let outgoing = last(Direction::Out)?;
        let incoming = if self.manifest().directed { last(Direction::In)? } else { outgoing };
        Ok(*self.vertices_with_arcs.get_or_init(|| outgoing.max(incoming)))
    }

    /// Degrees in the graph's order. In an undirected graph both directions are one.
    pub fn degrees(&self, direction: Direction) -> Result<Vec<u32>> {
        let wanted = if self.manifest().directed { direction } else { Direction::Out };
        let name = format!("{wanted}.degrees");
        self.read_array(&name)
    }
}
