//! The decision which ids are vertices, and the passes that it takes.
//!
//! One pass counts the edges of each id. Ids that are too far apart to be counted in their place are
//! collected first, which takes one more pass, and so does `--ids map`.

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::Budget;

use super::gaps::Occurring;
use super::ids::{IdMap, SharedIds, collect};
use super::scan::{Known, Scan, Scanned, fits, scan, too_many};
use crate::build::Job;
use crate::build::array::Array;
use crate::build::input::Input;
use crate::build::needs::{Needs, Watch};
use crate::build::options::Ids;
use crate::build::plan;
use crate::build::progress::Ticker;
use crate::build::report::Stages;

/// The scanned vertices and edges, and the way from ids to vertices.
pub(crate) struct Found<'a> {
    pub(crate) scanned: Scanned,
    /// The memory that the rest of the build needs.
    pub(crate) needs: Needs<'a>,
    /// The map from ids to vertices, where ids were collected first.
    pub(crate) ids: Option<IdMap>,
    /// The ids that are vertices, where some of the scanned ids are left out.
    occurring: Option<Arc<Occurring>>,
    /// The place of each scanned id, where some are left out.
    places: Option<Array<u32>>,
}

/// The user's ids of the vertices, ascending, shared with the thread that writes them.
pub(crate) enum UserIds {
    Mapped(SharedIds),
    Occurring(Arc<Occurring>),
}

impl Found<'_> {
    /// The user's ids of the vertices; `None` where they are 0 to |V| - 1.
    pub(crate) fn user_ids(&self) -> Option<UserIds> {
        match (&self.ids, &self.occurring) {
            (Some(ids), _) => Some(UserIds::Mapped(ids.ids())),
            (None, Some(occurring)) => Some(UserIds::Occurring(Arc::clone(occurring))),
            (None, None) => None,
        }
    }

    /// Where ids are left out, replaces `ranks`, the places of vertices, by the places of scanned ids.
    pub(crate) fn arrange(
        &mut self,
        ranks: &mut Option<Array<u32>>,
        budget: &Budget,
    ) -> Result<()> {
        if let Some(occurring) = self.occurring.take() {
            self.places = Some(occurring.places(ranks.as_ref(), budget)?);
            *ranks = None;
        }
        Ok(())
    }

    /// The place of each scanned id; `None` where it is the id. `ranks` are the places of vertices.
    pub(crate) fn lookup<'r>(&'r self, ranks: Option<&'r Array<u32>>) -> Option<&'r Array<u32>> {
        self.places.as_ref().or(ranks)
    }
}

/// Facts about the vertices that are known before any edge is read.
struct Before {
    /// Ids that the input lists, ascending.
    listed: Option<Vec<u64>>,
    /// The number of vertices, if all ids below it are vertices.
    count: Option<u64>,
    /// The number of rows that are stored with the vertices, where it is known.
    rows: Option<u64>,
}

impl<'a> Job<'a> {
    /// Scans the edges and decides which ids are vertices; adds what the user is to know to `notes`.
    /// `refused` is the error with which memory has ended already.
    pub(crate) fn identify(
        &self,
        input: &mut Input<'_>,
        refused: Option<Error>,
        notes: &mut Vec<String>,
        stages: &mut Stages,
    ) -> Result<Found<'a>> {
        let before = self.before(input)?;
        if self.options.ids == Ids::Map {
            let needs = Needs { mapped: Some(true), ..self.needs };
            let ids = self.collect(input, &[], needs, refused, stages)?;
            return self.mapped(input, ids, None, stages);
        }
        if before.count.is_some() {
            let exact = self.options.vertices.is_some();
            let known = Known { ids: None, least: before.count, exact, gives_up: false };
            return self.all(input, known, refused, stages);
        }
        if self.options.ids == Ids::Dense {
            return self.dense(input, &before, refused, stages);
        }
        self.choose(input, &before, refused, notes, stages)
    }

    fn before(&self, input: &mut Input<'_>) -> Result<Before> {
        let mut listed = input.source().vertices()?;
        if let Some(listed) = &mut listed {
            listed.sort_unstable();
        }
        let says = input.source().size_hint().vertices.filter(|_| listed.is_none());
        let count = match (self.options.vertices, says) {
            (Some(asked), None) if listed.is_none() => Some(asked),
            (Some(asked), says) if says != Some(asked) => {
                let says = says.map_or("a list of them".into(), |says| says.to_string());
                return Err(Error::new(ErrorKind::Input, "use the option")
                    .object(format!("--vertices {asked}"))
                    .expected("an input that does not say its vertices")
                    .got(says)
                    .hint("leave it out"));
            }
            (_, says) => says,
        };
        if let Some(count) = count.filter(|count| *count > u64::from(u32::MAX)) {
            return Err(too_many(count - 1));
        }
        let rows = match self.options.rows {
            None => self.options.attachments.rows()?,
            rows => rows,
        };
        Ok(Before { rows: rows.filter(|_| listed.is_none()), listed, count })
    }

    /// Takes every id for a vertex.
    fn dense(
        &self,
        input: &mut Input<'_>,
        before: &Before,
        refused: Option<Error>,
        stages: &mut Stages,
    ) -> Result<Found<'a>> {
        let least = before.least();
        if let Some(least) = least.filter(|least| *least > u64::from(u32::MAX)) {
            return Err(too_many(least - 1));
        }
        let known = Known { ids: None, least, exact: false, gives_up: false };
        self.all(input, known, refused, stages)
    }

    /// Takes all ids that a scan finds for vertices; `known` is what the scan is told before.
    fn all(
        &self,
        input: &mut Input<'_>,
        known: Known<'_>,
        refused: Option<Error>,
        stages: &mut Stages,
    ) -> Result<Found<'a>> {
        let needs = Needs { claimed: known.least, mapped: Some(false), ..self.needs };
        let scanned = self.scan(input, known, needs, refused, stages)?.done()?;
        Ok(Found { scanned, needs, ids: None, occurring: None, places: None })
    }

    /// Takes every id for a vertex unless many of them have no edge.
    fn choose(
        &self,
        input: &mut Input<'_>,
        before: &Before,
        refused: Option<Error>,
        notes: &mut Vec<String>,
        stages: &mut Stages,
    ) -> Result<Found<'a>> {
        let least = before.least().filter(|least| fits(*least, self.budget));
        let known = Known { ids: None, least, exact: false, gives_up: true };
        let (edges_read, loops) = match self.scan(input, known, self.needs, refused, stages)? {
            Scan::Done(scanned) => return self.without_gaps(*scanned, before, notes),
            Scan::Sparse { edges_read, loops } => (edges_read, loops),
        };
        let ids = self.collect(input, &loops, self.needs, None, stages)?;
        let gaps = ids.gaps();
        if before.listed.is_none() {
            if !gaps.are_large() || before.rows.is_some_and(|rows| rows >= gaps.ids) {
                drop(ids);
                let mut found = self.dense(input, before, None, stages)?;
                found.scanned.edges_read = edges_read;
                return Ok(found);
            }
            notes.push(gaps.left_out());
        }
        self.mapped(input, ids, Some(edges_read), stages)
    }

    /// Leaves out ids without an edge where the input lists its ids, where as many rows are stored as
    /// ids have an edge, or where unused ids are many.
    fn without_gaps(
        &self,
        mut scanned: Scanned,
        before: &Before,
        notes: &mut Vec<String>,
    ) -> Result<Found<'a>> {
        let mut others = std::mem::take(&mut scanned.loops);
        others.extend(before.listed.iter().flatten());
        let occurring = Occurring::new(&scanned, &others, self.budget);
        let gaps = occurring.gaps();
        let leaves_out = match (&before.listed, before.rows) {
            (Some(_), _) => gaps.unused > 0,
            (None, Some(rows)) => gaps.unused > 0 && rows == gaps.ids - gaps.unused,
            (None, None) => gaps.are_large() && self.options.attachments.is_empty(),
        };
        if before.listed.is_none() && before.rows.is_none_or(|_| leaves_out) {
            notes.extend(if leaves_out { Some(gaps.left_out()) } else { gaps.kept() });
        }
        if leaves_out {
            occurring.compact(&mut scanned);
        }
        let occurring = leaves_out.then(|| Arc::new(occurring));
        let needs = Needs { mapped: Some(false), ..self.needs };
        Ok(Found { scanned, needs, ids: None, occurring, places: None })
    }

    /// Scans the edges with vertices by the map `ids`. `edges_read` is the number of edges that the
    /// source handed out, if an earlier pass has dropped some.
    fn mapped(
        &self,
        input: &mut Input<'_>,
        ids: IdMap,
        edges_read: Option<u64>,
        stages: &mut Stages,
    ) -> Result<Found<'a>> {
        let least = Some(ids.ids().len() as u64);
        let known = Known { ids: Some(&ids), least, exact: false, gives_up: false };
        let needs = Needs { claimed: least, mapped: Some(true), ..self.needs };
        let mut scanned = self.scan(input, known, needs, None, stages)?.done()?;
        scanned.edges_read = edges_read.unwrap_or(scanned.edges_read);
        Ok(Found { scanned, needs, ids: Some(ids), occurring: None, places: None })
    }

    /// Collects all ids of the edges, and of `more`, into a map.
    fn collect(
        &self,
        input: &mut Input<'_>,
        more: &[u64],
        needs: Needs<'_>,
        refused: Option<Error>,
        stages: &mut Stages,
    ) -> Result<IdMap> {
        let edges = input.source().size_hint().edges.unwrap_or(0);
        let run = (self.budget.left() / 64).clamp(1 << 12, 1 << 22) as usize;
        let mut ticker = Ticker::new(self.progress, "ids", "edges", edges);
        let watch = Watch::new(needs, self.budget.limit(), refused);
        let ids = collect(input, more, run, self.budget, watch, &mut ticker, self.cancel)?;
        stages.end("ids");
        Ok(ids)
    }

    fn scan(
        &self,
        input: &mut Input<'_>,
        known: Known<'_>,
        needs: Needs<'_>,
        refused: Option<Error>,
        stages: &mut Stages,
    ) -> Result<Scan> {
        let edges = input.source().size_hint().edges.unwrap_or(0);
        let mut ticker = Ticker::new(self.progress, "scan", "edges", edges);
        let (options, budget) = (self.options, self.budget);
        let (undirected, sample) = (self.undirected, plan::sample_arcs(budget));
        let watch = Watch::new(needs, budget.limit(), refused);
        let scanned = scan(
            input,
            known,
            undirected,
            options,
            budget,
            sample,
            watch,
            &mut ticker,
            self.cancel,
        )?;
        stages.end("scan");
        Ok(scanned)
    }
}

impl Before {
    /// The least number of vertices, where every id up to the largest listed one is a vertex.
    fn least(&self) -> Option<u64> {
        self.listed.as_ref().and_then(|ids| ids.last()).map(|id| id.saturating_add(1))
    }
}
