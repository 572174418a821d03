//! A queue of vertices by distance: buckets, of which a vertex is in one or in none.
//!
//! Delta-stepping's buckets (Meyer, Sanders, J. Algorithms 49, 2003) as lists that are linked through
//! the vertices' own state, 16 bytes a vertex, so that a distance, its place in a list and the
//! neighbours there are on one cache line and nothing is allocated. The buckets are a window over
//! distances; what lies behind it waits in one list, out of which the next window is filled. How wide
//! buckets are decides the seconds only.

use tiergraph_core::{Result, ThreadPool};
use tiergraph_mem::{Array, prefetch};

/// How many buckets the window has. One list more has the vertices behind the window.
pub(super) const BUCKETS: usize = 1 << 12;
/// Vertices behind the window that are looked at to choose the width of the next window's buckets.
const SAMPLE: usize = 255;
/// The neighbour in a list of a vertex that is in no list.
const NONE: u32 = u32::MAX;

/// A node of the circular lists: a vertex, or the head of a list.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable)]
struct Node {
    distance: f64,
    next: u32,
    before: u32,
}

/// The distances of all vertices, and the queue of those whose arcs are to be relaxed.
#[derive(Debug)]
pub(super) struct Buckets {
    /// All vertices, then the heads of all lists.
    nodes: Array<Node>,
    vertices: usize,
    /// The least width of a bucket.
    delta: f64,
    /// The distance at which the window begins.
    start: f64,
    /// The width of the window's buckets.
    width: f64,
    /// The first bucket that may not be empty.
    current: usize,
}

impl Buckets {
    /// Bytes that a queue of so many vertices takes.
    pub(super) fn bytes(vertices: usize) -> u64 {
        ((vertices + BUCKETS + 1) * size_of::<Node>()) as u64
    }

    /// An empty queue of vertices at these distances. Buckets are at least `delta` wide.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub(super) fn new(
        threads: &ThreadPool,
        vertices: usize,
        delta: f64,
        distance: impl Fn(usize) -> f64 + Sync,
    ) -> Result<Self> {
        let nodes = Array::from_fn(threads, vertices + BUCKETS + 1, |i| match i < vertices {
            true => Node { distance: distance(i), next: NONE, before: NONE },
            false => Node { distance: 0.0, next: i as u32, before: i as u32 },
        })?;
        Ok(Self { nodes, vertices, delta, start: 0.0, width: delta, current: BUCKETS })
    }

    #[inline(always)]
    pub(super) fn distance(&self, v: u32) -> f64 {
        self.nodes[v as usize].distance
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, v: u32) {
        prefetch(&self.nodes, v as usize);
    }

    /// Puts `v` behind the window, if it is in no list.
    pub(super) fn push(&mut self, v: u32) {
        if self.nodes[v as usize].before == NONE {
            self.link(v, self.head(BUCKETS));
        }
    }

    /// Lowers the distance of `v` and puts it in its bucket; false if it is not lower.
    #[inline(always)]
    pub(super) fn lower(&mut self, v: u32, distance: f64) -> bool {
        let node = &mut self.nodes[v as usize];
        if node.distance <= distance {
            return false;
        }
        node.distance = distance;
        if node.before != NONE {
            self.unlink(v);
        }
        let bucket = self.bucket(distance);
        // Of vertices that were taken out together, a later one may have come out of a later bucket.
        self.current = self.current.min(bucket);
        self.link(v, self.head(bucket));
        true
    }

    /// Takes a vertex out of the first bucket that has one; `None` if the window is empty.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<u32> {
        while self.current < BUCKETS {
            let head = self.head(self.current);
            let v = self.nodes[head as usize].next;
            if v != head {
                self.unlink(v);
                return Some(v);
            }
            self.current += 1;
        }
        None
    }

    /// Fills the next window out of what lies behind this one, which is empty; false if nothing does.
    ///
    /// The window begins at the least distance there, and is wide enough for half of what is there: so
    /// no vertex is looked at here often, however weights differ.
    pub(super) fn advance(&mut self) -> bool {
        let head = self.head(BUCKETS);
        let (mut v, mut least, mut sample) = (self.next(head), f64::INFINITY, Vec::new());
        while v != head {
            let distance = self.distance(v);
            least = least.min(distance);
            if sample.len() < SAMPLE {
                sample.push(distance);
            }
            v = self.next(v);
        }
        sample.sort_unstable_by(f64::total_cmp);
        let Some(middle) = sample.get(sample.len() / 2) else { return false };
        self.start = least;
        self.width = self.delta.max((middle - least) / BUCKETS as f64);
        self.current = 0;
        let mut v = self.next(head);
        while v != head {
            let next = self.next(v);
            let bucket = self.bucket(self.distance(v));
            if bucket < BUCKETS {
                self.unlink(v);
                self.link(v, self.head(bucket));
            }
            v = next;
        }
        true
    }

    /// The bucket of a distance that is not before the window. As distances ascend, so do buckets.
    #[inline(always)]
    fn bucket(&self, distance: f64) -> usize {
        (((distance - self.start) / self.width) as usize).min(BUCKETS)
    }

    #[inline(always)]
    fn head(&self, bucket: usize) -> u32 {
        (self.vertices + bucket) as u32
    }

    #[inline(always)]
    fn next(&self, v: u32) -> u32 {
        self.nodes[v as usize].next
    }

    /// Adds `v` at the end of a list: what comes first leaves first, so that a wide bucket's vertices
    /// are looked at as often as Bellman and Ford would.
    #[inline(always)]
    fn link(&mut self, v: u32, head: u32) {
        let last = self.nodes[head as usize].before;
        self.nodes[last as usize].next = v;
        self.nodes[head as usize].before = v;
        let node = &mut self.nodes[v as usize];
        (node.next, node.before) = (head, last);
    }

    #[inline(always)]
    fn unlink(&mut self, v: u32) {
        let Node { next, before, .. } = self.nodes[v as usize];
        self.nodes[before as usize].next = next;
        self.nodes[next as usize].before = before;
        self.nodes[v as usize].before = NONE;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Vertices leave in the order of their buckets, over many windows, each once.
    #[test]
    fn vertices_leave_by_distance() {
        let n = 10_000;
        for (delta, spread) in [(1.0, 1.0), (1e-3, 1e6), (5.0, 0.0), (1e-300, 1e300)] {
            let distance = |v: usize| (v * 7919 % n) as f64 * spread;
            let mut buckets =
                Buckets::new(&ThreadPool::new(1), n, delta, |_| f64::INFINITY).unwrap();
            for v in 0..n {
                buckets.nodes[v].distance = distance(v) * 2.0 + 1.0;
                buckets.push(v as u32);
                buckets.push(v as u32);
            }
            let (mut left, mut last) = (vec![0; n], 0.0);
            while buckets.advance() {
                while let Some(v) = buckets.pop() {
                    let width = buckets.width;
                    assert!(buckets.distance(v) >= last - width, "{v} of {delta}, {spread}");
                    last = buckets.distance(v);
                    left[v as usize] += 1;
                }
            }
            assert!(left.iter().all(|&times| times == 1), "{delta}, {spread}");
        }
    }

    /// Several vertices may be out before the arcs of the first are relaxed.
    #[test]
    fn what_falls_before_the_present_bucket_is_not_lost() {
        let mut buckets = Buckets::new(&ThreadPool::new(2), 4, 1.0, |_| f64::INFINITY).unwrap();
        for (v, distance) in [(0, 0.0), (1, 900.0), (2, 2000.0)] {
            buckets.nodes[v as usize].distance = distance;
            buckets.push(v);
        }
        assert!(buckets.advance());
        assert_eq!([buckets.pop(), buckets.pop()], [Some(0), Some(1)]);
        assert!(buckets.lower(3, 5.0) && buckets.lower(1, 7.0));
        assert_eq!([buckets.pop(), buckets.pop(), buckets.pop()], [Some(3), Some(1), Some(2)]);
        assert!(buckets.pop().is_none());
        assert!(buckets.lower(2, 1500.0));
        assert_eq!(buckets.pop(), Some(2));
    }

    #[test]
    fn what_is_lowered_moves() {
        let distance = |v| if v == 0 { 0.0 } else { f64::INFINITY };
        let mut buckets = Buckets::new(&ThreadPool::new(2), 3, 1.0, distance).unwrap();
        buckets.push(0);
        assert!(buckets.advance());
        assert_eq!(buckets.pop(), Some(0));
        assert!(buckets.lower(1, 50.0) && buckets.lower(2, 40.0) && buckets.lower(1, 30.0));
        assert!(!buckets.lower(1, 30.0));
        assert_eq!([buckets.pop(), buckets.pop(), buckets.pop()], [Some(1), Some(2), None]);
        assert!(!buckets.advance());
    }
}
