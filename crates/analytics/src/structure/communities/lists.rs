//! Lists of neighbours in memory, and what makes them.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;
use tiergraph_graph::Graph;

/// Bytes of an arc with its weight.
pub(super) const ARC_BYTES: u64 = size_of::<WeightedArc>() as u64;

/// A neighbour, and the weight of what connects to it.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct WeightedArc {
    pub(super) target: u32,
    /// A float64 in two halves: arcs are 12 bytes.
    weight: [u32; 2],
}

impl WeightedArc {
    #[inline(always)]
    pub(super) fn new(target: u32, weight: f64) -> Self {
        let bits = weight.to_bits();
        Self { target, weight: [bits as u32, (bits >> 32) as u32] }
    }

    #[inline(always)]
    pub(super) fn weight(self) -> f64 {
        f64::from_bits(u64::from(self.weight[0]) | u64::from(self.weight[1]) << 32)
    }
}

/// A list of neighbours, some of them perhaps several times.
#[derive(Clone, Copy)]
pub(super) enum List<'a> {
    /// Each of weight 1.
    Plain(&'a [u32]),
    Weighted(&'a [WeightedArc]),
}

/// The lists of some vertices.
pub(super) trait BlockLists: Sync {
    /// The list of `v`, which is one of them.
    fn list(&self, v: u32) -> List<'_>;
}

/// Puts lists, of which `starts` says where each begins and the last ends, in order: by target, then by weight.
///
/// # Errors
/// A system without threads.
pub(super) fn sort(graph: &Graph, starts: &[u32], arcs: &mut [WeightedArc]) -> Result<()> {
    let groups = groups(0..starts.len() as u32 - 1, 1 << 12);
    let arcs_of =
        |group: &Range<u32>| (starts[group.end as usize] - starts[group.start as usize]) as usize;
    graph.thread_pool().share(split(arcs, &groups, arcs_of), |_, groups| {
        for (group, arcs) in groups {
            let first = starts[group.start as usize];
            for v in group.start as usize..group.end as usize {
                let own = (starts[v] - first) as usize..(starts[v + 1] - first) as usize;
                arcs[own].sort_unstable_by_key(|arc| (arc.target, arc.weight().to_bits()));
            }
        }
    })?;
    Ok(())
}

/// `vertices` in groups of `each`.
pub(super) fn groups(vertices: Range<u32>, each: u32) -> Vec<Range<u32>> {
    let end = vertices.end;
    vertices.step_by(each as usize).map(|begin| begin..end.min(begin + each)).collect()
}

/// `values` cut into as many for each group as `len` says, with the group.
pub(super) fn split<'a, T: Send>(
    values: &'a mut [T],
    groups: &'a [Range<u32>],
    len: impl Fn(&Range<u32>) -> usize + Send + 'a,
) -> impl Iterator<Item = (Range<u32>, &'a mut [T])> + Send + 'a {
    let mut rest = values;
    groups.iter().map(move |group| {
        let (own, after) = std::mem::take(&mut rest).split_at_mut(len(group));
        rest = after;
        (group.clone(), own)
    })
}
