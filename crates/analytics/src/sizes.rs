//! Sizes of the components of a graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_mem::Array;

/// The number of components of a graph, and their sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComponentSizes {
    /// The number of components.
    pub components: u64,
    /// The number of vertices of the largest component; 0 where there is none.
    pub largest_component: u64,
    /// A histogram of sizes: entry i counts the components of 2^i to 2^(i + 1) - 1 vertices.
    pub component_sizes: Vec<u64>,
    /// The label and the number of vertices of each of the largest components, by descending size and
    /// then by label.
    pub largest: Vec<(u64, u64)>,
}

impl ComponentSizes {
    /// Counts the components of a graph whose vertices have these `labels`: a component's label is its
    /// first vertex. Lists the `most` largest. Takes 4 bytes a vertex while it counts.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub fn of(labels: &[u32], most: usize) -> Result<Self> {
        let mut sizes = Array::<u32>::zeroed(labels.len())?;
        labels.iter().for_each(|&label| sizes[label as usize] += 1);
        let mut component_sizes = Vec::new();
        let mut largest = BinaryHeap::new();
        for (label, &size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0) {
            let log2 = size.ilog2() as usize;
            component_sizes.resize(component_sizes.len().max(log2 + 1), 0);
            component_sizes[log2] += 1;
            // The least of those listed comes first.
            let entry = Reverse((size, Reverse(label)));
            if largest.len() < most {
                largest.push(entry);
            } else if let Some(mut least) = largest.peek_mut()
                && entry < *least
            {
                *least = entry;
            }
        }
        let listed = largest.into_sorted_vec().into_iter();
        Ok(Self {
            components: component_sizes.iter().sum(),
            largest_component: sizes.iter().copied().max().unwrap_or(0).into(),
            component_sizes,
            largest: listed
                .map(|Reverse((size, Reverse(label)))| (label as u64, size.into()))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_equal_ones_by_name() {
        // Components 0 (3), 1 (2), 4 (2), 6 (1), 8 (4).
        let names = [0, 1, 0, 0, 4, 1, 6, 4, 8, 8, 8, 8];
        let sizes = ComponentSizes::of(&names, 3).unwrap();
        assert_eq!((sizes.components, sizes.largest_component), (5, 4));
        assert_eq!(sizes.component_sizes, [1, 3, 1]);
        assert_eq!(sizes.largest, [(8, 4), (0, 3), (1, 2)]);
        assert_eq!(ComponentSizes::of(&names, 9).unwrap().largest.len(), 5);
        assert_eq!(ComponentSizes::of(&names, 0).unwrap().largest, []);
        let none = ComponentSizes::of(&[], 3).unwrap();
        assert_eq!((none.components, none.largest_component), (0, 0));
    }
}
