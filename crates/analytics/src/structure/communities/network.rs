//! A weighted network without directions in memory: the graph at first, then its communities as vertices.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, Reservation};

use crate::edge_map::{for_each_arc, stored_once};
use crate::row_map::{ListDegrees, RowMap, Side};

/// The arcs that a thread aggregates before it takes others.
const PART_ARCS: u32 = 1 << 15;

/// Neighbours by vertex, with what connects them; what connects a vertex to itself is kept aside.
pub(super) struct Network {
    /// Where each list begins; a last entry says where the last list ends.
    starts: Vec<u32>,
    targets: Array<u32>,
    /// Weights of the targets; of no length where all are 1.
    weights: Array<f64>,
    /// Twice the weight of each vertex's edges with itself.
    loops: Vec<f64>,
    _held: Option<Reservation>,
}

impl Network {
    /// The edges of a graph, either way. The caller has reserved [`Network::bytes`].
    ///
    /// # Errors
    /// Lists that do not fit the memory, any error of a pass.
    pub(super) fn read(graph: &Graph) -> Result<Self> {
        let mut network = match graph.manifest().weighted {
            Weights::None => Self::plain(graph)?,
            _ => Self::weighted(graph)?,
        };
        network.sort(graph)?;
        // An arc from a vertex to itself is listed at both its ends.
        network.take_loops(if graph.manifest().directed { 1.0 } else { 2.0 });
        Ok(network)
    }

    /// Bytes that [`read`](Self::read) takes.
    pub(super) fn bytes(graph: &Graph) -> u64 {
        let manifest = graph.manifest();
        let ends = manifest.arcs * if manifest.directed { 2 } else { 1 };
        let each = if manifest.weighted == Weights::None { 4 } else { 12 };
        manifest.vertices * 24 + ends * each
    }

    fn plain(graph: &Graph) -> Result<Self> {
        let degrees = ListDegrees::read(graph, Side::Both)?;
        let (starts, targets) = RowMap::take_whole(graph, &degrees)?;
        let loops = vec![0.0; graph.vertices()];
        Ok(Self { starts, targets, weights: Array::default(), loops, _held: None })
    }

    fn weighted(graph: &Graph) -> Result<Self> {
        let degrees = ListDegrees::read(graph, Side::Both)?;
        let mut starts = Vec::with_capacity(graph.vertices() + 1);
        let mut end = 0u64;
        for v in 0..graph.vertices() as u32 {
            starts.push(end as u32);
            end += degrees.all(v);
        }
        starts.push(u32::try_from(end).map_err(|_| too_many(graph))?);
        let mut targets = Array::<u32>::zeroed(end as usize)?;
        let weights = Array::<AtomicU64>::zeroed(end as usize)?;
        let next: Vec<AtomicU32> = starts.iter().map(|&start| AtomicU32::new(start)).collect();
        let slots = targets.as_atomic();
        let put = |v: u32, target: u32, weight: f64| {
            let at = next[v as usize].fetch_add(1, Ordering::Relaxed) as usize;
            if let Some((slot, own)) = slots.get(at).zip(weights.get(at)) {
                slot.store(target, Ordering::Relaxed);
                own.store(weight.to_bits(), Ordering::Relaxed);
            }
        };
        let (directed, tiles) = (graph.manifest().directed, graph.tiles().is_stored());
        // Of an undirected graph's raw blocks, a row is a whole list.
        let whole = !tiles && !directed;
        let once = stored_once(graph);
        for_each_arc(
            graph,
            &graph.tiles().select(|_| true),
            |_| (),
            |(), arcs| {
                arcs.rows(|row, arcs| {
                    arcs.weighted(|column, weight| {
                        put(row, column, weight);
                        if !whole && (directed || (once && row != column)) {
                            put(column, row, weight);
                        }
                    });
                });
            },
            |()| Ok(()),
        )?;
        Ok(Self {
            weights: Array::from_fn(graph.thread_pool(), end as usize, |i| {
                f64::from_bits(weights[i].load(Ordering::Relaxed))
            })?,
            starts,
            targets,
            loops: vec![0.0; graph.vertices()],
            _held: None,
        })
    }

    /// Puts every list in order, so that nothing depends on the order in which arcs came.
    fn sort(&mut self, graph: &Graph) -> Result<()> {
        let starts = &self.starts;
        let each = 1 << 12;
        let vertices = (starts.len() - 1) as u32;
        let parts: Vec<Range<u32>> = (0..vertices)
            .step_by(each)
            .map(|begin| begin..vertices.min(begin + each as u32))
            .collect();
        let arcs =
            |part: &Range<u32>| (starts[part.end as usize] - starts[part.start as usize]) as usize;
        let is_weighted = !self.weights.is_empty();
        let weights = |part: &Range<u32>| if is_weighted { arcs(part) } else { 0 };
        let lists =
            split(&mut self.targets, &parts, arcs).zip(split(&mut self.weights, &parts, weights));
        graph.thread_pool().share(lists, |_, lists| {
            let mut sorted = Vec::new();
            for ((part, targets), (_, weights)) in lists {
                let first = starts[part.start as usize];
                for v in part {
                    let own = (starts[v as usize] - first) as usize
                        ..(starts[v as usize + 1] - first) as usize;
                    if !is_weighted {
                        targets[own].sort_unstable();
                        continue;
                    }
                    sorted.clear();
                    sorted.extend(own.clone().map(|i| (targets[i], weights[i].to_bits())));
                    sorted.sort_unstable();
                    for (i, &(target, weight)) in own.zip(&sorted) {
                        (targets[i], weights[i]) = (target, f64::from_bits(weight));
                    }
                }
            }
        })?;
        Ok(())
    }

    /// Cuts communities into their connected pieces, and numbers these from 0.
    pub(super) fn cut(&self, community: &mut [u32]) {
        let mut pieces = vec![u32::MAX; community.len()];
        let (mut count, mut found) = (0, Vec::new());
        for start in 0..community.len() as u32 {
            if pieces[start as usize] != u32::MAX {
                continue;
            }
            pieces[start as usize] = count;
            found.push(start);
            while let Some(v) = found.pop() {
                self.each(v, |u, weight| {
                    let piece = &mut pieces[u as usize];
                    let is_same = community[u as usize] == community[v as usize];
                    if *piece == u32::MAX && is_same && weight > 0.0 {
                        *piece = count;
                        found.push(u);
                    }
                });
            }
            count += 1;
        }
        community.copy_from_slice(&pieces);
    }

    /// Takes edges of vertices with themselves out of the lists; each place of one counts so many times.
    fn take_loops(&mut self, times: f64) {
        let (mut end, mut begin) = (0, 0);
        for v in 0..self.len() {
            let list = begin..self.starts[v + 1] as usize;
            begin = list.end;
            for i in list {
                if self.targets[i] == v as u32 {
                    self.loops[v] += self.weight(i) * times;
                    continue;
                }
                self.targets[end] = self.targets[i];
                if !self.weights.is_empty() {
                    self.weights[end] = self.weights[i];
                }
                end += 1;
            }
            self.starts[v + 1] = end as u32;
        }
    }

    /// The number of vertices.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline(always)]
    fn range(&self, v: u32) -> Range<usize> {
        self.starts[v as usize] as usize..self.starts[v as usize + 1] as usize
    }

    #[inline(always)]
    fn weight(&self, i: usize) -> f64 {
        if self.weights.is_empty() { 1.0 } else { self.weights[i] }
    }

    /// The neighbours of `v`, some of them perhaps several times.
    #[inline(always)]
    pub(super) fn neighbors(&self, v: u32) -> &[u32] {
        &self.targets[self.range(v)]
    }

    /// Calls `visit(neighbour, weight)` for each neighbour of `v` but itself.
    #[inline(always)]
    pub(super) fn each(&self, v: u32, mut visit: impl FnMut(u32, f64)) {
        let range = self.range(v);
        let targets = &self.targets[range.clone()];
        if self.weights.is_empty() {
            targets.iter().for_each(|&target| visit(target, 1.0));
            return;
        }
        targets
            .iter()
            .zip(&self.weights[range])
            .for_each(|(&target, &weight)| visit(target, weight));
    }

    /// The weight of all edges of `v`, those with itself twice.
    pub(super) fn strength(&self, v: u32) -> f64 {
        let mut sum = self.loops[v as usize];
        self.each(v, |_, weight| sum += weight);
        sum
    }

    /// The weight of edges inside communities, each in both directions.
    pub(super) fn inside(&self, community: &[u32]) -> f64 {
        let mut sum = 0.0;
        for v in 0..self.len() as u32 {
            sum += self.loops[v as usize];
            let own = community[v as usize];
            self.each(v, |u, weight| {
                if community[u as usize] == own {
                    sum += weight;
                }
            });
        }
        sum
    }

    /// The network whose vertices are the communities, numbered from 0 to `count`.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] where it does not fit the memory beside this one.
    pub(super) fn aggregate(&self, graph: &Graph, community: &[u32], count: usize) -> Result<Self> {
        // The vertices by community.
        let mut firsts = vec![0u32; count + 1];
        community.iter().for_each(|&own| firsts[own as usize + 1] += 1);
        (0..count).for_each(|i| firsts[i + 1] += firsts[i]);
        let mut members = vec![0u32; community.len()];
        let mut next = firsts.clone();
        for (v, &own) in community.iter().enumerate() {
            members[next[own as usize] as usize] = v as u32;
            next[own as usize] += 1;
        }
        let of = |c: u32| &members[firsts[c as usize] as usize..firsts[c as usize + 1] as usize];
        let parts = self.parts(count as u32, of);
        let threads = graph.thread_pool();
        let mut lengths = vec![0u32; count];
        threads.share(split(&mut lengths, &parts, |part| part.len()), |_, parts| {
            let mut seen = vec![u32::MAX; count];
            for (part, lengths) in parts {
                for (c, length) in part.zip(lengths) {
                    seen[c as usize] = c;
                    for &v in of(c) {
                        for &u in self.neighbors(v) {
                            let other = &mut seen[community[u as usize] as usize];
                            *length += u32::from(*other != c);
                            *other = c;
                        }
                    }
                }
            }
        })?;
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0u32);
        lengths.iter().for_each(|&length| starts.push(starts[starts.len() - 1] + length));
        let arcs = starts[count] as usize;
        let bytes = count as u64 * 24 + arcs as u64 * 12;
        let held = graph.memory().reserve(bytes, "the communities as a network")?;
        let (mut targets, mut weights) = (Array::zeroed(arcs)?, Array::zeroed(arcs)?);
        let mut loops = vec![0.0; count];
        let arcs_of =
            |part: &Range<u32>| (starts[part.end as usize] - starts[part.start as usize]) as usize;
        let outputs = split(&mut targets, &parts, arcs_of)
            .zip(split(&mut weights, &parts, arcs_of))
            .zip(split(&mut loops, &parts, |part| part.len()));
        threads.share(outputs, |_, outputs| {
            let (mut sums, mut touched) = (vec![0.0; count], Vec::new());
            let mut seen = vec![u32::MAX; count];
            for (((part, targets), (_, weights)), (_, loops)) in outputs {
                let mut at = 0;
                for (c, own) in part.zip(loops) {
                    touched.clear();
                    let mut inside = 0.0;
                    for &v in of(c) {
                        inside += self.loops[v as usize];
                        self.each(v, |u, weight| {
                            let other = community[u as usize];
                            if other == c {
                                inside += weight;
                                return;
                            }
                            if seen[other as usize] != c {
                                seen[other as usize] = c;
                                touched.push(other);
                            }
                            sums[other as usize] += weight;
                        });
                    }
                    *own = inside;
                    for &other in &touched {
                        targets[at] = other;
                        weights[at] = std::mem::take(&mut sums[other as usize]);
                        at += 1;
                    }
                }
            }
        })?;
        Ok(Self { starts, targets, weights, loops, _held: Some(held) })
    }

    /// The communities as ranges of about as many arcs each.
    fn parts<'a>(&self, count: u32, of: impl Fn(u32) -> &'a [u32]) -> Vec<Range<u32>> {
        let (mut parts, mut begin, mut arcs) = (Vec::new(), 0, 0);
        for c in 0..count {
            arcs += of(c).iter().map(|&v| self.range(v).len() as u32 + 4).sum::<u32>();
            if arcs > PART_ARCS || c + 1 == count {
                parts.push(begin..c + 1);
                (begin, arcs) = (c + 1, 0);
            }
        }
        parts
    }
}

/// `values` cut into as many for each part as `len` says, with the part.
fn split<'a, T: Send>(
    values: &'a mut [T],
    parts: &'a [Range<u32>],
    len: impl Fn(&Range<u32>) -> usize + Send + 'a,
) -> impl Iterator<Item = (Range<u32>, &'a mut [T])> + Send + 'a {
    let mut rest = values;
    parts.iter().map(move |part| {
        let (own, after) = std::mem::take(&mut rest).split_at_mut(len(part));
        rest = after;
        (part.clone(), own)
    })
}

fn too_many(graph: &Graph) -> Error {
    Error::new(ErrorKind::Input, "find the communities of")
        .object(graph.dir().path().display())
        .expected("fewer than 2^32 neighbours in all")
        .got("more")
}
