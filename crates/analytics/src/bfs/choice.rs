//! The choice of a level's plan, by what it costs to read the arcs and to process them.
//!
//! Costs are in bytes that a drive reads, about a nanosecond each; the work on bytes that are
//! there was measured on two cores in the same unit. What is cheapest decides the seconds only:
//! every plan gives the same level.

use tiergraph_graph::{Direction, RawSelection, RowSelection};

use super::{Frontier, LIST_SHARE, Search, UNREACHED};

/// Random pages cost about this many times as much a byte as whole blocks.
const RANDOM_COST: u64 = 2;
/// Cost of the work on a byte of a pushed list.
const PUSH_COST: u64 = 2;
/// Cost of the work on an unvisited vertex that looks for a neighbour in the frontier.
pub(crate) const PULL_COST: u64 = 25;
/// Cost of the work on a byte of tiles.
pub(crate) const TILES_COST: u64 = 1;
/// Cost of the work on a byte of raw blocks.
const RAW_COST: u64 = 3;
/// The fewest bytes that a list has.
const LEAST_LIST: u64 = 2;
/// Raw blocks are pushed only from a frontier of fewer than one in so many vertices: the number of its
/// arcs is not known, and if there are many, the unvisited vertices find it faster.
const RAW_SHARE: usize = 256;
/// Bytes that rows which do not stay in memory may read, in eighths of the bytes of all tiles: a level
/// on tiles and the levels after it then stay within one and a half passes.
const ROWS_EIGHTHS: u64 = 10;

/// A plan for one level: how its vertices are found, and what is read for that.
pub(super) enum Plan {
    /// Claim the unvisited neighbours of the frontier.
    Push(RowSelection),
    /// Claim the unvisited vertices that have a neighbour in the frontier.
    Pull(RowSelection),
    /// Claim the unvisited neighbours of the frontier, which is listed, from raw blocks.
    PushRaw(RawSelection, Vec<u32>),
    /// Pass over tiles, or over raw blocks.
    Tiles,
}

impl Search<'_> {
    /// The cheapest plan for the level. A plan is worked out only while its least cost is below
    /// the best that is known, and where there are tiles, rows must not read much more than those.
    pub(super) fn plan(&self, frontier: &mut Frontier) -> Plan {
        let graph = self.graph;
        let mut best = (u64::MAX, Plan::Tiles);
        if graph.tiles().is_stored() {
            best.0 = graph.tiles().missing_bytes() + graph.tiles().bytes() * TILES_COST;
        } else if graph.raw(Direction::In).is_stored() {
            best.0 = graph.raw(Direction::In).bytes() * RAW_COST;
        }
        let pull_work = self.unvisited as u64 * PULL_COST;
        let can_pull = graph.rows(Direction::In).is_stored();
        let push_bound = if can_pull { best.0.min(pull_work * 8) } else { best.0 };
        if graph.rows(Direction::Out).is_stored()
            && self.least_lists(frontier) * PUSH_COST < push_bound
            && let Some(rows) = graph.rows(Direction::Out).select(self.sorted(frontier))
        {
            let cost = rows.missing_bytes() * RANDOM_COST + rows.list_bytes() * PUSH_COST;
            if cost < best.0 && self.may_read(&rows) {
                best = (cost, Plan::Push(rows));
            }
        }
        if !graph.tiles().is_stored()
            && frontier.count < self.with_arcs / RAW_SHARE
            && let Some(raw) = graph.raw(Direction::Out).select(self.sorted(frontier))
        {
            let cost = raw.missing_bytes() + frontier.count as u64 * PULL_COST;
            if cost < best.0 {
                best = (cost, Plan::PushRaw(raw, self.sorted(frontier).to_vec()));
            }
        }
        if can_pull
            && pull_work < best.0
            && let Some(rows) = self.unvisited_rows()
        {
            let missing = rows.missing_bytes();
            // Searches that follow find in memory what is read now.
            let is_cheaper = missing + pull_work < best.0
                || (rows.is_kept()
                    && graph.rows(Direction::In).reading_pays(best.0 - pull_work, missing));
            if is_cheaper && self.may_read(&rows) {
                best.1 = Plan::Pull(rows);
            }
        }
        best.1
    }

    /// Bytes that the lists of the frontier take at least: of a large frontier, about what they take, which is
    /// found sooner than the frontier is listed.
    fn least_lists(&self, frontier: &Frontier) -> u64 {
        if frontier.list.is_some() || frontier.count < self.with_arcs / LIST_SHARE {
            return frontier.count as u64 * LEAST_LIST;
        }
        self.graph
            .rows(Direction::Out)
            .sampled_list_bytes(|v| (v as usize) < self.depth.len() && self.depth(v) == self.level)
    }

    /// Selects pages with the in-neighbours of unvisited vertices; `None` in a graph without such rows.
    pub(super) fn unvisited_rows(&self) -> Option<RowSelection> {
        let unvisited = |v| (v as usize) < self.with_arcs && self.depth(v) == UNREACHED;
        self.graph.rows(Direction::In).select_where(unvisited)
    }

    /// Whether reading `rows` keeps the bytes that the search has read within 1¼ passes over tiles, or
    /// the rows stay in memory for later searches.
    fn may_read(&self, rows: &RowSelection) -> bool {
        let tiles = self.graph.tiles().bytes();
        let read = self.graph.totals().get().since(&self.before).bytes_read + rows.missing_bytes();
        tiles == 0 || rows.is_kept() || read <= tiles * ROWS_EIGHTHS / 8
    }
}
