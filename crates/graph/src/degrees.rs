//! The out-degrees and in-degrees of a graph's vertices, read from its degree files.

use tiergraph_core::Result;
use tiergraph_format::flat;

use crate::{Direction, Graph};

/// A view of the degrees of a graph's vertices, made by [`Graph::degrees`]; its methods read files.
#[derive(Clone, Copy)]
pub struct Degrees<'g> {
    graph: &'g Graph,
}

impl Graph {
    /// A view of the vertices' degrees; nothing is read yet.
    pub fn degrees(&self) -> Degrees<'_> {
        Degrees { graph: self }
    }
}

impl Degrees<'_> {
    /// The end of the vertices with arcs: none from this one on has any. In degree order, where isolated
    /// vertices come last, it is far below |V| (almost half of an R-MAT graph's are isolated).
    ///
    /// # Errors
    /// Degrees that the graph was built without, that cannot be read, or are damaged.
    pub fn vertices_with_arcs(self) -> Result<usize> {
        if self.graph.tiles().is_stored() {
            return Ok(self.graph.tiles().vertices());
        }
        if let Some(&known) = self.graph.vertices_with_arcs.get() {
            return Ok(known);
        }
        let last = |direction| self.last_with_degree(&self.file(direction)?);
        let outgoing = last(Direction::Out)?;
        let incoming = if self.graph.manifest().directed { last(Direction::In)? } else { outgoing };
        Ok(*self.graph.vertices_with_arcs.get_or_init(|| outgoing.max(incoming)))
    }

    /// The degree of every vertex in `direction`, in the graph's order; undirected graphs have only one.
    ///
    /// # Errors
    /// The errors of [`Self::vertices_with_arcs`].
    pub fn of(self, direction: Direction) -> Result<Vec<u32>> {
        self.graph.read_array(&self.file(direction)?)
    }

    /// As [`of`](Self::of), but of the first `count` vertices only.
    ///
    /// # Errors
    /// Degrees that cannot be read, or are damaged.
    pub fn of_first(self, direction: Direction, count: usize) -> Result<Vec<u32>> {
        self.graph.read_first(&self.file(direction)?, count)
    }

    /// The largest degree in `direction`. Reads 4 bytes a vertex, a chunk of 1 MiB at a time.
    ///
    /// # Errors
    /// The errors of [`Self::vertices_with_arcs`].
    pub fn largest(self, direction: Direction) -> Result<u32> {
        let name = self.file(direction)?;
        let (path, entry) = (self.graph.dir().path().join(&name), self.graph.dir().entry(&name)?);
        let mut largest = 0;
        for chunk in 0..entry.blocks {
            let degrees: Vec<u32> = flat::read_chunk(&path, entry, chunk)?;
            largest = degrees.into_iter().fold(largest, u32::max);
        }
        Ok(largest)
    }

    /// A histogram of degrees: element 0 counts the vertices of degree 0, element i those of degrees
    /// 2^(i - 1) to 2^i - 1. Reads 4 bytes a vertex, a chunk of 1 MiB at a time.
    ///
    /// # Errors
    /// The errors of [`Self::vertices_with_arcs`].
    pub fn histogram(self, direction: Direction) -> Result<Vec<u64>> {
        let name = self.file(direction)?;
        let (path, entry) = (self.graph.dir().path().join(&name), self.graph.dir().entry(&name)?);
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

    /// The name of the file of degrees; an error in a graph that was built without them.
    fn file(self, direction: Direction) -> Result<String> {
        let wanted = if self.graph.manifest().directed { direction } else { Direction::Out };
        let name = format!("{wanted}.degrees");
        match self.graph.manifest().files.contains_key(&name) {
            true => Ok(name),
            false => {
                let needs = format!("the {wanted}-neighbours of vertices");
                Err(self.graph.missing_layout("read the degrees of", &needs))
            }
        }
    }

    /// One more than the last vertex with a degree, found from the file's end, a chunk at a time.
    fn last_with_degree(self, name: &str) -> Result<usize> {
        let (path, entry) = (self.graph.dir().path().join(name), self.graph.dir().entry(name)?);
        for chunk in (0..entry.blocks).rev() {
            let degrees: Vec<u32> = flat::read_chunk(&path, entry, chunk)?;
            if let Some(last) = degrees.iter().rposition(|&degree| degree > 0) {
                return Ok(chunk as usize * (flat::CHUNK_BYTES / size_of::<u32>()) + last + 1);
            }
        }
        Ok(0)
    }
}
