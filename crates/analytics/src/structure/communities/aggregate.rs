//! The smaller network whose vertices are communities.
//!
//! Communities come in parts whose members' neighbours fit the memory. A sweep over the members puts the communities of
//! neighbours to places of their own, where threads sort them and add up equal ones. Edges inside a community keep none
//! of its vertices from moving together, and are left out. A community of too many neighbours is
//! a part of its own, which adds to a sum for each community.

use std::ops::Range;

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_mem::Array;

use super::network::{Network, WeightedArc};
use super::segments::{ARC_BYTES, Segments, groups, split};

/// The least memory for neighbours.
pub(super) const LEAST_BYTES: u64 = 1 << 20;

/// The most memory for neighbours where a sweep reads nothing: new memory takes longer than another sweep.
const MOST_IN_MEMORY: u64 = 64 << 20;

/// Communities whose lists a thread makes before it takes others.
const EACH: u32 = 1 << 8;

/// The community of a neighbour, with a weight or with that of 1.
trait Slot: Zeroable + Copy + Send + Sync {
    /// Bytes that one takes, with those that sorting takes.
    const BYTES: u64;
    /// Whether slots have weights, which [`combine`](Self::combine) adds up in sums.
    const HAS_SUMS: bool;

    /// Brings equal targets together, ascending, and adds up their weights in the order in which they came, where slots have
    /// weights: `sums`, if there is memory for them, has a 0 for each community. Returns how many slots stay.
    fn combine(slots: &mut [Self], sums: Option<&mut [f64]>) -> usize;

    fn of(target: u32, weight: f64) -> Self;
    fn target(self) -> u32;
    fn weight(self) -> f64;
}

impl Slot for u32 {
    const BYTES: u64 = 4;
    const HAS_SUMS: bool = false;

    fn combine(slots: &mut [Self], _: Option<&mut [f64]>) -> usize {
        slots.sort_unstable();
        slots.len()
    }

    #[inline(always)]
    fn of(target: u32, _: f64) -> Self {
        target
    }

    #[inline(always)]
    fn target(self) -> u32 {
        self
    }

    #[inline(always)]
    fn weight(self) -> f64 {
        1.0
    }
}

impl Slot for WeightedArc {
    const BYTES: u64 = ARC_BYTES * 3 / 2;
    const HAS_SUMS: bool = true;

    fn combine(slots: &mut [Self], sums: Option<&mut [f64]>) -> usize {
        let mut kept = 0;
        let Some(sums) = sums else {
            slots.sort_by_key(|slot| slot.target);
            for i in 0..slots.len() {
                let slot = slots[i];
                if kept > 0 && slots[kept - 1].target == slot.target {
                    slots[kept - 1] =
                        Self::new(slot.target, slots[kept - 1].weight() + slot.weight());
                } else {
                    slots[kept] = slot;
                    kept += 1;
                }
            }
            return kept;
        };
        for i in 0..slots.len() {
            let slot = slots[i];
            let sum = &mut sums[slot.target as usize];
            if *sum == 0.0 {
                slots[kept] = slot;
                kept += 1;
            }
            *sum += slot.weight();
        }
        slots[..kept].sort_unstable_by_key(|slot| slot.target);
        for slot in &mut slots[..kept] {
            *slot = Self::new(slot.target, std::mem::take(&mut sums[slot.target as usize]));
        }
        kept
    }

    #[inline(always)]
    fn of(target: u32, weight: f64) -> Self {
        Self::new(target, weight)
    }

    #[inline(always)]
    fn target(self) -> u32 {
        self.target
    }

    #[inline(always)]
    fn weight(self) -> f64 {
        WeightedArc::weight(self)
    }
}

/// Some communities whose lists are made together.
enum Part {
    Several(Range<u32>),
    /// One whose members have more neighbours than there is memory for.
    Large(u32),
}

impl<'g> Network<'g> {
    /// The network whose vertices are the communities, numbered from 0 to `count`. The caller has reserved
    /// [`LEAST_BYTES`], and 32 bytes a vertex of this network.
    ///
    /// # Errors
    /// Those of a sweep, and of a temporary file where the lists do not fit the memory.
    pub(super) fn aggregate(&mut self, community: &[u32], count: usize) -> Result<Network<'g>> {
        let segments = match self.is_plain() {
            true => self.segments::<u32>(community, count)?,
            false => self.segments::<WeightedArc>(community, count)?,
        };
        Ok(Network::of(self.graph, count as u32, segments))
    }

    fn segments<S: Slot>(&mut self, community: &[u32], count: usize) -> Result<Segments> {
        let mut lengths = vec![0u32; count];
        let mut all = 0;
        for (&own, length) in community.iter().zip(self.lengths()) {
            let of_own = &mut lengths[own as usize];
            *of_own = of_own.saturating_add(u32::try_from(length).unwrap_or(u32::MAX));
            all += length;
        }
        // A place, and at most as many arcs that are made of them.
        let each = S::BYTES + ARC_BYTES;
        let memory = self.graph.memory();
        let left = memory.budget().left();
        let most = if self.is_in_memory() { MOST_IN_MEMORY.min(left / 4) } else { left / 4 };
        let more = (all * each).min(most).saturating_sub(LEAST_BYTES);
        let held = memory.reserve_if_left(more, "neighbours of communities")?;
        let room = LEAST_BYTES + if held.is_some() { more } else { 0 };
        let most = (room / each).min(u64::from(u32::MAX) - 1) as u32;
        let sums = if S::HAS_SUMS { self.graph.thread_pool().size() * count * 8 } else { 0 };
        let sums = memory.reserve_if_left(sums as u64, "sums of communities")?;
        let slots = Array::<S>::zeroed(all.min(most.into()) as usize)?;
        let (parts, made) = (cut(&lengths, most), Segments::that_leave(left / 3));
        let mut lists = Aggregation { community, lengths, slots, has_sums: sums.is_some(), made };
        for part in parts {
            match part {
                Part::Several(part) => lists.several(self, part)?,
                Part::Large(large) => lists.large(self, large)?,
            }
        }
        Ok(lists.made)
    }
}

/// The lists of communities while they are made.
struct Aggregation<'a, S> {
    community: &'a [u32],
    /// At most so many neighbours have the members of each community.
    lengths: Vec<u32>,
    slots: Array<S>,
    /// Whether there is memory for a sum for each community and thread.
    has_sums: bool,
    made: Segments,
}

impl<S: Slot> Aggregation<'_, S> {
    /// Makes the lists of the communities of `part`.
    fn several(&mut self, network: &mut Network<'_>, part: Range<u32>) -> Result<()> {
        let Self { community, lengths, slots, has_sums, made } = self;
        let own = &lengths[part.start as usize..part.end as usize];
        let mut starts = Vec::with_capacity(own.len() + 1);
        starts.push(0u32);
        own.iter().for_each(|length| starts.push(starts[starts.len() - 1] + length));
        let mut ends = starts[..own.len()].to_vec();
        network.sweep_of(&|v| part.contains(&community[v as usize]), |neighbors| {
            let own = community[neighbors.of as usize];
            let end = &mut ends[(own - part.start) as usize];
            neighbors.each(|u, weight| {
                let other = community[u as usize];
                if other != own {
                    slots[*end as usize] = S::of(other, weight);
                    *end += 1;
                }
            });
        })?;
        let threads = network.graph.thread_pool();
        let groups = groups(0..own.len() as u32, EACH);
        let in_slots = |group: &Range<u32>| {
            (starts[group.end as usize] - starts[group.start as usize]) as usize
        };
        let mut distinct = vec![0u32; own.len()];
        let counts = split(&mut distinct, &groups, ExactSizeIterator::len);
        let places = split(&mut ends, &groups, ExactSizeIterator::len).zip(counts);
        threads.share(split(slots, &groups, in_slots).zip(places), |_, groups| {
            let mut sums = has_sums.then(|| vec![0.0; lengths.len()]);
            for ((group, slots), ((_, ends), (_, distinct))) in groups {
                let first = starts[group.start as usize];
                for ((c, end), distinct) in group.zip(ends).zip(distinct) {
                    let start = starts[c as usize];
                    let list = &mut slots[(start - first) as usize..(*end - first) as usize];
                    let kept = S::combine(list, sums.as_deref_mut());
                    *end = start + kept as u32;
                    let same = list[..kept].chunk_by(|a, b| a.target() == b.target());
                    *distinct = same.count() as u32;
                }
            }
        })?;
        let slots = &slots[..];
        made.push(network.graph, &distinct, |places, arcs| {
            let of_group = |group: &Range<u32>| {
                (places[group.end as usize] - places[group.start as usize]) as usize
            };
            threads.share(split(arcs, &groups, of_group), |_, groups| {
                for (group, arcs) in groups {
                    let mut arcs = arcs.iter_mut();
                    for c in group.start as usize..group.end as usize {
                        let list = &slots[starts[c] as usize..ends[c] as usize];
                        let same = list.chunk_by(|a, b| a.target() == b.target());
                        for (same, arc) in same.zip(&mut arcs) {
                            let weight = same.iter().map(|slot| slot.weight()).sum();
                            *arc = WeightedArc::new(same[0].target(), weight);
                        }
                    }
                }
            })?;
            Ok(())
        })
    }

    /// Makes the list of one community.
    fn large(&mut self, network: &mut Network<'_>, large: u32) -> Result<()> {
        let Self { community, lengths, made, .. } = self;
        let mut sums = vec![0.0; lengths.len()];
        network.sweep_of(&|v| community[v as usize] == large, |neighbors| {
            neighbors.each(|u, weight| sums[community[u as usize] as usize] += weight);
        })?;
        sums[large as usize] = 0.0;
        let arcs = || sums.iter().enumerate().filter(|&(_, weight)| *weight != 0.0);
        made.push(network.graph, &[arcs().count() as u32], |_, to| {
            for (to, (target, &weight)) in to.iter_mut().zip(arcs()) {
                *to = WeightedArc::new(target as u32, weight);
            }
            Ok(())
        })
    }
}

/// Cuts communities whose members have so many neighbours into parts of at most `most`.
fn cut(lengths: &[u32], most: u32) -> Vec<Part> {
    let (mut cut, mut begin, mut sum) = (Vec::new(), 0, 0u32);
    for (c, &length) in (0u32..).zip(lengths) {
        let is_large = length > most;
        if is_large || sum.saturating_add(length) > most {
            cut.extend((begin < c).then_some(Part::Several(begin..c)));
            (begin, sum) = (c, 0);
        }
        if is_large {
            cut.push(Part::Large(c));
            begin = c + 1;
        } else {
            sum += length;
        }
    }
    let end = lengths.len() as u32;
    cut.extend((begin < end).then_some(Part::Several(begin..end)));
    cut
}
