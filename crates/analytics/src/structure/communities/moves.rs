//! Vertices that move between communities, one after the other, each to where it gains most.

use tiergraph_core::{Draws, Result};
use tiergraph_mem::{Array, prefetch};

use super::network::{Neighbors, Network, shuffle};
use crate::bits::Bits;

/// The round from which on vertices have leads: before, most of them move.
const LEADS_FROM: usize = 2;
/// A round that moves fewer than one vertex of so many is the last one over a network: each of those after it would read lists
/// again for fewer moves.
const LAST_OF: u64 = 1 << 10;

/// What a community is worth: the weight of its edges, less `scale` times its mass squared, in halves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quality {
    /// The resolution, by modularity over the weight of all edges, each both ways.
    pub(super) scale: f64,
    /// What masses count: the weight of a vertex's edges, or vertices.
    pub(super) counts_edges: bool,
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
    near: Near,
    /// Where the next community without members is looked for.
    empty: usize,
}

/// Weights from a vertex to the communities of its neighbours, while it is looked at.
#[derive(Default)]
struct Near {
    /// 0 for the others.
    to: Array<f64>,
    communities: Vec<u32>,
}

impl Near {
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

/// By how much each vertex, when it was looked at, was worth more where it is than anywhere else. A neighbour's move takes
/// twice what connects them from that, and any move what the masses of two communities may have changed by: a vertex that has
/// some left need not be looked at.
struct Leads {
    /// The lead that each vertex has left, with what moves before it was looked at would have taken.
    of: Array<f32>,
    /// What a mass that moves takes of the lead of each mass.
    of_mass: f64,
    /// The masses that have moved.
    moved: f64,
}

impl Leads {
    fn new(vertices: usize, quality: Quality) -> Result<Self> {
        Ok(Self { of: Array::zeroed(vertices)?, of_mass: 2.0 * quality.scale, moved: 0.0 })
    }

    /// Notes the lead of a vertex that was looked at.
    #[inline(always)]
    fn set(&mut self, v: u32, lead: f64, mass: f64) {
        self.of[v as usize] = (lead + self.of_mass * mass * self.moved) as f32;
    }

    /// Takes from a vertex's lead what the move of a neighbour does; whether none is left.
    #[inline(always)]
    fn spend(&mut self, v: u32, weight: f64, mass: f64) -> bool {
        let lead = &mut self.of[v as usize];
        *lead -= 2.0 * weight.abs() as f32;
        f64::from(*lead) <= self.of_mass * mass * self.moved
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
        let near = Near { to: Array::zeroed(n)?, communities: Vec::new() };
        Ok(Self { quality, mass, community, masses, members, near, empty: 0 })
    }

    /// Moves vertices while more than a few gain by it; returns how many moves there were. Rounds go over all in an order by
    /// `seed`, and then over those that a move may have changed (Ozaki, Tezuka and Inaba, 2016; Traag et al., 2019): of the
    /// neighbours, those without a lead.
    pub(super) fn move_vertices(&mut self, network: &mut Network<'_>, seed: u64) -> Result<u64> {
        let n = self.community.len();
        let (mut now, mut moves, blocks) = (Bits::all(n), 0, network.blocks());
        let mut leads = Leads::new(n, self.quality)?;
        let mut round = 0;
        while now.any() {
            let (later, before_round) = (Bits::none(n), moves);
            network.sweep_shuffled(&blocks, seed, &|v| now.has(v), |neighbors| {
                let v = neighbors.of;
                now.take_out(v.into());
                let before = self.community[v as usize];
                let (after, lead) = self.best(&neighbors, before);
                leads.set(v, lead, self.mass[v as usize]);
                if after == before {
                    return;
                }
                moves += 1;
                self.transfer(v, before, after);
                leads.moved += self.mass[v as usize];
                neighbors.each(|u, weight| {
                    if self.community[u as usize] != after
                        && !now.has(u)
                        && (round < LEADS_FROM || leads.spend(u, weight, self.mass[u as usize]))
                    {
                        later.put(u);
                    }
                });
            })?;
            if (moves - before_round) * LAST_OF < n as u64 {
                break;
            }
            now = later;
            round += 1;
        }
        Ok(moves)
    }

    /// The community in which a vertex, now in `own`, is worth most, and by how much.
    #[inline]
    fn best(&mut self, neighbors: &Neighbors<'_>, own: u32) -> (u32, f64) {
        self.near.weigh(neighbors, &self.community, &self.masses, |_| true);
        let own_mass = self.mass[neighbors.of as usize];
        let mass = own_mass * self.quality.scale;
        let worth = |to: f64, masses: f64| to - mass * masses;
        let staying = worth(self.near.to[own as usize], self.masses[own as usize] - own_mass);
        let (mut best, mut most, mut second) = (own, staying, f64::NEG_INFINITY);
        for &other in &self.near.communities {
            let to = std::mem::take(&mut self.near.to[other as usize]);
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
        // By itself it is worth 0.
        if most < 0.0 && self.members[own as usize] > 1 {
            return (self.without_members(), 0.0);
        }
        // A neighbour that moves from its community to another counts twice beside that one, and once beside being alone.
        (best, (most - second).min(2.0 * most))
    }

    /// A community without members, of which there is one where another has several.
    fn without_members(&mut self) -> u32 {
        while self.members[self.empty] > 0 {
            self.empty = (self.empty + 1) % self.members.len();
        }
        self.empty as u32
    }

    fn transfer(&mut self, v: u32, before: u32, after: u32) {
        self.community[v as usize] = after;
        self.masses[before as usize] -= self.mass[v as usize];
        self.masses[after as usize] += self.mass[v as usize];
        self.members[before as usize] -= 1;
        self.members[after as usize] += 1;
    }

    /// Parts of these communities, each connected and by the number of one of its vertices: every vertex begins alone, and
    /// one that is well connected to its community joins the part of it where it gains most, if that is well connected, too
    /// (Leiden's refinement, without its random choice). No vertex moves after this.
    pub(super) fn refined(&mut self, network: &mut Network<'_>) -> Result<Array<u32>> {
        let (n, threads) = (self.community.len(), network.graph.thread_pool());
        let mut near = std::mem::take(&mut self.near);
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
        network.sweep(|neighbors| {
            let v = neighbors.of as usize;
            let own = neighbors.of;
            let whole = self.masses[community[v] as usize];
            let mass = self.mass[v];
            let is_well = |to_rest: f64, mass: f64| to_rest >= scale * mass * (whole - mass);
            if several.has(own) || !is_well(outside[v], mass) {
                return;
            }
            near.weigh(&neighbors, &parts, &masses, |u| community[u as usize] == community[v]);
            let (mut best, mut most, mut to_best) = (own, 0.0, 0.0);
            for &part in &near.communities {
                let to = std::mem::take(&mut near.to[part as usize]);
                let gain = to - scale * mass * masses[part as usize];
                let is_more = gain > most || (gain == most && best != own && part < best);
                if is_more && is_well(outside[part as usize], masses[part as usize]) {
                    (best, most, to_best) = (part, gain, to);
                }
            }
            if best != own {
                outside[best as usize] += outside[v] - 2.0 * to_best;
                masses[best as usize] += mass;
                parts[v] = best;
                several.put(best);
            }
        })?;
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
