//! The arrays that batches are written to, which the caller makes before their sizes are known.

use tiergraph_gpu::DevicePtr;
use tiergraph_gpu::kernels::Sampled;

/// As many nodes and edges as a batch has, or as its arrays have room for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchSize {
    /// Nodes.
    pub nodes: usize,
    /// Edges.
    pub edges: usize,
}

impl BatchSize {
    /// The size of a batch that was sampled.
    pub(super) fn of(sampled: &Sampled) -> Self {
        Self { nodes: sampled.nodes(), edges: sampled.edges() }
    }

    /// Whether arrays of this size are what a batch of size `of` is handed over in: they have room for it, and
    /// not much more.
    pub(super) fn suits(self, of: Self) -> bool {
        let suits = |room: usize, count: usize| count <= room && room - count <= count / 4 + SMALL;
        suits(self.nodes, of.nodes) && suits(self.edges, of.edges)
    }
}

/// So many entries of an array are nothing to save.
const SMALL: usize = 1 << 10;
/// As many batches before one say how large it will be.
const RECENT: usize = 8;

/// The arrays in device memory that a batch is written to, from their beginnings on.
#[derive(Debug, Clone, Copy)]
pub struct Outputs {
    /// Each node's position in the user's order.
    pub nodes: DevicePtr<i64>,
    /// Each node's number of neighbours; `None` if they are not wanted, as of batches that the CPU samples.
    pub degree: Option<DevicePtr<i64>>,
    /// The sources of all edges, then, right behind them, their destinations.
    pub edge_index: DevicePtr<i64>,
    /// The number of each edge's arc.
    pub e_id: DevicePtr<i64>,
    /// A row of features for each node; null without features.
    pub x: DevicePtr<f32>,
    /// The place of each seed in the caller's list: as many as a batch has seeds at most.
    pub input_id: DevicePtr<i64>,
    /// What the arrays have room for.
    pub room: BatchSize,
}

/// The sizes of a loader's last batches.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentSizes {
    sizes: [BatchSize; RECENT],
    count: usize,
}

impl RecentSizes {
    /// Adds the size of another batch.
    pub fn push(&mut self, size: BatchSize) {
        self.sizes[self.count % RECENT] = size;
        self.count += 1;
    }

    /// The size that the next batch will hardly be larger than; `None` before the first one.
    ///
    /// It changes seldom, so that memory of arrays before it serves those of later ones.
    pub fn expected(&self) -> Option<BatchSize> {
        let most = |of: fn(&BatchSize) -> usize| {
            let largest = self.sizes.iter().map(of).max().unwrap_or(0);
            let step = (largest.next_power_of_two() / 32).max(1);
            (largest + largest / 64).next_multiple_of(step)
        };
        let expected = BatchSize { nodes: most(|size| size.nodes), edges: most(|size| size.edges) };
        (self.count > 0).then_some(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(nodes: usize, edges: usize) -> BatchSize {
        BatchSize { nodes, edges }
    }

    #[test]
    fn arrays_suit_batches_that_fill_them() {
        let room = size(10_000, 40_000);
        assert!(room.suits(room));
        assert!(room.suits(size(9_000, 35_000)));
        assert!(!room.suits(size(10_001, 40_000)), "too few nodes");
        assert!(!room.suits(size(10_000, 40_001)), "too few edges");
        assert!(!room.suits(size(5_000, 40_000)), "twice the memory");
        assert!(size(1_000, 1_000).suits(size(1, 0)), "little memory");
    }

    #[test]
    fn sizes_before_one_say_how_large_it_will_be() {
        let mut recent = RecentSizes::default();
        assert_eq!(recent.expected(), None);
        recent.push(size(117_174, 382_741));
        let expected = recent.expected().unwrap();
        assert!(expected.suits(size(117_174, 382_741)), "{expected:?}");
        assert!(expected.suits(size(118_900, 388_000)), "{expected:?}");
        recent.push(size(117_200, 382_000));
        assert_eq!(recent.expected(), Some(expected), "the same memory serves");
        recent.push(size(1_000_000, 1));
        assert!(recent.expected().unwrap().nodes >= 1_000_000);
        (0..RECENT).for_each(|_| recent.push(size(100, 300)));
        assert!(recent.expected().unwrap().suits(size(100, 300)), "of late, they are small");
    }
}
