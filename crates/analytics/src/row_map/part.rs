//! The part of all neighbour lists that is in memory at a time.

use tiergraph_core::Result;
use tiergraph_graph::Graph;

use super::{Begin, Lists, Visit, Wanted};

/// The lists of a range of vertices, or of some of them.
pub(crate) struct ListsPart<'a> {
    pub(super) graph: &'a Graph,
    pub(super) lists: &'a Lists,
    /// The vertices that have lists here, ascending; `None` if all of the range do.
    pub(super) some: Option<&'a [u32]>,
    pub(super) is_forward: bool,
}

impl ListsPart<'_> {
    /// The neighbours of `v`, if its list is here.
    #[inline(always)]
    pub(crate) fn get(&self, v: u32) -> Option<&[u32]> {
        let is_here = match self.some {
            None => self.lists.vertices().contains(&v),
            Some(some) => some.binary_search(&v).is_ok(),
        };
        is_here.then(|| self.lists.of(v))
    }

    /// # Errors
    /// Cancellation.
    pub(crate) fn check_cancel(&self) -> Result<()> {
        self.graph.cancel().check("finish the pass")
    }

    /// The number of vertices of the range and of their arcs.
    pub(crate) fn size(&self) -> usize {
        self.lists.vertices().len() + self.lists.starts.last().map_or(0, |&end| end as usize)
    }

    /// The vertices that are `wanted`, if they and their arcs are no more than `most`.
    pub(crate) fn few(&self, wanted: &Wanted<'_>, most: usize) -> Option<Vec<u32>> {
        let (mut few, mut size) = (Vec::new(), 0);
        let mut add = |v: u32| {
            if wanted(v) {
                size += 1 + self.lists.of(v).len();
                few.push(v);
            }
            size <= most
        };
        let is_few = match self.some {
            None => self.lists.vertices().all(&mut add),
            Some(some) => some.iter().all(|&v| add(v)),
        };
        is_few.then_some(few)
    }

    /// Calls `visit` with each vertex that is `wanted`, on all threads, as [`RowMap::for_each_of`](super::RowMap::for_each_of).
    pub(crate) fn visit<W>(
        &self,
        wanted: &Wanted<'_>,
        begin: &impl Begin<W>,
        visit: &impl Visit<W>,
    ) -> Result<()> {
        let Some(some) = self.some else {
            return self.lists.visit(self.graph, wanted, self.is_forward, begin, visit);
        };
        let some: Vec<u32> = some.iter().copied().filter(|&v| wanted(v)).collect();
        self.lists.visit_some(self.graph, &some, begin, visit)
    }
}
