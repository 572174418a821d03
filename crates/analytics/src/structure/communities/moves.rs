//! Vertices that move between communities, one after the other, each to where it gains most.

use std::collections::VecDeque;

use tiergraph_core::{Draws, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::prefetch_all;

use super::network::Network;

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
    network: &'a Network,
    quality: Quality,
    /// The masses of vertices.
    mass: &'a [f64],
    pub(super) community: Vec<u32>,
    /// The masses of communities.
    masses: Vec<f64>,
    members: Vec<u32>,
    /// Weights from a vertex to each community, while it is looked at.
    to: Vec<f64>,
    touched: Vec<u32>,
}

impl<'a> Partition<'a> {
    pub(super) fn new(
        network: &'a Network,
        quality: Quality,
        mass: &'a [f64],
        community: Vec<u32>,
    ) -> Self {
        let n = network.len();
        let (mut masses, mut members) = (vec![0.0; n], vec![0; n]);
        for (v, &own) in community.iter().enumerate() {
            masses[own as usize] += mass[v];
            members[own as usize] += 1;
        }
        let (to, touched) = (vec![0.0; n], Vec::new());
        Self { network, quality, mass, community, masses, members, to, touched }
    }

    /// Moves vertices while any gains by it, beginning in an order by `seed`; returns how many moves there were.
    /// Those that a move may change are looked at again (Ozaki, Tezuka and Inaba, 2016; Traag et al., 2019).
    pub(super) fn move_vertices(&mut self, graph: &Graph, seed: u64) -> Result<u64> {
        let n = self.network.len();
        let mut queue: VecDeque<u32> = shuffled(n, seed).into();
        let mut waits = vec![true; n];
        let mut empty: Vec<u32> =
            (0..n as u32).filter(|&c| self.members[c as usize] == 0).collect();
        let (mut moves, mut looks) = (0, 0u32);
        while let Some(v) = queue.pop_front() {
            looks = looks.wrapping_add(1);
            if looks % (1 << 14) == 0 {
                graph.cancel().check("find communities")?;
            }
            if let Some(&later) = queue.get(4) {
                prefetch_all(bytemuck::cast_slice(first_few(self.network.neighbors(later))));
            }
            waits[v as usize] = false;
            let before = self.community[v as usize];
            let after = self.best(v, before, &mut empty);
            if after == before {
                continue;
            }
            moves += 1;
            self.transfer(v, before, after);
            if self.members[before as usize] == 0 {
                empty.push(before);
            }
            for &u in self.network.neighbors(v) {
                let waits = &mut waits[u as usize];
                if !*waits && self.community[u as usize] != after {
                    *waits = true;
                    queue.push_back(u);
                }
            }
        }
        Ok(moves)
    }

    /// The community in which `v`, now in `own`, is worth most.
    #[inline]
    fn best(&mut self, v: u32, own: u32, empty: &mut Vec<u32>) -> u32 {
        self.weigh(v, |_| true);
        let mass = self.mass[v as usize] * self.quality.scale;
        let worth = |to: f64, masses: f64| to - mass * masses;
        let staying =
            worth(self.to[own as usize], self.masses[own as usize] - self.mass[v as usize]);
        let (mut best, mut most) = (own, staying);
        for &other in &self.touched {
            let to = std::mem::take(&mut self.to[other as usize]);
            let worth = worth(to, self.masses[other as usize]);
            // Of several that are worth as much, the first by number.
            if other != own && (worth > most || (worth == most && best != own && other < best)) {
                (best, most) = (other, worth);
            }
        }
        if most < 0.0 && self.members[own as usize] > 1 {
            // By itself it is worth 0.
            while let Some(community) = empty.pop() {
                if self.members[community as usize] == 0 {
                    return community;
                }
            }
        }
        best
    }

    /// Sums the weights from `v` to each community, of neighbours of which `counts` is true.
    #[inline(always)]
    fn weigh(&mut self, v: u32, counts: impl Fn(u32) -> bool) {
        let Self { network, community, to, touched, .. } = self;
        touched.clear();
        network.each(v, |u, weight| {
            if counts(u) {
                let other = community[u as usize];
                let sum = &mut to[other as usize];
                if *sum == 0.0 {
                    touched.push(other);
                }
                *sum += weight;
            }
        });
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
    pub(super) fn refined(&self, graph: &Graph) -> Result<Partition<'a>> {
        let n = self.network.len();
        let mut parts =
            Partition::new(self.network, self.quality, self.mass, (0..n as u32).collect());
        let scale = self.quality.scale;
        // The weight from each part to the rest of its community.
        let mut outside = vec![0.0; n];
        for v in 0..n as u32 {
            let own = self.community[v as usize];
            self.network.each(v, |u, weight| {
                if self.community[u as usize] == own {
                    outside[v as usize] += weight;
                }
            });
        }
        for v in 0..n as u32 {
            if v % (1 << 16) == 0 {
                graph.cancel().check("find communities")?;
            }
            let own = parts.community[v as usize];
            let whole = self.masses[self.community[v as usize] as usize];
            let mass = self.mass[v as usize];
            let is_well = |to_rest: f64, mass: f64| to_rest >= scale * mass * (whole - mass);
            if parts.members[own as usize] != 1 || !is_well(outside[v as usize], mass) {
                continue;
            }
            let community = self.community[v as usize];
            parts.weigh(v, |u| self.community[u as usize] == community);
            let (mut best, mut most, mut to_best) = (own, 0.0, 0.0);
            for &part in &parts.touched {
                let to = std::mem::take(&mut parts.to[part as usize]);
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
                outside[best as usize] += outside[v as usize] - 2.0 * to_best;
                parts.transfer(v, own, best);
            }
        }
        Ok(parts)
    }

    /// Numbers the communities from 0 in the order of their first vertices; returns how many there are.
    pub(super) fn renumber(&mut self) -> usize {
        let mut numbers = vec![u32::MAX; self.network.len()];
        let (mut masses, mut members) = (Vec::new(), Vec::new());
        for own in &mut self.community {
            let before = *own as usize;
            let number = &mut numbers[before];
            if *number == u32::MAX {
                *number = masses.len() as u32;
                masses.push(self.masses[before]);
                members.push(self.members[before]);
            }
            *own = *number;
        }
        (self.masses, self.members) = (masses, members);
        self.masses.len()
    }
}

fn first_few(list: &[u32]) -> &[u32] {
    &list[..list.len().min(64)]
}

/// The numbers below `n` in an order by `seed` (Fisher and Yates).
fn shuffled(n: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    let mut draws = Draws::new(seed);
    for i in (1..n).rev() {
        order.swap(i, draws.below(i as u64 + 1) as usize);
    }
    order
}
