//! Vertices that move between communities, each to where it gains most.
//!
//! Many choose at once, by what the moves before have left: a round has up to [`TURNS`] turns, each of some vertices drawn by
//! seed. What a vertex chooses depends on no other one of its turn, so that any number of threads choose the same.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, Ordering};

use tiergraph_core::{Draws, Result, mix};
use tiergraph_mem::{Array, Reservation, as_atomic, prefetch};

use super::network::{Blocks, Neighbors, Network, shuffle};
use crate::bits::Bits;
use crate::per_worker::PerWorker;

/// Turns of a round in which all vertices are looked at. With one, neighbours that change places gain nothing.
const TURNS: u64 = 64;
/// The least turns of a round: of two neighbours that would change places for ever, one moves alone sooner or later.
const LEAST_TURNS: u64 = 2;
/// A round of so many turns or fewer, over few vertices, has them one by one, and not many of a block together.
const ONE_BY_ONE: u64 = 4;
/// The parts, each with a turn of its own, of 64 vertices side by side.
const PARTS: u64 = 4;
/// Bytes of lists above which a network is large; those of others fit the memory nearly always.
const LARGE_BYTES: u64 = 256 << 20;
/// The round from which on moves take from leads: before, most vertices move.
const LEADS_FROM: u64 = 2;
/// A round that moves less than one vertex of so many is the last one over a network.
const LAST_OF: u64 = 1 << 10;
/// The most rounds over a network.
const ROUNDS: u64 = 64;
/// What draws the turns of a refinement, beside a seed.
const REFINING: u64 = ROUNDS;

/// What a community is worth: the weight of its edges, less `scale` times its mass squared, in halves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quality {
    /// The resolution, by modularity over the weight of all edges, each both ways.
    pub(super) scale: f64,
    /// The weight of all edges, each both ways.
    pub(super) weight: f64,
    /// What masses count: the weight of a vertex's edges, or vertices.
    pub(super) counts_edges: bool,
}

/// By how much each vertex, when it was looked at, was worth more where it is than anywhere else. A neighbour's move takes at
/// most twice what connects them from that, and any move what the masses of two communities may have changed by: a vertex that
/// has some left need not be looked at, nor its list be read.
struct Leads {
    /// The lead of each vertex, a float32, with what moves before it was looked at would have taken.
    of: Array<u32>,
    /// What neighbours have taken from it since, in `unit`s: whole numbers, whose sum no order changes.
    spent: Array<u32>,
    unit: f64,
    /// What a mass that moves takes of the lead of each mass.
    of_mass: f64,
    /// The masses that have moved.
    moved: f64,
}

impl Leads {
    /// Units of the mean weight of an arc, or of up to twice that.
    const UNITS: f64 = 64.0;
    /// The most units that a move takes; one that would take more takes the lead.
    const MOST: u32 = 1 << 20;
    /// From so many units on a lead is spent.
    const ALL: u32 = 1 << 31;

    fn new(network: &Network<'_>, quality: Quality) -> Result<Self> {
        let n = network.len();
        let (of, spent) = (Array::zeroed(n)?, Array::zeroed(n)?);
        let mean = quality.weight / network.lengths().sum::<u64>().max(1) as f64;
        let unit = mean.max(f64::MIN_POSITIVE).log2().floor().exp2() / Self::UNITS;
        Ok(Self { of, spent, unit, of_mass: 2.0 * quality.scale, moved: 0.0 })
    }

    /// The leads during a turn of some vertices, which get theirs.
    fn shared(&mut self, own: &Bits) -> SharedLeads<'_> {
        for v in own.within(0..self.spent.len() as u32) {
            self.spent[v as usize] = 0;
        }
        let Self { of, spent, unit, of_mass, moved } = self;
        SharedLeads {
            of: as_atomic(of),
            spent: as_atomic(spent),
            per_weight: 2.0 / *unit,
            taken: *of_mass * *moved,
        }
    }

    /// Puts those vertices among `later` from which all of their lead was taken.
    fn end_round(&mut self, mass: &[f64], later: &Bits) {
        let taken = self.of_mass * self.moved;
        for (v, (of, spent)) in (0..).zip(self.of.iter_mut().zip(self.spent.iter_mut())) {
            let units = std::mem::take(spent);
            if units > 0 {
                let left = (f64::from(f32::from_bits(*of)) - f64::from(units) * self.unit) as f32;
                *of = left.to_bits();
                if units >= Self::ALL || f64::from(left) <= taken * mass[v as usize] {
                    later.put(v);
                }
            }
        }
    }
}

/// Leads, for threads that choose at once.
struct SharedLeads<'a> {
    of: &'a [AtomicU32],
    spent: &'a [AtomicU32],
    /// Units that a move takes for what connects.
    per_weight: f64,
    /// The part of a vertex's lead that moves of masses have taken, by its mass.
    taken: f64,
}

impl SharedLeads<'_> {
    /// Notes the lead of a vertex that was looked at.
    fn set(&self, v: u32, lead: f64, mass: f64) {
        let lead = (lead + self.taken * mass) as f32;
        self.of[v as usize].store(lead.to_bits(), Ordering::Relaxed);
    }

    /// Takes from a vertex's lead what a neighbour's move does; whether all of it, as far as that is known already.
    #[inline(always)]
    fn spend(&self, v: u32, weight: f64) -> bool {
        let units = (weight.abs() * self.per_weight).ceil();
        let spent = &self.spent[v as usize];
        if units > f64::from(Leads::MOST) || spent.load(Ordering::Relaxed) >= Leads::ALL {
            return true;
        }
        spent.fetch_add(units as u32, Ordering::Relaxed);
        false
    }
}

/// The vertices that choose in each turn of a round.
///
/// Of a large network the vertices of a block have their turn together, so that its lists are read once a round. Of others, and
/// where few are wanted, those side by side have several: many a vertex has neighbours near itself, and gains more if it
/// chooses after them than if it does at once.
struct Turns<'a> {
    /// The blocks, if the network is large.
    blocks: Option<&'a Blocks>,
    seed: u64,
}

impl<'a> Turns<'a> {
    fn new(network: &Network<'_>, blocks: &'a Blocks, seed: u64) -> Self {
        Self { blocks: Some(blocks).filter(|_| network.bytes() > LARGE_BYTES), seed }
    }

    /// The turns of a round over `wanted` of all vertices.
    fn of_round(&self, number: u64, wanted: u64, vertices: usize) -> Round<'a> {
        let turns = (TURNS * wanted).div_ceil(vertices.max(1) as u64).max(LEAST_TURNS);
        let seed = mix(self.seed ^ number << 32);
        let are_few = turns <= ONE_BY_ONE;
        let mut places: Vec<u32> = (0..64).collect();
        shuffle(&mut places, &mut Draws::new(seed));
        let parts = if are_few { turns } else { PARTS };
        let mut masks = vec![0; turns as usize];
        for (i, place) in (0..).zip(places) {
            masks[(i % parts * turns / parts) as usize] |= 1 << place;
        }
        Round { blocks: self.blocks.filter(|_| !are_few), masks, seed, turns }
    }
}

/// The turns of a round.
struct Round<'a> {
    /// The blocks, if the vertices of each have their turn together.
    blocks: Option<&'a Blocks>,
    /// Else which of 64 vertices side by side have their turn so many turns after that of their number.
    masks: Vec<u64>,
    seed: u64,
    turns: u64,
}

impl Round<'_> {
    /// A turn for the block of this number, or for 64 vertices.
    fn turn(&self, number: u32) -> u64 {
        ((mix(self.seed ^ u64::from(number)) >> 32) * self.turns) >> 32
    }

    /// Takes those vertices out of `wanted` whose turn it is.
    fn take(&self, wanted: &Bits, turn: u64) -> Bits {
        let Some(blocks) = self.blocks else {
            let mask = |number| self.masks[((self.turn(number) + turn) % self.turns) as usize];
            return wanted.take_masked(mask);
        };
        let own = Bits::none(wanted.words().len() * 64);
        for (_, block) in (0..).zip(&blocks.ranges).filter(|&(number, _)| self.turn(number) == turn)
        {
            for v in wanted.within(block.clone()) {
                wanted.take_out(v.into());
                own.put(v);
            }
        }
        own
    }
}

/// A partition of a network into communities, numbered below its vertices.
pub(super) struct Partition<'a> {
    quality: Quality,
    /// The masses of vertices.
    mass: &'a [f64],
    pub(super) community: Array<u32>,
    /// The masses of communities.
    masses: Array<f64>,
    members: Array<u32>,
}

/// Weights from a vertex to the communities of its neighbours, while it is looked at.
#[derive(Default)]
struct Near {
    /// 0 for the others.
    to: Array<f64>,
    communities: Vec<u32>,
}

/// The weights to communities that each thread sums while it chooses.
struct Choosers {
    near: PerWorker<Near>,
    _held: Vec<Reservation>,
}

impl Choosers {
    /// For as many threads as there is memory; the caller has reserved that of one.
    fn new(network: &Network<'_>) -> Result<Self> {
        let (graph, vertices) = (network.graph, network.len());
        let communities = network.lengths().max().map_or(0, |most| vertices.min(most as usize));
        let (mut near, mut held) = (vec![Near::new(vertices, communities)?], Vec::new());
        while near.len() < graph.thread_pool().size() {
            let bytes = (vertices * size_of::<f64>() + communities * size_of::<u32>()) as u64;
            let Some(more) = graph.memory().reserve_if_left(bytes, "weights to communities")?
            else {
                break;
            };
            held.push(more);
            near.push(Near::new(vertices, communities)?);
        }
        Ok(Self { near: PerWorker::new(near.into_iter()), _held: held })
    }
}

impl Near {
    /// For a network of so many vertices, each of which is next to at most so many communities.
    fn new(vertices: usize, communities: usize) -> Result<Self> {
        Ok(Self { to: Array::zeroed(vertices)?, communities: Vec::with_capacity(communities) })
    }

    /// Sums the weights of those `neighbors` of which `counts` is true, and prefetches the `masses` of their communities.
    #[inline(always)]
    fn weigh(
        &mut self,
        neighbors: &Neighbors<'_>,
        community: &[u32],
        masses: &[f64],
        counts: impl Fn(u32) -> bool,
    ) {
        self.communities.clear();
        neighbors.each_ahead(|u, weight, [soon, later]| {
            prefetch(community, later as usize);
            prefetch(&self.to, community[soon as usize] as usize);
            if counts(u) {
                let other = community[u as usize];
                let sum = &mut self.to[other as usize];
                if *sum == 0.0 {
                    self.communities.push(other);
                    prefetch(masses, other as usize);
                }
                *sum += weight;
            }
        });
    }
}

impl<'a> Partition<'a> {
    pub(super) fn new(quality: Quality, mass: &'a [f64], community: Array<u32>) -> Result<Self> {
        let n = mass.len();
        let (mut masses, mut members) = (Array::zeroed(n)?, Array::zeroed(n)?);
        for (&own, &mass) in community.iter().zip(mass) {
            masses[own as usize] += mass;
            members[own as usize] += 1;
        }
        Ok(Self { quality, mass, community, masses, members })
    }

    /// Moves vertices while many gain by it; returns how many moves there were. The first round goes over all, and others over
    /// the neighbours of those that moved (Ozaki, Tezuka and Inaba, 2016; Traag et al., 2019), without those that have a lead left.
    pub(super) fn move_vertices(&mut self, network: &mut Network<'_>, seed: u64) -> Result<u64> {
        let n = self.community.len();
        let blocks = network.blocks();
        let turns = Turns::new(network, &blocks, seed);
        let choosers = Choosers::new(network)?;
        let (mut now, mut moves) = (Bits::all(n), 0);
        let mut leads = Leads::new(network, self.quality)?;
        for number in 0..ROUNDS {
            let round = turns.of_round(number, now.count() as u64, n);
            let (later, before) = (Bits::none(n), moves);
            for turn in 0..round.turns {
                let own = round.take(&now, turn);
                let left = leads.shared(&own);
                let moved = network.choose(&blocks, &own, &choosers.near, |near, neighbors| {
                    let after = self.choice(near, &neighbors, number == 0, &left, &later)?;
                    neighbors.each(|u, weight| {
                        // Where it comes to a neighbour's community it adds to that one's lead, unless that one leaves.
                        let takes = self.community[u as usize] != after || own.has(u);
                        let is_later =
                            takes && !now.has(u) && (number < LEADS_FROM || left.spend(u, weight));
                        if is_later {
                            later.put(u);
                        }
                    });
                    Some((neighbors.of, after))
                })?;
                moves += moved.len() as u64;
                for (v, after) in moved {
                    self.transfer(v, after);
                    leads.moved += self.mass[v as usize];
                }
            }
            leads.end_round(self.mass, &later);
            now = later;
            if !now.any() || (moves - before) * LAST_OF < n as u64 {
                break;
            }
        }
        Ok(moves)
    }

    /// The community to which a vertex moves, if it does. Where `all_are_alone`, of two that may choose each other the lighter
    /// waits for the heavier, and is put among `later`: the other way round many gather around one that is heavy, which ends
    /// in communities of less worth.
    #[inline]
    fn choice(
        &self,
        near: &mut Near,
        neighbors: &Neighbors<'_>,
        all_are_alone: bool,
        leads: &SharedLeads<'_>,
        later: &Bits,
    ) -> Option<u32> {
        let own = self.community[neighbors.of as usize];
        let (after, lead) = self.best(near, neighbors, own);
        let alone = |c: u32| self.members[c as usize] == 1;
        let weight = |c: u32| (self.masses[c as usize], Reverse(c));
        if all_are_alone && weight(after) > weight(own) && alone(own) && alone(after) {
            later.put(neighbors.of);
            return None;
        }
        leads.set(neighbors.of, lead, self.mass[neighbors.of as usize]);
        (after != own).then_some(after)
    }

    /// The community in which a vertex, now in `own`, is worth most, and by how much.
    #[inline]
    fn best(&self, near: &mut Near, neighbors: &Neighbors<'_>, own: u32) -> (u32, f64) {
        near.weigh(neighbors, &self.community, &self.masses, |_| true);
        let own_mass = self.mass[neighbors.of as usize];
        let mass = own_mass * self.quality.scale;
        let worth = |to: f64, masses: f64| to - mass * masses;
        let staying = worth(near.to[own as usize], self.masses[own as usize] - own_mass);
        let (mut best, mut most, mut second) = (own, staying, f64::NEG_INFINITY);
        for &other in &near.communities {
            let to = std::mem::take(&mut near.to[other as usize]);
            if other == own {
                continue;
            }
            let worth = worth(to, self.masses[other as usize]);
            second = second.max(worth.min(most));
            // Of several that are worth as much, the first by number.
            if worth > most || (worth == most && best != own && other < best) {
                (best, most) = (other, worth);
            }
        }
        // By itself it is worth 0, in the community that has its number, if nobody is there.
        if most < 0.0 && self.members[neighbors.of as usize] == 0 {
            return (neighbors.of, 0.0);
        }
        // A neighbour that moves from its community to another counts twice beside that one, and once beside being alone.
        (best, (most - second).min(2.0 * most))
    }

    fn transfer(&mut self, v: u32, after: u32) {
        let before = std::mem::replace(&mut self.community[v as usize], after);
        self.masses[before as usize] -= self.mass[v as usize];
        self.masses[after as usize] += self.mass[v as usize];
        self.members[before as usize] -= 1;
        self.members[after as usize] += 1;
    }

    /// Parts of these communities, each connected and by the number of one of its vertices: every vertex begins alone, and
    /// one that is well connected to its community joins the part of it where it gains most, if that is well connected, too
    /// (Leiden's refinement, without its random choice). Those whose turn it is choose among the parts that none of them may
    /// leave; edges between vertices that join a part at once go on to count as leading out of it. No vertex moves after this.
    pub(super) fn refined(&mut self, network: &mut Network<'_>, seed: u64) -> Result<Array<u32>> {
        let (n, threads) = (self.community.len(), network.graph.thread_pool());
        self.members = Array::default();
        let mut parts = Array::from_fn(threads, n, |v| v as u32)?;
        let mut masses = Array::from_fn(threads, n, |v| self.mass[v])?;
        // The parts of several vertices. A vertex that is in one stays there.
        let several = Bits::none(n);
        let (scale, community) = (self.quality.scale, &self.community[..]);
        // The weight from each part to the rest of its community.
        let mut outside = Array::<f64>::zeroed(n)?;
        network.sweep(|neighbors| {
            let own = community[neighbors.of as usize];
            neighbors.each(|u, weight| {
                if community[u as usize] == own {
                    outside[neighbors.of as usize] += weight;
                }
            });
        })?;
        let blocks = network.blocks();
        let turns = Turns::new(network, &blocks, seed);
        let choosers = Choosers::new(network)?;
        let round = turns.of_round(REFINING, n as u64, n);
        let left = Bits::all(n);
        for turn in 0..round.turns {
            let own = round.take(&left, turn);
            own.take_out_all(&several);
            let joined = network.choose(&blocks, &own, &choosers.near, |near, neighbors| {
                let v = neighbors.of as usize;
                let whole = self.masses[community[v] as usize];
                let mass = self.mass[v];
                let is_well = |to_rest: f64, mass: f64| to_rest >= scale * mass * (whole - mass);
                if !is_well(outside[v], mass) {
                    return None;
                }
                near.weigh(&neighbors, &parts, &masses, |u| community[u as usize] == community[v]);
                let (mut best, mut most, mut to_best) = (neighbors.of, 0.0, 0.0);
                for &part in &near.communities {
                    let to = std::mem::take(&mut near.to[part as usize]);
                    let gain = to - scale * mass * masses[part as usize];
                    let is_more =
                        gain > most || (gain == most && best != neighbors.of && part < best);
                    if is_more
                        && !own.has(part)
                        && is_well(outside[part as usize], masses[part as usize])
                    {
                        (best, most, to_best) = (part, gain, to);
                    }
                }
                (best != neighbors.of).then_some((neighbors.of, best, to_best))
            })?;
            for (v, best, to_best) in joined {
                outside[best as usize] += outside[v as usize] - 2.0 * to_best;
                masses[best as usize] += self.mass[v as usize];
                parts[v as usize] = best;
                several.put(best);
            }
        }
        Ok(parts)
    }
}

/// Communities, numbered from 0 in an order by `seed`, and how many they are.
///
/// # Errors
/// No memory.
pub(super) fn numbered(mut community: Array<u32>, seed: u64) -> Result<(Array<u32>, usize)> {
    let mut numbers = Array::<u32>::zeroed(community.len())?;
    community.iter().for_each(|&own| numbers[own as usize] = 1);
    let count = numbers.iter().filter(|&&number| number > 0).count();
    let mut order = Array::<u32>::zeroed(count)?;
    order.iter_mut().zip(0..).for_each(|(number, i)| *number = i);
    shuffle(&mut order, &mut Draws::new(seed));
    let mut order = order.iter();
    for number in numbers.iter_mut().filter(|number| **number > 0) {
        *number = order.next().copied().unwrap_or(0);
    }
    community.iter_mut().for_each(|own| *own = numbers[*own as usize]);
    Ok((community, count))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

    use std::ops::Range;

    use tiergraph_core::{Cancel, Silent};
    use tiergraph_graph::{Graph, OpenOptions};
    use tiergraph_ingest::build::{BuildOptions, build};
    use tiergraph_ingest::generate::{Generated, GeneratorOptions, Rmat, WeightRange};

    use super::*;
    use crate::row_map::{ListDegrees, Side};

    /// Where masses count next to nothing, and no vertex moves any more, none is worth more in another community than rounding
    /// may say: leads keep none from being looked at that would move.
    #[test]
    fn vertices_end_where_they_are_worth_most() {
        let directory = tempfile::tempdir().unwrap();
        for (seed, weights) in (0..60).zip([None, Some(WeightRange::Byte)].repeat(30)) {
            let path = directory.path().join(format!("{seed}.tg"));
            let model = Rmat::new(7, 2 + seed % 5, Rmat::GRAPH500, seed).unwrap();
            let options = GeneratorOptions { weights, ..Default::default() };
            let built = BuildOptions { threads: 2, ..Default::default() };
            build(
                &mut Generated::new(model, seed, options),
                &path,
                &built,
                &Silent,
                &Cancel::default(),
            )
            .unwrap();
            let graph = Graph::open(&path, &OpenOptions::default()).unwrap();
            let degrees = ListDegrees::read(&graph, Side::Both).unwrap();
            let mut network = Network::read(&graph, &degrees).unwrap();
            let n = network.len();
            let (mut weight, mass) = (0.0, vec![1e-9; n]);
            network.sweep(|of| of.with_loops(|_, own| weight += own)).unwrap();
            let quality = Quality { scale: 1.0, weight, counts_edges: false };
            let alone = Array::from_fn(graph.thread_pool(), n, |v| v as u32).unwrap();
            let mut partition = Partition::new(quality, &mass, alone).unwrap();
            assert!(partition.move_vertices(&mut network, seed).unwrap() > n as u64 / 4);
            let mut near = Near::new(n, n).unwrap();
            network
                .sweep(|neighbors| {
                    let v = neighbors.of;
                    let own = partition.community[v as usize];
                    let (best, lead) = partition.best(&mut near, &neighbors, own);
                    assert!(best == own || lead < 1e-3, "{seed}: {v} leaves {own} for {best}");
                })
                .unwrap();
        }
    }

    /// Every vertex that is wanted has one turn, with its block or one by one, and others have none.
    #[test]
    fn each_vertex_has_one_turn_of_a_round() {
        let mut draws = Draws::new(11);
        let vertices = 1000;
        let ranges = (0..vertices).step_by(7).map(|at| at..vertices.min(at + 7)).collect();
        let blocks = Blocks { ranges, most_arcs: 0 };
        for (large, least, number) in
            [(true, 1, 0), (true, 1, REFINING), (true, 30, 1), (false, 1, 0), (false, 30, 3)]
        {
            let turns = Turns { blocks: large.then_some(&blocks), seed: 5 };
            let wanted = Bits::none(vertices as usize);
            let mut expected: Vec<u32> =
                (0..vertices).filter(|_| draws.below(least + 2) > least).collect();
            expected.iter().for_each(|&v| wanted.put(v));
            let round = turns.of_round(number, expected.len() as u64, vertices as usize);
            assert!((2..=TURNS).contains(&round.turns));
            let (mut had, mut turn_of) = (Vec::new(), vec![None; vertices as usize]);
            for turn in 0..round.turns {
                let own: Vec<u32> = round.take(&wanted, turn).within(0..vertices).collect();
                own.iter().for_each(|&v| turn_of[v as usize] = Some(turn));
                had.extend(own);
            }
            had.sort_unstable();
            expected.sort_unstable();
            assert_eq!(had, expected, "round {number}");
            assert!(!wanted.any());
            let is_one = |block: &Range<u32>| {
                let mut turns = block.clone().filter_map(|v| turn_of[v as usize]);
                turns.next().is_none_or(|first| turns.all(|turn| turn == first))
            };
            assert_eq!(blocks.ranges.iter().all(is_one), large && least == 1, "round {number}");
        }
    }
}
