//! Serial verifiers, written unlike the algorithms: plain adjacency in memory, float64, queues.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use tiergraph_analytics::{Reduce, Value};
use tiergraph_ingest::build::WeightChoice;

use super::{Edge, Layout};

/// A graph in memory: vertices are positions in the user's order.
pub struct Reference {
    /// The user's ids.
    pub ids: Vec<u64>,
    /// For each vertex, its out-arcs: destination and weight (1 in a graph without).
    pub out: Vec<Vec<(usize, f64)>>,
}

impl Reference {
    pub fn new(edges: &[Edge], layout: &Layout) -> Self {
        let mut ids: Vec<u64> = edges.iter().flat_map(|e| [e.0, e.1]).collect();
        ids.sort_unstable();
        ids.dedup();
        if !layout.sparse_ids {
            ids = (0..ids.last().map_or(0, |last| last + 1)).collect();
        }
        let position = |id: u64| ids.binary_search(&id).unwrap();
        let mut out = vec![Vec::new(); ids.len()];
        for &(source, target, weight) in edges {
            let weight = match layout.weights {
                WeightChoice::None => 1.0,
                WeightChoice::F32 => f64::from(weight as f32),
                _ => weight,
            };
            let (source, target) = (position(source), position(target));
            out[source].push((target, weight));
            if !layout.directed && source != target {
                out[target].push((source, weight));
            }
        }
        Self { ids, out }
    }

    pub fn vertices(&self) -> usize {
        self.out.len()
    }

    /// Every arc: source, destination, weight.
    pub fn arcs(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        self.out.iter().enumerate().flat_map(|(u, arcs)| arcs.iter().map(move |&(v, w)| (u, v, w)))
    }

    /// Power iteration: ranks after `iterations`, restarting from `sources`, or from all vertices.
    pub fn pagerank(&self, damping: f64, iterations: usize, sources: &[usize]) -> Vec<f64> {
        let n = self.vertices();
        let mut restart = vec![0.0; n];
        match sources {
            [] => restart.fill(1.0 / n as f64),
            _ => sources.iter().for_each(|&s| restart[s] += 1.0 / sources.len() as f64),
        }
        let mut ranks = restart.clone();
        for _ in 0..iterations {
            let sinks: f64 = (0..n).filter(|&v| self.out[v].is_empty()).map(|v| ranks[v]).sum();
            let mut next: Vec<f64> =
                restart.iter().map(|r| (1.0 - damping) * r + damping * sinks * r).collect();
            for (u, v, _) in self.arcs() {
                next[v] += damping * ranks[u] / self.out[u].len() as f64;
            }
            ranks = next;
        }
        ranks
    }

    /// For each vertex, the first vertex that a flood over arcs, either way, joins it with.
    pub fn components(&self) -> Vec<usize> {
        let mut both = vec![Vec::new(); self.vertices()];
        for (u, v, _) in self.arcs() {
            both[u].push(v);
            both[v].push(u);
        }
        let mut component = vec![usize::MAX; self.vertices()];
        for first in 0..self.vertices() {
            if component[first] != usize::MAX {
                continue;
            }
            component[first] = first;
            let mut queue = VecDeque::from([first]);
            while let Some(u) = queue.pop_front() {
                for &v in &both[u] {
                    if component[v] == usize::MAX {
                        component[v] = first;
                        queue.push_back(v);
                    }
                }
            }
        }
        component
    }

    /// Hops from `source` along a queue; `u32::MAX` where no path leads.
    pub fn hops(&self, source: usize) -> Vec<u32> {
        let mut hops = vec![u32::MAX; self.vertices()];
        hops[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(u) = queue.pop_front() {
            for &(v, _) in &self.out[u] {
                if hops[v] == u32::MAX {
                    hops[v] = hops[u] + 1;
                    queue.push_back(v);
                }
            }
        }
        hops
    }

    /// Dijkstra with a heap; distances are ordered by their bits, which floats of 0 and more are.
    pub fn distances(&self, source: usize) -> Vec<f64> {
        let mut distances = vec![f64::INFINITY; self.vertices()];
        distances[source] = 0.0;
        let mut heap = BinaryHeap::from([Reverse((0u64, source))]);
        while let Some(Reverse((bits, u))) = heap.pop() {
            if f64::from_bits(bits) > distances[u] {
                continue;
            }
            for &(v, weight) in &self.out[u] {
                let distance = distances[u] + weight;
                if distance < distances[v] {
                    distances[v] = distance;
                    heap.push(Reverse((distance.to_bits(), v)));
                }
            }
        }
        distances
    }

    /// The different neighbours of each vertex, whichever way arcs lead, without itself.
    fn neighborhoods(&self) -> Vec<BTreeSet<usize>> {
        let mut sets = vec![BTreeSet::new(); self.vertices()];
        for (u, v, _) in self.arcs().filter(|(u, v, _)| u != v) {
            sets[u].insert(v);
            sets[v].insert(u);
        }
        sets
    }

    /// The triangles that each vertex is in.
    pub fn triangles(&self) -> Vec<u64> {
        let sets = self.neighborhoods();
        let closed = |v: usize| {
            let near = &sets[v];
            near.iter()
                .map(|&u| sets[u].iter().filter(|w| near.contains(w)).count() as u64)
                .sum::<u64>()
                / 2
        };
        (0..self.vertices()).map(closed).collect()
    }

    /// Of the ordered pairs of neighbours, the share that an arc leads along.
    pub fn clustering(&self) -> Vec<f64> {
        let sets = self.neighborhoods();
        let targets: Vec<BTreeSet<usize>> =
            self.out.iter().map(|arcs| arcs.iter().map(|arc| arc.0).collect()).collect();
        let share = |near: &BTreeSet<usize>| {
            let inside =
                |&u: &usize| targets[u].iter().filter(|&w| *w != u && near.contains(w)).count();
            let found: usize = near.iter().map(inside).sum();
            found as f64 / (near.len() * near.len().saturating_sub(1)).max(1) as f64
        };
        sets.iter().map(share).collect()
    }

    /// Core numbers, by taking away a vertex of the fewest neighbours again and again.
    pub fn cores(&self) -> Vec<u32> {
        let mut sets = self.neighborhoods();
        let mut order: BTreeSet<(usize, usize)> =
            sets.iter().enumerate().map(|(v, near)| (near.len(), v)).collect();
        let (mut cores, mut core) = (vec![0; self.vertices()], 0);
        while let Some((degree, v)) = order.pop_first() {
            core = core.max(degree);
            cores[v] = core as u32;
            for u in std::mem::take(&mut sets[v]) {
                order.remove(&(sets[u].len(), u));
                sets[u].remove(&v);
                order.insert((sets[u].len(), u));
            }
        }
        cores
    }

    /// For each vertex, the first vertex that it reaches and that reaches it (Kosaraju: by the order in which
    /// a search leaves vertices, and then against the arcs).
    pub fn strong_components(&self) -> Vec<u32> {
        let n = self.vertices();
        let mut into = vec![Vec::new(); n];
        self.arcs().for_each(|(u, v, _)| into[v].push(u));
        let (mut order, mut seen) = (Vec::new(), vec![false; n]);
        for start in 0..n {
            let mut stack = vec![(start, 0)];
            while let Some((v, i)) = stack.pop() {
                if i == 0 && std::mem::replace(&mut seen[v], true) {
                    continue;
                }
                match self.out[v].get(i) {
                    Some(&(to, _)) => stack.extend([(v, i + 1), (to, 0)]),
                    None => order.push(v),
                }
            }
        }
        let mut labels = vec![u32::MAX; n];
        for &start in order.iter().rev().filter(|_| n > 0) {
            let (mut members, mut stack) = (Vec::new(), vec![start]);
            while let Some(v) = stack.pop() {
                if labels[v] == u32::MAX {
                    labels[v] = start as u32;
                    members.push(v);
                    stack.extend(&into[v]);
                }
            }
            let first = members.iter().min().copied().unwrap_or(start);
            members.into_iter().for_each(|v| labels[v] = first as u32);
        }
        labels
    }

    /// Betweenness from some sources, by the definition: for each pair, how many shortest paths there are, and
    /// how many of them lead through each vertex.
    pub fn betweenness(&self, sources: &[usize]) -> Vec<f64> {
        let n = self.vertices();
        let mut sums = vec![0.0; n];
        for &source in sources {
            let hops = self.hops(source);
            let mut order: Vec<usize> = (0..n).filter(|&v| hops[v] != u32::MAX).collect();
            order.sort_by_key(|&v| hops[v]);
            let mut paths = vec![0.0; n];
            paths[source] = 1.0;
            for &u in &order {
                for &(v, _) in self.out[u].iter().filter(|(v, _)| hops[*v] == hops[u] + 1) {
                    paths[v] += paths[u];
                }
            }
            let mut share = vec![0.0; n];
            for &u in order.iter().rev() {
                for &(v, _) in self.out[u].iter().filter(|(v, _)| hops[*v] == hops[u] + 1) {
                    share[u] += paths[u] / paths[v] * (1.0 + share[v]);
                }
                if u != source {
                    sums[u] += share[u];
                }
            }
        }
        sums
    }

    /// Whether no two neighbours have the same colour, and every colour is the first that a vertex can have.
    pub fn is_greedy_coloring(&self, colors: &[u32]) -> bool {
        let sets = self.neighborhoods();
        (0..self.vertices()).all(|v| {
            let near: BTreeSet<u32> = sets[v].iter().map(|&u| colors[u]).collect();
            !near.contains(&colors[v]) && (0..colors[v]).all(|color| near.contains(&color))
        })
    }

    /// Whether no two of the set (1) are neighbours, and each of the others has a neighbour in it.
    pub fn is_maximal_set(&self, chosen: &[u32]) -> bool {
        let sets = self.neighborhoods();
        (0..self.vertices()).all(|v| sets[v].iter().any(|&u| chosen[u] == 1) == (chosen[v] == 0))
    }

    /// The sums of 1/d over the vertices that reach each one, by a search from every vertex.
    pub fn harmonic(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.vertices()];
        for source in 0..self.vertices() {
            if self.out[source].is_empty() {
                continue;
            }
            let (mut hops, mut queue) =
                (BTreeMap::from([(source, 0u32)]), VecDeque::from([source]));
            while let Some(u) = queue.pop_front() {
                for &(v, _) in &self.out[u] {
                    if !hops.contains_key(&v) {
                        hops.insert(v, hops[&u] + 1);
                        sums[v] += 1.0 / f64::from(hops[&u] + 1);
                        queue.push_back(v);
                    }
                }
            }
        }
        sums
    }

    /// For each vertex, those that it has arcs to and from; and the share of arcs that have one back.
    pub fn mutual(&self, directed: bool) -> (Vec<u32>, f64) {
        let arcs: BTreeSet<(usize, usize)> =
            self.arcs().filter(|(u, v, _)| u != v).map(|(u, v, _)| (u, v)).collect();
        let mut counts = vec![0; self.vertices()];
        for &(u, v) in &arcs {
            counts[u] += u32::from(arcs.contains(&(v, u)));
        }
        let back: u32 = counts.iter().sum();
        let share = match arcs.len() {
            0 => f64::from(!directed),
            all => f64::from(back) / all as f64,
        };
        (counts, share)
    }

    /// For each pair, the sum over the neighbours that arcs lead to from both of what `value` makes of how many
    /// arcs lead there, and how many neighbours each has.
    pub fn in_common(
        &self,
        pairs: &[[usize; 2]],
        value: impl Fn(usize) -> f64,
    ) -> Vec<(f64, [u32; 2])> {
        let mut neighbors = vec![BTreeSet::new(); self.vertices()];
        let mut arcs = vec![0; self.vertices()];
        for (u, v, _) in self.arcs() {
            neighbors[u].insert(v);
            arcs[v] += 1;
        }
        let one = |&[a, b]: &[usize; 2]| {
            let sum = neighbors[a].intersection(&neighbors[b]).map(|&w| value(arcs[w])).sum();
            (sum, [neighbors[a].len() as u32, neighbors[b].len() as u32])
        };
        pairs.iter().map(one).collect()
    }

    /// The modularity of communities: of every arc, either way, and of chance, by the definition.
    pub fn modularity(&self, labels: &[u32], directed: bool) -> f64 {
        let (mut inside, mut strength) = (0.0, vec![0.0; self.vertices()]);
        for (u, v, weight) in self.arcs() {
            // An undirected edge is two arcs, but one with itself; a directed one is one.
            let ends = if directed || u == v { 2.0 } else { 1.0 };
            strength[u] += weight * ends / 2.0;
            strength[v] += weight * ends / 2.0;
            if labels[u] == labels[v] {
                inside += weight * ends;
            }
        }
        let all: f64 = strength.iter().sum();
        let mut masses = BTreeMap::<u32, f64>::new();
        labels.iter().zip(&strength).for_each(|(&l, s)| *masses.entry(l).or_default() += s);
        if all == 0.0 {
            return 0.0;
        }
        inside / all - masses.values().map(|mass| (mass / all).powi(2)).sum::<f64>()
    }

    /// Whether each group of vertices of one label is connected, whichever way its arcs lead.
    pub fn are_connected(&self, labels: &[u32]) -> bool {
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); self.vertices()];
        for (u, v, _) in self.arcs().filter(|&(u, v, w)| labels[u] == labels[v] && w > 0.0) {
            inside[u].push(v);
            inside[v].push(u);
        }
        let mut seen = vec![false; self.vertices()];
        let groups: BTreeSet<u32> = labels.iter().copied().collect();
        for &group in &groups {
            let mut stack = vec![group as usize];
            while let Some(v) = stack.pop() {
                if !std::mem::replace(&mut seen[v], true) {
                    stack.extend(&inside[v]);
                }
            }
        }
        seen.iter().all(|&seen| seen)
    }

    /// Labels after so many rounds in which all vertices take their neighbours' most frequent label.
    pub fn label_propagation(&self, rounds: usize, directed: bool) -> Vec<u32> {
        let mut labels: Vec<u32> = (0..self.vertices() as u32).collect();
        for _ in 0..rounds {
            let mut votes = vec![BTreeMap::<u32, usize>::new(); self.vertices()];
            for (u, v, _) in self.arcs() {
                *votes[u].entry(labels[v]).or_default() += 1;
                if directed {
                    *votes[v].entry(labels[u]).or_default() += 1;
                }
            }
            for (label, votes) in labels.iter_mut().zip(&votes) {
                let best = votes.iter().max_by_key(|&(&label, &count)| (count, Reverse(label)));
                *label = best.map_or(*label, |(&label, _)| label);
            }
        }
        labels
    }

    /// Neighbours' values reduced by minimum or maximum, with the type's own arithmetic.
    pub fn extremes<T: Value + Into<f64>>(&self, x: &[T], how: &Propagation) -> Vec<f64> {
        let identity = if how.reduce == Reduce::Min { f64::INFINITY } else { f64::NEG_INFINITY };
        let mut y = vec![identity; x.len()];
        self.each_value(x.len(), how, |to, from, weight| {
            let value = if how.weights { T::from_f64(weight) * x[from] } else { x[from] };
            y[to] = match how.reduce {
                Reduce::Min => y[to].min(value.into()),
                _ => y[to].max(value.into()),
            };
        });
        y
    }

    /// Sums of neighbours' values, and the sums of their sizes, which bound the rounding.
    pub fn sums<T: Value + Into<f64>>(&self, x: &[T], how: &Propagation) -> Vec<(f64, f64)> {
        let mut y = vec![(0.0, 0.0); x.len()];
        self.each_value(x.len(), how, |to, from, weight| {
            let term = if how.weights { weight * x[from].into() } else { x[from].into() };
            y[to] = (y[to].0 + term, y[to].1 + f64::abs(term));
        });
        y
    }

    /// Calls `visit(place in y, place in x, weight)` for every value of every arc.
    fn each_value(&self, len: usize, how: &Propagation, mut visit: impl FnMut(usize, usize, f64)) {
        let width = len / self.vertices().max(1);
        for (u, v, weight) in self.arcs() {
            let (to, from) = if how.transpose { (u, v) } else { (v, u) };
            (0..width).for_each(|i| visit(to * width + i, from * width + i, weight));
        }
    }
}

/// What is propagated, but for the width.
#[derive(Debug, Clone, Copy)]
pub struct Propagation {
    pub reduce: Reduce,
    pub transpose: bool,
    pub weights: bool,
}
