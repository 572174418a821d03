//! Arcs of one direction that are put in the lists of a range: from pages, tiles or raw blocks.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tiergraph_core::Result;
use tiergraph_format::rows::damaged_list;
use tiergraph_graph::{Direction, Graph};

use crate::adjacency::other_degrees;
use crate::edge_map::for_each_arc;

/// Lists of a range while the arcs of one direction are put in.
pub(super) struct Filling<'a> {
    pub(super) graph: &'a Graph,
    pub(super) range: Range<u32>,
    pub(super) starts: &'a [u32],
    /// How many arcs of another direction come first in each list.
    pub(super) after: Option<&'a [u32]>,
    pub(super) degrees: &'a [u32],
    pub(super) targets: &'a [AtomicU32],
    /// The vertices that are wanted, if only some are.
    pub(super) few: Option<&'a [u32]>,
}

impl Filling<'_> {
    pub(super) fn fill(&self, direction: Direction) -> Result<()> {
        if self.graph.rows(direction).is_stored() {
            return self.rows(direction);
        }
        let next = self.range.clone().map(|v| AtomicU32::new(self.start(v))).collect::<Vec<_>>();
        let sound = AtomicBool::new(true);
        let put = |v: u32, target: u32| {
            let Some(next) = next.get(v.wrapping_sub(self.range.start) as usize) else { return };
            if !self.put(v, next.fetch_add(1, Ordering::Relaxed), target) {
                sound.store(false, Ordering::Relaxed);
            }
        };
        if self.graph.raw(direction).is_stored() {
            self.raw(direction, &put)?;
        } else if direction == Direction::In && self.graph.tiles().is_stored() {
            let (first, end) = (u64::from(self.range.start), u64::from(self.range.end));
            let strips = self.graph.tiles().select(|entry| {
                entry.row_base < end && entry.row_base + u64::from(entry.rows) > first
            });
            for_each_arc(
                self.graph,
                &strips,
                |_| (),
                |(), arcs| {
                    arcs.rows(|row, arcs| {
                        arcs.columns(|column| {
                            put(row, column);
                            true
                        });
                    });
                },
                |()| Ok(()),
            )?;
        } else {
            let needs = format!("the {direction}-neighbours of vertices");
            return Err(self.graph.missing_layout("visit the neighbours of vertices in", &needs));
        }
        let complete = |(v, next): (u32, &AtomicU32)| {
            let is_wanted = self.few.is_none_or(|few| few.binary_search(&v).is_ok());
            !is_wanted || next.load(Ordering::Relaxed) == self.end(v)
        };
        let sound = sound.into_inner() && self.range.clone().zip(&next).all(complete);
        if sound { Ok(()) } else { Err(other_degrees(self.graph)) }
    }

    /// The place of the first arc of `v`.
    #[inline(always)]
    fn start(&self, v: u32) -> u32 {
        let before = self.after.map_or(0, |degrees| degrees[v as usize]);
        self.starts[(v - self.range.start) as usize] + before
    }

    /// The place behind the last arc of `v`.
    #[inline(always)]
    fn end(&self, v: u32) -> u32 {
        self.start(v) + self.degrees[v as usize]
    }

    /// Stores an arc of `v`; false if it is none of this list or leads to no vertex.
    #[inline(always)]
    fn put(&self, v: u32, at: u32, target: u32) -> bool {
        let is_sound = at < self.end(v) && (target as usize) < self.degrees.len();
        if is_sound {
            self.targets[at as usize].store(target, Ordering::Relaxed);
        }
        is_sound
    }

    /// From pages, where neighbours ascend and each has its place.
    fn rows(&self, direction: Direction) -> Result<()> {
        let rows = self.graph.rows(direction);
        let selection = match self.few {
            Some(few) => rows.select(few),
            None => rows.select_range(self.range.clone()),
        };
        let Some(selection) = selection else { return Ok(()) };
        rows.pass(
            &selection,
            |_| (),
            |(), page| {
                let on_page = page.vertices();
                let first = on_page.start.max(self.range.start.into());
                for v in first..on_page.end.min(self.range.end.into()) {
                    let piece = page.piece(v)?;
                    let v = v as u32;
                    let mut at = self.start(v).wrapping_add(piece.first as u32);
                    let mut is_sound =
                        piece.len == 0 || piece.degree == u64::from(self.degrees[v as usize]);
                    page.walk(v.into(), |target| {
                        is_sound = is_sound && self.put(v, at, target as u32);
                        at = at.wrapping_add(1);
                        is_sound
                    })?;
                    if !is_sound {
                        return Err(damaged_list(v));
                    }
                }
                Ok(())
            },
            |()| Ok(()),
        )
    }

    fn raw(&self, direction: Direction, put: &(dyn Fn(u32, u32) + Sync)) -> Result<()> {
        let raw = self.graph.raw(direction);
        let every: Vec<u32> =
            if self.few.is_some() { Vec::new() } else { self.range.clone().collect() };
        let vertices = self.few.unwrap_or(&every);
        let Some(selection) = raw.select(vertices) else { return Ok(()) };
        raw.selected_pass(
            &selection,
            vertices,
            |_| (),
            |(), row| {
                row.neighbors.iter().for_each(|&target| put(row.vertex as u32, target));
                Ok(())
            },
            |()| Ok(()),
        )
    }
}
