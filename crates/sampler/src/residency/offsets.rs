//! Offsets of vertices' arcs: a vertex's degree and arc numbers, without reading a page.

use tiergraph_core::{Error, ErrorKind, Result};

use tiergraph_mem::Array;

/// For each vertex, the number of arcs before its own; at the end, that of all arcs. 4 bytes a vertex, 8
/// in a graph of 2³² arcs or more.
#[derive(Debug)]
pub enum Offsets {
    /// Offsets of 32 bits: fewer than 2³² arcs.
    Narrow(Array<u32>),
    /// Offsets of 64 bits.
    Wide(Array<u64>),
}

/// A type in which offsets are stored.
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

    /// The range of the numbers of a vertex's arcs.
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

    /// The number of vertices.
    pub fn vertices(&self) -> usize {
        match self {
            Self::Narrow(sums) => sums.len() - 1,
            Self::Wide(sums) => sums.len() - 1,
        }
    }

    /// The number of arcs of all vertices.
    pub fn total(&self) -> u64 {
        match self {
            Self::Narrow(sums) => sums.last().map_or(0, |&sum| sum.into()),
            Self::Wide(sums) => sums.last().copied().unwrap_or(0),
        }
    }

    /// Bytes that the offsets of so many vertices and arcs take.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The arcs of each vertex, and the bytes of all offsets.
    fn arcs(degrees: &[u32]) -> (Offsets, Vec<std::ops::Range<u64>>, u64) {
        let total = degrees.iter().map(|&degree| u64::from(degree)).sum();
        let offsets = Offsets::new(degrees, total).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((offsets.vertices(), offsets.total()), (degrees.len(), total));
        let bytes = match &offsets {
            Offsets::Narrow(sums) => size_of_val(&sums[..]),
            Offsets::Wide(sums) => size_of_val(&sums[..]),
        };
        assert_eq!(bytes as u64, Offsets::bytes_of(degrees.len() as u64, total));
        let arcs = (0..degrees.len() as u32).map(|vertex| offsets.arcs(vertex)).collect();
        (offsets, arcs, bytes as u64)
    }

    #[test]
    fn each_vertex_has_the_arcs_behind_those_of_the_vertices_before_it() {
        let (_, arcs_of, bytes) = arcs(&[2, 0, 5]);
        assert_eq!((arcs_of, bytes), (vec![0..2, 2..2, 2..7], 16));
        assert_eq!(arcs(&[]).2, 4);
    }

    #[test]
    fn numbers_of_four_bytes_are_enough_below_2_to_the_32_arcs() {
        let most = u64::from(u32::MAX);
        let (offsets, arcs_of, _) = arcs(&[u32::MAX - 1, 1]);
        assert!(matches!(offsets, Offsets::Narrow(_)));
        assert_eq!(arcs_of, [0..most - 1, most - 1..most]);
        let (offsets, arcs_of, bytes) = arcs(&[u32::MAX, 1, 7]);
        assert!(matches!(offsets, Offsets::Wide(_)));
        assert_eq!((arcs_of, bytes), (vec![0..most, most..most + 1, most + 1..most + 8], 32));
    }

    #[test]
    fn degrees_that_do_not_come_to_the_arcs_are_refused() {
        let error = Offsets::new(&[2, 0, 5], 8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().starts_with("cannot use the degrees: expected 8 arcs, got 7"));
    }
}
