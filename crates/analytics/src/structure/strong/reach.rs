//! Components by passes over tiles, until what is left fits the memory.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use tiergraph_core::Result;
use tiergraph_graph::{Direction, Graph, TileSelection};
use tiergraph_mem::Array;

use super::depth_first::depth_first;
use crate::edge_map::{ActiveTiles, chunk_log2, for_each_arc};
use crate::report::Run;
use crate::row_map::Lists;

/// A vertex is reached from the one that was chosen, or reaches it; has an arc in, within its part.
const FORWARD: u8 = 1;
const BACKWARD: u8 = 2;
const ENTERED: u8 = 4;

/// The part of vertices whose component is known.
const DONE: u32 = u32::MAX;

/// Bytes of [`Parts`], and of the arcs of a last search.
pub(super) fn bytes(vertices: usize) -> u64 {
    vertices as u64 * 13 + search_bytes(vertices)
}

/// The memory that there is for the arcs of a last search: as many as there are vertices.
fn search_bytes(vertices: usize) -> u64 {
    vertices as u64 * 12
}

/// The vertices, cut into parts that no component lies across.
pub(super) struct Parts<'g> {
    graph: &'g Graph,
    part: Array<u32>,
    /// The number of parts there were.
    count: u32,
    flags: Array<AtomicU8>,
    /// Arcs that leave each vertex within its part.
    leaving: Array<AtomicU32>,
    log2: u32,
}

impl<'g> Parts<'g> {
    pub(super) fn new(graph: &'g Graph) -> Result<Self> {
        let n = graph.vertices();
        Ok(Self {
            graph,
            part: Array::zeroed(n)?,
            count: 1,
            flags: Array::zeroed(n)?,
            leaving: Array::zeroed(n)?,
            log2: chunk_log2(graph),
        })
    }

    /// Labels every vertex with one of its component. `labels` are the vertices' own numbers before.
    pub(super) fn find(&mut self, run: &mut Run<'_>, labels: &mut [u32]) -> Result<()> {
        let mut pivot = self.pivot()?;
        const NONE: u32 = u32::MAX;
        run.resume(&(), |from| {
            let mut scalars = [0; 2];
            from.array(&mut scalars)?;
            (self.count, pivot) = (scalars[0], Some(scalars[1]).filter(|&v| v != NONE));
            from.array(&mut self.part)?;
            from.array(labels)
        })?;
        loop {
            if let Some(vertex) = pivot {
                self.reach(run, vertex)?;
                self.split(vertex, labels);
            }
            let left = self.count_arcs()?;
            let trimmed = self.trim();
            run.iteration("trim", trimmed as f64);
            if left == 0 {
                return Ok(());
            }
            if self.search(left, labels)? {
                run.iteration("search", left as f64);
                return Ok(());
            }
            // Taking single vertices off costs a pass, whatever it finds; a search from a vertex costs several.
            let many = self.graph.vertices() as u64 / 64;
            pivot = if trimmed > many { None } else { self.largest() };
            run.keep(|to| {
                to.array(&[self.count, pivot.unwrap_or(NONE)]);
                to.array(&self.part);
                to.array(labels);
                Ok(())
            })?;
        }
    }

    fn is_open(&self, v: u32) -> bool {
        self.part[v as usize] != DONE
    }

    fn flag(&self, v: u32) -> u8 {
        self.flags[v as usize].load(Ordering::Relaxed)
    }

    /// The vertex of the most ways through it.
    fn pivot(&self) -> Result<Option<u32>> {
        let out = self.graph.degrees().of(Direction::Out)?;
        let into = self.graph.degrees().of(Direction::In)?;
        let ways = |&v: &usize| u64::from(out[v]) * u64::from(into[v]);
        Ok((0..out.len()).max_by_key(ways).map(|v| v as u32))
    }

    /// A vertex of the most arcs left.
    fn largest(&self) -> Option<u32> {
        let open = (0..self.part.len() as u32).filter(|&v| self.is_open(v));
        open.max_by_key(|&v| self.leaving[v as usize].load(Ordering::Relaxed))
    }

    /// Marks what `vertex` reaches, and what reaches it, within its part.
    fn reach(&self, run: &mut Run<'_>, vertex: u32) -> Result<()> {
        let n = self.part.len();
        self.flags[vertex as usize].fetch_or(FORWARD | BACKWARD, Ordering::Relaxed);
        let none = || ActiveTiles::none(n, self.log2);
        let (mut active, mut next) = ([none(), none()], [none(), none()]);
        active.iter().for_each(|tiles| tiles.set(vertex));
        while active.iter().any(ActiveTiles::any) {
            let [forward, backward] = &active;
            let wanted = self.graph.tiles().select(|e| forward.column(e) || backward.row(e));
            let marked = AtomicU64::new(0);
            self.pass(&wanted, |from, to| {
                let (a, b) = (self.flag(from), self.flag(to));
                let forward = a & FORWARD & !b;
                let backward = b & BACKWARD & !a;
                if forward | backward == 0 || self.part[from as usize] != self.part[to as usize] {
                    return;
                }
                if forward != 0 {
                    self.flags[to as usize].fetch_or(FORWARD, Ordering::Relaxed);
                    next[0].set(to);
                }
                if backward != 0 {
                    self.flags[from as usize].fetch_or(BACKWARD, Ordering::Relaxed);
                    next[1].set(from);
                }
                marked.fetch_add(1, Ordering::Relaxed);
            })?;
            run.iteration("reach", marked.into_inner() as f64);
            active.iter().for_each(ActiveTiles::clear);
            std::mem::swap(&mut active, &mut next);
        }
        Ok(())
    }

    /// Calls `visit(from, to)` for the selected arcs between vertices whose components are not known.
    fn pass(&self, wanted: &TileSelection, visit: impl Fn(u32, u32) + Sync) -> Result<()> {
        for_each_arc(
            self.graph,
            wanted,
            |_| (),
            |(), arcs| {
                arcs.rows(|row, arcs| {
                    if self.is_open(row) {
                        arcs.columns(|column| {
                            visit(column, row);
                            true
                        });
                    }
                });
            },
            |()| Ok(()),
        )
    }

    /// Takes off what was marked both ways, the component of `vertex`, and cuts the rest of its part.
    fn split(&mut self, vertex: u32, labels: &mut [u32]) {
        let (whole, first) = (self.part[vertex as usize], self.count);
        self.count += 3;
        for (v, part) in self.part.iter_mut().enumerate().filter(|(_, part)| **part == whole) {
            let flag = self.flags[v].swap(0, Ordering::Relaxed);
            match flag & (FORWARD | BACKWARD) {
                0 => *part = first,
                FORWARD => *part = first + 1,
                BACKWARD => *part = first + 2,
                _ => (*part, labels[v]) = (DONE, vertex),
            }
        }
    }

    /// Counts the arcs within parts, and those that leave each vertex; marks what they lead to.
    fn count_arcs(&self) -> Result<u64> {
        self.leaving.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        self.pass(&self.graph.tiles().select(|_| true), |from, to| {
            if self.is_inner(from, to) {
                self.leaving[from as usize].fetch_add(1, Ordering::Relaxed);
                self.flags[to as usize].store(ENTERED, Ordering::Relaxed);
            }
        })?;
        Ok(self.leaving.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).sum())
    }

    fn is_inner(&self, from: u32, to: u32) -> bool {
        from != to && self.part[from as usize] == self.part[to as usize]
    }

    /// Takes off the vertices that no arc leaves, or none enters; each is labelled by itself.
    fn trim(&mut self) -> u64 {
        let mut trimmed = 0;
        for (v, part) in self.part.iter_mut().enumerate() {
            let is_entered = self.flags[v].swap(0, Ordering::Relaxed) != 0;
            let is_left = self.leaving[v].load(Ordering::Relaxed) > 0;
            if *part != DONE && !(is_entered && is_left) {
                *part = DONE;
                trimmed += 1;
            }
        }
        trimmed
    }

    /// Searches the arcs that are left, if these fit the memory; whether they do. There are `most` at most.
    fn search(&self, most: u64, labels: &mut [u32]) -> Result<bool> {
        let bytes = self.part.len() as u64 * 8 + most * 4;
        let bytes = bytes.saturating_sub(search_bytes(self.part.len()));
        let Some(_held) = self.graph.memory().reserve_if_left(bytes, "the arcs that are left")?
        else {
            return Ok(false);
        };
        if most > u64::from(u32::MAX) {
            return Ok(false);
        }
        let length = |v: u32| match self.is_open(v) {
            true => self.leaving[v as usize].load(Ordering::Relaxed),
            false => 0,
        };
        let n = self.part.len() as u32;
        // Arcs to vertices that were trimmed are counted, and left out: their places lead to the vertex itself.
        let mut lists = Lists::of_lengths(0, (0..n).map(length))?;
        let (starts, targets) = lists.slots();
        let next: Vec<AtomicU32> = starts.iter().map(|&start| AtomicU32::new(start)).collect();
        for v in 0..n {
            let own = starts[v as usize] as usize..starts[v as usize + 1] as usize;
            targets[own].iter().for_each(|target| target.store(v, Ordering::Relaxed));
        }
        self.pass(&self.graph.tiles().select(|_| true), |from, to| {
            if self.is_inner(from, to) {
                let at = next[from as usize].fetch_add(1, Ordering::Relaxed);
                if let Some(target) = targets.get(at as usize) {
                    target.store(to, Ordering::Relaxed);
                }
            }
        })?;
        depth_first(self.graph, &lists, labels, |v| self.is_open(v))?;
        Ok(true)
    }
}
