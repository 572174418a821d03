//! The smaller network whose vertices are communities.
//!
//! Communities come in parts whose members' neighbours fit the memory. The communities of neighbours are put to places
//! of their own, where threads sort them and add up equal ones. Edges inside a community keep none of its vertices
//! from moving together, and are left out. A community of too many neighbours is a part of its own, which adds to a sum
//! for each community. Where the network is in memory, threads take the members of one community after the other; of others
//! one sweep writes the neighbours of many parts to a bucket each.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, zeroed_vec};

use super::lists::{ARC_BYTES, WeightedArc, groups, split};
use super::network::{InMemory, Network};
use super::scattered::{Scattered, Writer, chunk_bytes, temporary_file};
use super::segments::Segments;
use crate::row_map::{RowMap, Side};

/// The least memory for neighbours, if there are as many.
const LEAST_BYTES: u64 = 4 << 20;

/// The most memory for neighbours of a network in memory: to get more of it takes longer than to use it again.
const MOST_IN_MEMORY: u64 = 64 << 20;

/// What part of the memory for neighbours is for reading them from buckets.
const TO_READ: u64 = 8;

/// Communities whose lists a thread makes before it takes others.
const EACH: u32 = 1 << 8;

/// The community of a neighbour, with a weight or with that of 1.
trait Slot: Pod + Send + Sync {
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

impl<'g> Network<'g> {
    /// The least memory of [`aggregate`](Self::aggregate) beside 28 bytes for each vertex of the network that it makes.
    pub(super) fn aggregate_bytes(graph: &Graph) -> u64 {
        let arcs = RowMap::arcs(graph, Side::Both);
        LEAST_BYTES.min(arcs * (WeightedArc::BYTES + ARC_BYTES))
    }

    /// The network whose vertices are the communities, numbered from 0 to `count`. The caller has reserved
    /// [`aggregate_bytes`](Self::aggregate_bytes), and 28 bytes for each community.
    ///
    /// # Errors
    /// Those of a sweep, and of a temporary file where the lists do not fit the memory.
    pub(super) fn aggregate(&mut self, community: &[u32], count: usize) -> Result<Network<'g>> {
        let segments = match self.is_plain() {
            true => self.segments::<u32>(community, count)?,
            false => self.segments::<WeightedArc>(community, count)?,
        };
        Ok(self.smaller(count as u32, segments))
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
        let least = LEAST_BYTES.min(all * each);
        let more = (all * each).min(most).saturating_sub(least);
        let held = memory.reserve_if_left(more, "neighbours of communities")?;
        let room = least + if held.is_some() { more } else { 0 };
        let most = if room < all * each { room - room / TO_READ } else { room } / each;
        let most = most.min(u64::from(u32::MAX) - 1) as u32;
        let sums = if S::HAS_SUMS { self.graph.thread_pool().size() * count * 8 } else { 0 };
        let sums = memory.reserve_if_left(sums as u64, "sums of communities")?;
        let (parts, made) = (cut(&lengths, most), Segments::that_leave(left / 3));
        let (places, has_sums) = (all.min(most.into()) as usize, sums.is_some());
        let slots = Array::<S>::default();
        let mut lists = Aggregation { lengths, most, slots, has_sums, made };
        let graph = self.graph;
        if let Some(network) = self.in_memory()? {
            lists.slots = Array::zeroed(places)?;
            let members = Members::new(network, community, count)?;
            for part in parts {
                lists.add(graph, part.clone(), &mut OfMembers { members: &members, part })?;
            }
            return Ok(lists.made);
        }
        if let [part] = &parts[..] {
            lists.slots = Array::zeroed(places)?;
            let mut arcs = Sweep { network: self, community, part: part.clone() };
            lists.add(graph, part.clone(), &mut arcs)?;
            return Ok(lists.made);
        }
        let chunk = chunk_bytes(room, parts.len().max(TO_READ as usize));
        for parts in parts.chunks((room / chunk) as usize) {
            // Buckets are written where their arcs will be sorted.
            lists.slots = Array::default();
            let mut scattered = self.scattered(community, parts, chunk)?;
            lists.slots = Array::zeroed(places)?;
            for (bucket, part) in parts.iter().enumerate() {
                let mut arcs = Bucket { scattered: &mut scattered, bucket };
                lists.add(graph, part.clone(), &mut arcs)?;
            }
        }
        Ok(lists.made)
    }

    /// The arcs between communities, in a bucket for each of `parts`, by the community that they leave.
    fn scattered<S: Slot>(
        &mut self,
        community: &[u32],
        parts: &[Range<u32>],
        chunk: u64,
    ) -> Result<Scattered<S>> {
        let file = Arc::new(temporary_file(self.graph)?);
        let mut writer = Writer::<S>::new(Arc::clone(&file), parts, chunk)?;
        let part = parts[0].start..parts[parts.len() - 1].end;
        Sweep { network: self, community, part }.each(|own, arc| writer.put(own, arc))?;
        Scattered::of(file, vec![writer.finish()?])
    }
}

/// Arcs between communities.
trait Arcs<S> {
    /// Calls `visit` with the community that an arc leaves, and the arc, for all that leave some communities.
    ///
    /// # Errors
    /// Any error of a sweep or of a temporary file.
    fn each(&mut self, visit: impl FnMut(u32, S)) -> Result<()>;

    /// The members of communities, where the arcs of each can be had by themselves.
    fn members(&self) -> Option<&Members<'_>> {
        None
    }
}

/// The members of each community of a network in memory.
struct Members<'a> {
    network: InMemory<'a>,
    community: &'a [u32],
    /// The vertices, those of a community together and ascending.
    of: Array<u32>,
    /// Where the members of each community begin; a last entry says where the last ones end.
    starts: Array<u32>,
}

impl<'a> Members<'a> {
    fn new(network: InMemory<'a>, community: &'a [u32], count: usize) -> Result<Self> {
        let mut starts = Array::<u32>::zeroed(count + 1)?;
        community.iter().for_each(|&own| starts[own as usize] += 1);
        let mut end = 0;
        for start in starts.iter_mut() {
            end += *start;
            *start = end;
        }
        let mut of = Array::<u32>::zeroed(community.len())?;
        for v in (0..community.len() as u32).rev() {
            let start = &mut starts[community[v as usize] as usize];
            *start -= 1;
            of[*start as usize] = v;
        }
        Ok(Self { network, community, of, starts })
    }

    /// Calls `visit` with the arcs that leave a community.
    #[inline(always)]
    fn each<S: Slot>(&self, own: u32, mut visit: impl FnMut(S)) {
        let members = self.starts[own as usize] as usize..self.starts[own as usize + 1] as usize;
        for &v in &self.of[members] {
            self.network.neighbors(v).each(|u, weight| {
                let other = self.community[u as usize];
                if other != own {
                    visit(S::of(other, weight));
                }
            });
        }
    }
}

/// The arcs that leave the communities of `part`, whose members are in memory.
struct OfMembers<'a> {
    members: &'a Members<'a>,
    part: Range<u32>,
}

impl<S: Slot> Arcs<S> for OfMembers<'_> {
    fn each(&mut self, mut visit: impl FnMut(u32, S)) -> Result<()> {
        self.part.clone().for_each(|own| self.members.each(own, |arc| visit(own, arc)));
        Ok(())
    }

    fn members(&self) -> Option<&Members<'_>> {
        Some(self.members)
    }
}

/// The arcs that leave the communities of `part`, by a sweep over the network.
struct Sweep<'a, 'g> {
    network: &'a mut Network<'g>,
    community: &'a [u32],
    part: Range<u32>,
}

impl<S: Slot> Arcs<S> for Sweep<'_, '_> {
    #[inline(always)]
    fn each(&mut self, mut visit: impl FnMut(u32, S)) -> Result<()> {
        let Self { network, community, part } = self;
        network.sweep_of(&|v| part.contains(&community[v as usize]), |neighbors| {
            let own = community[neighbors.of as usize];
            neighbors.each(|u, weight| {
                let other = community[u as usize];
                if other != own {
                    visit(own, S::of(other, weight));
                }
            });
        })
    }
}

/// The arcs in a bucket.
struct Bucket<'a, S> {
    scattered: &'a mut Scattered<S>,
    bucket: usize,
}

impl<S: Slot> Arcs<S> for Bucket<'_, S> {
    fn each(&mut self, mut visit: impl FnMut(u32, S)) -> Result<()> {
        self.scattered.empty(self.bucket, |own, arcs| arcs.iter().for_each(|&arc| visit(own, arc)))
    }
}

/// The lists of communities while they are made.
struct Aggregation<S> {
    /// At most so many neighbours have the members of each community.
    lengths: Vec<u32>,
    /// At most so many neighbours fit `slots`.
    most: u32,
    slots: Array<S>,
    /// Whether there is memory for a sum for each community and thread.
    has_sums: bool,
    made: Segments,
}

impl<S: Slot> Aggregation<S> {
    /// Makes the lists of the communities of `part`, which `arcs` leave.
    fn add(&mut self, graph: &Graph, part: Range<u32>, arcs: &mut impl Arcs<S>) -> Result<()> {
        graph.cancel().check("find communities")?;
        match self.lengths[part.start as usize] > self.most {
            true => self.large(graph, arcs),
            false => self.several(graph, part, arcs),
        }
    }

    fn several(&mut self, graph: &Graph, part: Range<u32>, arcs: &mut impl Arcs<S>) -> Result<()> {
        let Self { lengths, slots, has_sums, made, .. } = self;
        let own = &lengths[part.start as usize..part.end as usize];
        let mut starts = Vec::with_capacity(own.len() + 1);
        starts.push(0u32);
        own.iter().for_each(|length| starts.push(starts[starts.len() - 1] + length));
        let mut ends = starts[..own.len()].to_vec();
        if arcs.members().is_none() {
            arcs.each(|own, arc| {
                let end = &mut ends[(own - part.start) as usize];
                slots[*end as usize] = arc;
                *end += 1;
            })?;
        }
        let members = arcs.members();
        let threads = graph.thread_pool();
        let groups = groups(0..own.len() as u32, EACH);
        let in_slots = |group: &Range<u32>| {
            (starts[group.end as usize] - starts[group.start as usize]) as usize
        };
        let mut distinct = vec![0u32; own.len()];
        let counts = split(&mut distinct, &groups, ExactSizeIterator::len);
        let places = split(&mut ends, &groups, ExactSizeIterator::len).zip(counts);
        threads.share(split(slots, &groups, in_slots).zip(places), |_, groups| {
            let mut sums = has_sums.then(|| zeroed_vec(lengths.len()));
            for ((group, slots), ((_, ends), (_, distinct))) in groups {
                let first = starts[group.start as usize];
                for ((c, end), distinct) in group.zip(ends).zip(distinct) {
                    let start = starts[c as usize];
                    if let Some(members) = members {
                        *end = start;
                        members.each(part.start + c, |arc| {
                            slots[(*end - first) as usize] = arc;
                            *end += 1;
                        });
                    }
                    let list = &mut slots[(start - first) as usize..(*end - first) as usize];
                    let kept = S::combine(list, sums.as_deref_mut());
                    *end = start + kept as u32;
                    let same = list[..kept].chunk_by(|a, b| a.target() == b.target());
                    *distinct = same.count() as u32;
                }
            }
        })?;
        let slots = &slots[..];
        made.push(graph, &distinct, |places, arcs| {
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

    /// Makes the list of one community, whose members have more neighbours than fit the memory.
    fn large(&mut self, graph: &Graph, arcs: &mut impl Arcs<S>) -> Result<()> {
        let mut sums = Array::<f64>::zeroed(self.lengths.len())?;
        arcs.each(|_, arc| sums[arc.target() as usize] += arc.weight())?;
        let arcs = || sums.iter().enumerate().filter(|&(_, weight)| *weight != 0.0);
        self.made.push(graph, &[arcs().count() as u32], |_, to| {
            for (to, (target, &weight)) in to.iter_mut().zip(arcs()) {
                *to = WeightedArc::new(target as u32, weight);
            }
            Ok(())
        })
    }
}

/// Cuts communities whose members have so many neighbours into parts of at most `most`, or of one that has more.
fn cut(lengths: &[u32], most: u32) -> Vec<Range<u32>> {
    let (mut parts, mut begin, mut sum) = (Vec::new(), 0, 0u32);
    for (c, &length) in (0u32..).zip(lengths) {
        let is_full = sum.saturating_add(length) > most;
        if is_full && begin < c {
            parts.push(begin..c);
            (begin, sum) = (c, 0);
        }
        sum = sum.saturating_add(length);
    }
    let end = lengths.len() as u32;
    parts.extend((begin < end).then_some(begin..end));
    parts
}
