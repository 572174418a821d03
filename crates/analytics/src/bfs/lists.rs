//! Small levels, followed one after the other on the calling thread.
//!
//! A level that passes over rows or blocks wakes threads and selects what to read, whatever the
//! frontier. Once a search has spent on such levels half of the time that lists in memory cost
//! ([`Adjacency`]), those are made: so it takes at most a half longer than the better of the two ways.
//! Where they do not fit the memory, small levels are read page by page, and pages that were read stay in
//! memory ([`NearLists`]), because most vertices of a level are on the pages of the one before.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tiergraph_core::Result;
use tiergraph_graph::{Direction, Graph, NearLists};
use tiergraph_mem::Reservation;

use super::{Frontier, Search, UNREACHED};
use crate::adjacency::Adjacency;

/// A level whose frontier has fewer than one in so many arcs is small.
const SMALL_SHARE: usize = 32;
/// The time that levels may take before lists are made, for each arc of the graph: half of what those take
/// of a graph that leaves the processor's caches.
const PATIENCE: Duration = Duration::from_nanos(8);
/// Graphs with short diameters have fewer small levels than this, of which one may have read all blocks.
const FEW_LEVELS: u32 = 8;
/// The most levels that are followed together.
const AT_ONCE: u32 = 1 << 14;
/// Pages take one part in so many of the memory that is left.
const PAGES_SHARE: u64 = 8;

/// The outcome of levels that were done: of one, or of several small ones in a row.
pub(super) struct LevelsDone {
    /// The name of the way they were done, for the run's report.
    pub(super) how: &'static str,
    /// The number of levels.
    pub(super) levels: u32,
    /// The number of vertices that they reached.
    pub(super) reached: usize,
    /// The frontier after the last of them.
    pub(super) next: Frontier,
}

/// The neighbour lists that small levels are followed with.
enum Lists<'a> {
    /// No lists yet: small levels have not taken long enough.
    NotYet,
    /// Lists of all arcs in memory.
    Made(Adjacency),
    /// Lists on pages, because all arcs do not fit the memory.
    Pages(Box<NearLists<'a>>),
    /// No lists: neither arcs nor pages fit the memory.
    Never,
}

impl<'a> Lists<'a> {
    fn new(graph: &'a Graph) -> Result<Self> {
        if let Some(lists) = Adjacency::read(graph, false)? {
            return Ok(Self::Made(lists));
        }
        let bytes = graph.memory().budget().left() / PAGES_SHARE;
        let bytes = bytes.max(NearLists::least_bytes(graph, Direction::Out));
        let pages = NearLists::new(graph, Direction::Out, bytes)?;
        Ok(pages.map_or(Self::Never, |pages| Self::Pages(Box::new(pages))))
    }
}

/// The small levels of a search: what they cost so far, and the lists that they are followed with.
pub(super) struct SmallLevels<'a> {
    lists: Lists<'a>,
    /// The number of small levels that were done without lists.
    levels: u32,
    /// The time that those levels took.
    spent: Duration,
    /// The memory of the least number of pages, until there are lists or pages.
    pages: Option<Reservation>,
}

impl<'a> SmallLevels<'a> {
    /// The small levels of a search that begins, with the reservation for the least number of `pages`.
    pub(super) fn new(pages: Reservation) -> Self {
        Self { lists: Lists::NotYet, levels: 0, spent: Duration::ZERO, pages: Some(pages) }
    }

    /// The small levels of a search that is known to have many: lists are made at once.
    ///
    /// # Errors
    /// Any error of a pass.
    pub(super) fn many(graph: &'a Graph) -> Result<Self> {
        Ok(Self { lists: Lists::new(graph)?, levels: 0, spent: Duration::ZERO, pages: None })
    }

    /// Notes how long a level took, and makes the lists once small levels took long enough.
    pub(super) fn note(
        &mut self,
        search: &Search<'a>,
        took: Duration,
        next: &Frontier,
    ) -> Result<()> {
        let is_small = next.count <= search.with_arcs / SMALL_SHARE && search.residual.is_none();
        if !is_small || !matches!(self.lists, Lists::NotYet) {
            return Ok(());
        }
        let graph = search.graph;
        (self.levels, self.spent) = (self.levels + 1, self.spent + took);
        let fit = Adjacency::bytes(graph, false) <= graph.memory().budget().left();
        let patience = u128::from(graph.manifest().arcs) * PATIENCE.as_nanos();
        if !fit || (self.levels >= FEW_LEVELS && self.spent.as_nanos() > patience) {
            self.pages = None;
            self.lists = Lists::new(graph)?;
        }
        Ok(())
    }

    /// Follows small levels from `frontier` on; `None` if that is not small, or there are no lists.
    pub(super) fn follow(
        &mut self,
        search: &Search<'a>,
        frontier: &mut Frontier,
    ) -> Result<Option<LevelsDone>> {
        let most = search.with_arcs.max(1 << 10) / SMALL_SHARE;
        if search.residual.is_some() || frontier.count > most {
            return Ok(None);
        }
        let done = match &mut self.lists {
            Lists::Made(lists) => search.follow_by(lists, search.sorted(frontier).to_vec())?,
            Lists::Pages(pages) => {
                let list = search.sorted(frontier).to_vec();
                search.follow_by(&mut Pages { pages, most }, list)?
            }
            Lists::NotYet | Lists::Never => return Ok(None),
        };
        Ok(Some(done).filter(|done| done.levels > 0))
    }
}

impl Search<'_> {
    /// Follows levels from the vertices `now` on, as long as they are small.
    fn follow_by<N: Neighbors>(&self, neighbors: &mut N, mut now: Vec<u32>) -> Result<LevelsDone> {
        let (mut next, mut levels, mut reached) = (Vec::new(), 0, 0);
        while !now.is_empty() && levels < AT_ONCE && self.unvisited > reached {
            if !neighbors.are_few(&mut now) {
                break;
            }
            let to = self.level + levels + 1;
            neighbors.each(&now, |u| {
                let depth = &self.depth[u as usize];
                if depth.load(Ordering::Relaxed) == UNREACHED {
                    depth.store(to, Ordering::Relaxed);
                    next.push(u);
                }
            })?;
            levels += 1;
            reached += next.len();
            std::mem::swap(&mut now, &mut next);
            next.clear();
        }
        Ok(LevelsDone { how: N::HOW, levels, reached, next: now.into() })
    }
}

/// Lists of neighbours that small levels are followed with.
trait Neighbors {
    /// The name of these lists in a run's report.
    const HOW: &'static str;

    /// Whether `vertices` have few enough arcs to be followed on one thread; may put them in order.
    fn are_few(&self, vertices: &mut [u32]) -> bool;

    /// Calls `visit` with every neighbour of `vertices`.
    fn each(&mut self, vertices: &[u32], visit: impl FnMut(u32)) -> Result<()>;
}

impl Neighbors for Adjacency {
    const HOW: &'static str = "lists";

    fn are_few(&self, vertices: &mut [u32]) -> bool {
        let arcs: usize = vertices.iter().map(|&v| self.degree(v)).sum();
        arcs <= self.arcs().max(1 << 10) / SMALL_SHARE
    }

    #[inline(always)]
    fn each(&mut self, vertices: &[u32], mut visit: impl FnMut(u32)) -> Result<()> {
        vertices.iter().for_each(|&v| self.targets(v, &mut visit));
        Ok(())
    }
}

/// Lists on pages of which many are in memory.
struct Pages<'s, 'g> {
    pages: &'s mut NearLists<'g>,
    /// The most vertices of a frontier that is followed.
    most: usize,
}

impl Neighbors for Pages<'_, '_> {
    const HOW: &'static str = "pages";

    fn are_few(&self, vertices: &mut [u32]) -> bool {
        vertices.sort_unstable();
        vertices.len() <= self.most && self.pages.is_near(vertices)
    }

    fn each(&mut self, vertices: &[u32], mut visit: impl FnMut(u32)) -> Result<()> {
        self.pages.visit(vertices, |_, u| visit(u as u32))
    }
}
