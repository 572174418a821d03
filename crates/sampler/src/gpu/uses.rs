//! How often rows are wanted and lists drawn from: what presampling counted of an epoch's first batches,
//! and what is expected of the vertices that none of these met.

use tiergraph_gpu::kernels::{ListUse, list_transactions};

use super::lists::AllLists;
use crate::residency::unmet::{CLASSES, Classes, PARTS, class_of, hottest_first, others};

/// What presampling counted, and what is expected beside it.
pub(super) struct Uses {
    /// The number of batches that were sampled.
    pub batches: usize,
    /// For each vertex, how often its row was wanted.
    pub rows: Vec<u32>,
    /// For each vertex, what drawing from its list took.
    pub lists: Vec<ListUse>,
    /// For each vertex, the class of its degree.
    classes: Vec<u8>,
    /// By class, the parts of a use that are expected of a row that was not wanted.
    other_rows: [u64; CLASSES],
    /// By class, the parts of draws, lines and pages that are expected of a list that was not drawn from.
    other_lists: [ListUse; CLASSES],
}

impl Uses {
    /// The counts of the first `batches` of an epoch's `all` batches, for vertices with these numbers of
    /// neighbours.
    pub fn new(
        batches: usize,
        all: usize,
        rows: Vec<u32>,
        lists: Vec<ListUse>,
        degrees: impl Iterator<Item = u64>,
    ) -> Self {
        let classes: Vec<u8> = degrees.map(class_of).collect();
        let others = others(batches as u64, all as u64);
        let by_class =
            |uses: &mut dyn Iterator<Item = u64>| Classes::counted(classes.iter().copied(), uses);
        let of_rows = by_class(&mut rows.iter().map(|&uses| uses.into()));
        let counted = |count: fn(&ListUse) -> u64| by_class(&mut lists.iter().map(count));
        let (lines, pages) = (counted(|list| list.lines), counted(|list| list.pages));
        let of_draws = counted(|list| list.draws);
        let other_lists = std::array::from_fn(|class| {
            let draws = of_draws.expected(class, others);
            let of_draw = |uses: u64| (draws * uses).checked_div(of_draws.uses[class]).unwrap_or(0);
            ListUse { lines: of_draw(lines.uses[class]), pages: of_draw(pages.uses[class]), draws }
        });
        let other_rows = std::array::from_fn(|class| of_rows.expected(class, others));
        Self { batches, rows, lists, classes, other_rows, other_lists }
    }

    /// Every row, and every list by a fanout, once: what is assumed where no batch was sampled.
    pub fn of_all(lists: &AllLists<'_>, fanout: u32) -> Self {
        let of = |degree| {
            let lines = list_transactions(degree, fanout);
            ListUse { lines, pages: lines.min(1), draws: lines.min(1) }
        };
        let used: Vec<ListUse> = lists.degrees().map(of).collect();
        Self::new(0, 0, vec![1; used.len()], used, lists.degrees())
    }

    /// The parts of uses of a vertex's row that are expected in an epoch, as if it had as many batches as were
    /// presampled.
    pub fn row(&self, vertex: u32) -> u64 {
        match self.rows[vertex as usize] {
            0 => self.other_rows[usize::from(self.classes[vertex as usize])],
            uses => u64::from(uses) * PARTS,
        }
    }

    /// The parts of draws, lines and pages of a vertex's list that are expected likewise.
    pub fn list(&self, vertex: u32) -> ListUse {
        match self.lists[vertex as usize] {
            ListUse { draws: 0, .. } => {
                self.other_lists[usize::from(self.classes[vertex as usize])]
            }
            ListUse { lines, pages, draws } => {
                ListUse { lines: lines * PARTS, pages: pages * PARTS, draws: draws * PARTS }
            }
        }
    }

    /// All vertices, those first whose rows are expected to be wanted most.
    pub fn hottest_rows(&self) -> Vec<u32> {
        hottest_first(&self.rows, usize::MAX, |vertex| self.row(vertex))
    }
}

#[cfg(test)]
mod tests {
    use tiergraph_core::Draws;

    use super::*;

    /// Counts of `batches` batches, in each of which vertices of class c are met with a chance of `chances[c]`.
    fn met(draws: &mut Draws, classes: &[usize], chances: &[u64], batches: usize) -> Vec<u32> {
        let mut uses = vec![0; classes.len()];
        for _ in 0..batches {
            for (uses, &class) in uses.iter_mut().zip(classes) {
                *uses += u32::from(draws.below(10_000) < chances[class]);
            }
        }
        uses
    }

    #[test]
    fn other_batches_meet_what_was_not_met_as_often_as_expected() {
        let mut draws = Draws::new(5);
        let chances = [0, 20, 150, 300];
        let classes: Vec<usize> = (0..40_000).map(|vertex| vertex % 4).collect();
        let degrees = || classes.iter().map(|&class| [0, 1, 2, 4][class]);
        let first = met(&mut draws, &classes, &chances, 20);
        let of = |draws| ListUse { lines: 3 * draws, pages: 2 * draws, draws };
        let lists = |uses: &[u32]| -> Vec<ListUse> { uses.iter().map(|&n| of(n.into())).collect() };
        let uses = Uses::new(20, 80, first.clone(), lists(&first), degrees());
        let second = met(&mut draws, &classes, &chances, 20);
        for class in 1..4 {
            let unmet = |&v: &usize| first[v] == 0 && classes[v] == class;
            let vertices: Vec<usize> = (0..classes.len()).filter(unmet).collect();
            let found: u64 = vertices.iter().map(|&v| u64::from(second[v])).sum();
            let expected: u64 = vertices.iter().map(|&v| uses.row(v as u32)).sum();
            // Of four batches, three are others.
            let ratio = expected as f64 / (found * PARTS * 3 / 4) as f64;
            assert!((0.85..1.15).contains(&ratio), "class {class}: {ratio}");
            assert_eq!(uses.list(vertices[0] as u32), of(uses.row(vertices[0] as u32)));
        }
        // Nobody ever meets those without neighbours; and what was met counts as it was.
        assert_eq!((uses.row(0), uses.list(0)), (0, ListUse::default()));
        let vertex = first.iter().position(|&n| n == 2).unwrap_or(0);
        assert_eq!(uses.row(vertex as u32), 2 * PARTS);
        assert_eq!(uses.list(vertex as u32), of(2 * PARTS));
        // An epoch of which all was presampled is as it was counted, to a 4096th.
        let whole = Uses::new(20, 20, first.clone(), lists(&first), degrees());
        let other = first.iter().zip(&classes).position(|(&n, &class)| n == 0 && class == 3);
        let (part, all) =
            (uses.row(other.unwrap_or(0) as u32), whole.row(other.unwrap_or(0) as u32));
        assert!(0 < all && all <= part * 4 / 3 / 4096, "{all} and {part}");
        let order = uses.hottest_rows();
        assert_eq!(order.len(), first.len());
        assert!(order.is_sorted_by(|&a, &b| uses.row(a) >= uses.row(b)));
    }
}
