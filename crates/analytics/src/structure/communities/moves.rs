//! Vertices that move between communities, one after the other, each to where it gains most.

use tiergraph_core::{Draws, Result};
use tiergraph_mem::{prefetch, vec_from_fn, zeroed_vec};

use super::network::{Neighbors, Network, shuffle};
use crate::bits::Bits;

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
    pub(super) community: Vec<u32>,
    /// The masses of communities.
    masses: Vec<f64>,
    members: Vec<u32>,
    near: Near,
    /// Where the next community without members is looked for.
    empty: usize,
}

/// Weights from a vertex to the communities of its neighbours, while it is looked at.
#[derive(Default)]
struct Near {
    /// 0 for the others.
    to: Vec<f64>,
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

impl<'a> Partition<'a> {
    pub(super) fn new(quality: Quality, mass: &'a [f64], community: Vec<u32>) -> Self {
        let near = Near { to: zeroed_vec(mass.len()), communities: Vec::new() };
        Self::with(quality, mass, community, near)
    }

    fn with(quality: Quality, mass: &'a [f64], community: Vec<u32>, near: Near) -> Self {
        let (mut masses, mut members) = (zeroed_vec(mass.len()), zeroed_vec(mass.len()));
        for (&own, mass) in community.iter().zip(mass) {
            masses[own as usize] += mass;
            members[own as usize] += 1;
        }
        Self { quality, mass, community, masses, members, near, empty: 0 }
    }

    /// Moves vertices while any gains by it; returns how many moves there were. Rounds go over all in an order by
    /// `seed`, and then over those that a move may have changed (Ozaki, Tezuka and Inaba, 2016; Traag et al., 2019).
    pub(super) fn move_vertices(&mut self, network: &mut Network<'_>, seed: u64) -> Result<u64> {
        let n = self.community.len();
        let (mut now, mut moves, blocks) = (Bits::all(n), 0, network.blocks());
        while now.any() {
            let later = Bits::none(n);
            network.sweep_shuffled(&blocks, seed, &|v| now.has(v), |neighbors| {
                let v = neighbors.of;
                now.take_out(v.into());
                let before = self.community[v as usize];
                let after = self.best(&neighbors, before);
                if after == before {
                    return;
                }
                moves += 1;
                self.transfer(v, before, after);
                neighbors.each(|u, _| {
                    if self.community[u as usize] != after && !now.has(u) {
                        later.put(u);
                    }
                });
            })?;
            now = later;
        }
        Ok(moves)
    }

    /// The community in which a vertex, now in `own`, is worth most.
    #[inline]
    fn best(&mut self, neighbors: &Neighbors<'_>, own: u32) -> u32 {
        self.near.weigh(neighbors, &self.community, &self.masses, |_| true);
        let own_mass = self.mass[neighbors.of as usize];
        let mass = own_mass * self.quality.scale;
        let worth = |to: f64, masses: f64| to - mass * masses;
        let staying = worth(self.near.to[own as usize], self.masses[own as usize] - own_mass);
        let (mut best, mut most) = (own, staying);
        for &other in &self.near.communities {
            let to = std::mem::take(&mut self.near.to[other as usize]);
            let worth = worth(to, self.masses[other as usize]);
            // Of several that are worth as much, the first by number.
            if other != own && (worth > most || (worth == most && best != own && other < best)) {
                (best, most) = (other, worth);
            }
        }
        // By itself it is worth 0.
        if most < 0.0 && self.members[own as usize] > 1 { self.without_members() } else { best }
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

    /// Parts of these communities, each connected: every vertex begins alone, and one that is well connected
    /// to its community joins the part of it where it gains most, if that is well connected, too (Leiden's
    /// refinement, without its random choice).
    pub(super) fn refined(&mut self, network: &mut Network<'_>) -> Result<Partition<'a>> {
        let n = self.community.len();
        let near = std::mem::take(&mut self.near);
        let alone = vec_from_fn(network.graph.thread_pool(), n, |v| v as u32)?;
        let mut parts = Partition::with(self.quality, self.mass, alone, near);
        let (scale, community) = (self.quality.scale, &self.community[..]);
        // The weight from each part to the rest of its community.
        let mut outside = zeroed_vec(n);
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
            let own = parts.community[v];
            let whole = self.masses[community[v] as usize];
            let mass = self.mass[v];
            let is_well = |to_rest: f64, mass: f64| to_rest >= scale * mass * (whole - mass);
            if parts.members[own as usize] != 1 || !is_well(outside[v], mass) {
                return;
            }
            parts.near.weigh(&neighbors, &parts.community, &parts.masses, |u| {
                community[u as usize] == community[v]
            });
            let (mut best, mut most, mut to_best) = (own, 0.0, 0.0);
            for &part in &parts.near.communities {
                let to = std::mem::take(&mut parts.near.to[part as usize]);
                let gain = to - scale * mass * parts.masses[part as usize];
                let is_more = gain > most || (gain == most && best != own && part < best);
                if part != own
                    && is_more
                    && is_well(outside[part as usize], parts.masses[part as usize])
                {
                    (best, most, to_best) = (part, gain, to);
                }
            }
            if best != own {
                outside[best as usize] += outside[v] - 2.0 * to_best;
                parts.transfer(v as u32, own, best);
            }
        })?;
        Ok(parts)
    }

    /// The communities, numbered from 0 in an order by `seed`, and how many they are.
    pub(super) fn numbered(self, seed: u64) -> (Vec<u32>, usize) {
        let Self { mut community, members, .. } = self;
        let mut numbers = members;
        let count = numbers.iter().filter(|&&members| members > 0).count();
        let mut order: Vec<u32> = (0..count as u32).collect();
        shuffle(&mut order, &mut Draws::new(seed));
        let mut order = order.into_iter();
        for number in &mut numbers {
            *number = if *number > 0 { order.next().unwrap_or(0) } else { u32::MAX };
        }
        community.iter_mut().for_each(|own| *own = numbers[*own as usize]);
        (community, count)
    }
}
