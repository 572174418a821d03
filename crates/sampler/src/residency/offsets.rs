//! Where each vertex's arcs begin: its degree, and the numbers of its arcs, without a page.

use tiergraph_core::{Error, ErrorKind, Result};

use tiergraph_mem::Array;

/// For each vertex the arcs before its own, and at the end all arcs. 4 bytes a vertex, 8 in a
/// graph of 2³² arcs or more.
#[derive(Debug)]
pub enum Offsets {
    /// Fewer than 2³² arcs.
    Narrow(Array<u32>),
    /// More.
    Wide(Array<u64>),
}

/// An offset as it is stored.
pub trait Offset: bytemuck::Pod + Into<u64> {}
impl Offset for u32 {}
impl Offset for u64 {}

impl Offsets {
    /// Sums `degrees`, which must come to `arcs`.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if they do not.
    pub fn new(degrees: &[u32], arcs: u64) -> Result<Self> {
        let sum: u64 = degrees.iter().map(|&d| u64::from(d)).sum();
        if sum != arcs {
            return Err(Error::new(ErrorKind::Format, "use the degrees")
                .expected(format!("{arcs} arcs"))
                .got(sum)
                .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it"));
        }
        Ok(match u32::try_from(arcs) {
            Ok(_) => Self::Narrow(running_sums(degrees, |sum| sum as u32)?),
            Err(_) => Self::Wide(running_sums(degrees, |sum| sum)?),
        })
    }

    /// The numbers of a vertex's arcs.
    ///
    /// # Panics
    /// When there is no such vertex.
    pub fn arcs(&self, vertex: u32) -> std::ops::Range<u64> {
        let at = vertex as usize;
        match self {
            Self::Narrow(sums) => sums[at].into()..sums[at + 1].into(),
            Self::Wide(sums) => sums[at]..sums[at + 1],
        }
    }

    /// Vertices.
    pub fn vertices(&self) -> usize {
        match self {
            Self::Narrow(sums) => sums.len() - 1,
            Self::Wide(sums) => sums.len() - 1,
        }
    }

    /// Arcs of all vertices.
    pub fn total(&self) -> u64 {
        match self {
            Self::Narrow(sums) => sums.last().map_or(0, |&sum| sum.into()),
            Self::Wide(sums) => sums.last().copied().unwrap_or(0),
        }
    }

    /// Bytes in memory for a graph of so many vertices and arcs.
    pub fn bytes_of(vertices: u64, arcs: u64) -> u64 {
        (vertices + 1) * if arcs <= u64::from(u32::MAX) { 4 } else { 8 }
    }
}

fn running_sums<T: Offset>(degrees: &[u32], narrow: impl Fn(u64) -> T) -> Result<Array<T>> {
    let mut sums = Array::zeroed(degrees.len() + 1)?;
    let mut sum = 0;
    for (slot, &degree) in sums[1..].iter_mut().zip(degrees) {
        sum += u64::from(degree);
        *slot = narrow(sum);
    }
    Ok(sums)
}
