//! Tables from vertices to their places in a batch, in order of first appearance.
//!
//! Both tables forget everything in no time: a place is stored plus a base that grows past all
//! places of the batch before, so what is below the base is from an earlier batch, and free.

use tiergraph_core::Result;
use tiergraph_mem::{Array, prefetch};

/// A table from keys to places.
pub trait Labels {
    /// The type of the keys.
    type Key: Key;

    /// Forgets all keys and makes room for `expected` new ones.
    fn start(&mut self, expected: usize) -> Result<()>;

    /// Makes room for `more` keys beside those that are in.
    fn reserve(&mut self, more: usize) -> Result<()>;

    /// Prefetches the memory that looking `key` up touches.
    fn prefetch(&self, key: Self::Key);

    /// The place of `key`, which is `next` from now on if it has none yet. `next` never falls
    /// within a batch.
    fn place(&mut self, key: Self::Key, next: u32) -> u32;

    /// Bytes that the table takes in memory.
    fn resident_bytes(&self) -> u64;
}

/// A key that an open-addressing table can hold.
pub trait Key: Copy + Eq {
    /// Whether the same vertex has another key in each tree.
    const HAS_TREE: bool;

    /// The key of a vertex in a tree.
    fn of(tree: u32, vertex: u32) -> Self;

    /// The type of a slot: a key and a place.
    type Slot: bytemuck::Pod;

    /// A hash of 64 bits, the upper ones well mixed.
    fn hash(self) -> u64;

    /// The slot that holds this key and `place`.
    fn slot(self, place: u32) -> Self::Slot;

    /// The key and the place in a slot.
    fn parts(slot: Self::Slot) -> (Self, u32);
}

/// 2⁶⁴ / golden ratio: Fibonacci hashing (Knuth, *TAOCP* 3, §6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The key of a vertex where all seeds share a tree.
impl Key for u32 {
    const HAS_TREE: bool = false;
    type Slot = u64;

    #[inline(always)]
    fn of(_tree: u32, vertex: u32) -> Self {
        vertex
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        u64::from(self).wrapping_mul(GOLDEN)
    }

    #[inline(always)]
    fn slot(self, place: u32) -> u64 {
        u64::from(self) << 32 | u64::from(place)
    }

    #[inline(always)]
    fn parts(slot: u64) -> (Self, u32) {
        ((slot >> 32) as u32, slot as u32)
    }
}

/// The key of a vertex of one tree: the tree in the upper half.
impl Key for u64 {
    const HAS_TREE: bool = true;
    type Slot = [u64; 2];

    #[inline(always)]
    fn of(tree: u32, vertex: u32) -> Self {
        Self::from(tree) << 32 | Self::from(vertex)
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        (self ^ self >> 32).wrapping_mul(GOLDEN)
    }

    #[inline(always)]
    fn slot(self, place: u32) -> [u64; 2] {
        [self, u64::from(place)]
    }

    #[inline(always)]
    fn parts([key, place]: [u64; 2]) -> (Self, u32) {
        (key, place as u32)
    }
}

/// The fewest slots of a table.
const MIN_SLOTS: usize = 1 << 10;

/// A table with open addressing and linear probing, at most half full.
#[derive(Debug)]
pub struct Hashed<K: Key> {
    slots: Array<K::Slot>,
    shift: u32,
    base: u32,
    /// One past the last place of this batch.
    top: u32,
    used: usize,
}

impl<K: Key> Default for Hashed<K> {
    fn default() -> Self {
        Self { slots: Array::default(), shift: 63, base: 1, top: 0, used: 0 }
    }
}

impl<K: Key> Hashed<K> {
    /// The slot that has `key`, or the free one where it belongs.
    #[inline(always)]
    fn find(&self, key: K) -> usize {
        let mut at = (key.hash() >> self.shift) as usize;
        loop {
            let (other, place) = K::parts(self.slots[at]);
            if place < self.base || other == key {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Moves the keys of this batch to an empty table of `slots` slots (a power of two).
    fn grow(&mut self, slots: usize) -> Result<()> {
        let old = std::mem::replace(&mut self.slots, Array::zeroed(slots)?);
        self.shift = 64 - slots.trailing_zeros();
        for &slot in old.iter().filter(|&&slot| K::parts(slot).1 >= self.base) {
            let at = self.find(K::parts(slot).0);
            self.slots[at] = slot;
        }
        Ok(())
    }
}

impl<K: Key> Labels for Hashed<K> {
    type Key = K;

    fn start(&mut self, expected: usize) -> Result<()> {
        let clear = || self.slots.fill(bytemuck::Zeroable::zeroed());
        self.base = next_base(self.base, self.top, clear);
        (self.top, self.used) = (0, 0);
        self.reserve(expected)
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        let needed = ((self.used + more) * 2).next_power_of_two().max(MIN_SLOTS);
        if needed > self.slots.len() { self.grow(needed) } else { Ok(()) }
    }

    #[inline(always)]
    fn prefetch(&self, key: K) {
        prefetch(&self.slots, (key.hash() >> self.shift) as usize);
    }

    #[inline(always)]
    fn place(&mut self, key: K, next: u32) -> u32 {
        let at = self.find(key);
        let (_, place) = K::parts(self.slots[at]);
        if place >= self.base {
            return place - self.base;
        }
        self.slots[at] = key.slot(self.base + next);
        self.top = next + 1;
        self.used += 1;
        next
    }

    fn resident_bytes(&self) -> u64 {
        self.slots.resident_bytes()
    }
}

/// A table with a place for every vertex of the graph: faster than hashing while it fits the caches.
#[derive(Debug)]
pub struct Dense {
    places: Array<u32>,
    base: u32,
    top: u32,
}

impl Dense {
    /// A table for the vertices of a graph.
    ///
    /// # Errors
    /// When the system has no such amount of memory to give.
    pub fn new(vertices: usize) -> Result<Self> {
        Ok(Self { places: Array::zeroed(vertices)?, base: 1, top: 0 })
    }
}

impl Labels for Dense {
    type Key = u32;

    fn start(&mut self, _expected: usize) -> Result<()> {
        self.base = next_base(self.base, self.top, || self.places.fill(0));
        self.top = 0;
        Ok(())
    }

    fn reserve(&mut self, _more: usize) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, key: u32) {
        prefetch(&self.places, key as usize);
    }

    #[inline(always)]
    fn place(&mut self, key: u32, next: u32) -> u32 {
        let slot = &mut self.places[key as usize];
        if *slot >= self.base {
            return *slot - self.base;
        }
        *slot = self.base + next;
        self.top = next + 1;
        next
    }

    fn resident_bytes(&self) -> u64 {
        self.places.resident_bytes()
    }
}

/// The most places of one batch.
pub const MAX_PLACES: usize = 1 << 31;

/// A base past the places of the batch before, which were below `top`; after some two billion
/// places the table is cleared and the base begins anew.
fn next_base(base: u32, top: u32, clear: impl FnOnce()) -> u32 {
    let next = base as usize + top as usize;
    if next + MAX_PLACES <= u32::MAX as usize {
        return next as u32;
    }
    clear();
    1
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::hash::Hash;

    use proptest::prelude::*;

    use super::*;

    /// Fills `labels` batch by batch and compares with a map of the standard library.
    fn agrees<L: Labels>(mut labels: L, batches: &[Vec<u32>], key: impl Fn(u32) -> L::Key)
    where
        L::Key: Hash + Eq,
    {
        for batch in batches {
            labels.start(0).unwrap();
            let mut twin = HashMap::new();
            for (i, &number) in batch.iter().enumerate() {
                if i % 10 == 0 {
                    labels.reserve(10).unwrap();
                }
                // Places need not be dense: seeds that occur twice leave gaps.
                let next = i as u32;
                let expected = *twin.entry(number).or_insert(next);
                labels.prefetch(key(number));
                assert_eq!(labels.place(key(number), next), expected);
            }
        }
    }

    proptest! {
        #[test]
        fn places_follow_first_appearance(
            batches in prop::collection::vec(prop::collection::vec(0u32..3000, 0..2000), 1..6),
        ) {
            agrees(Hashed::<u32>::default(), &batches, |n| n.wrapping_mul(0x1001));
            agrees(Hashed::<u64>::default(), &batches, |n| u64::from(n % 7) << 32 | u64::from(n));
            agrees(Dense::new(3000).unwrap(), &batches, |n| n);
        }
    }

    #[test]
    fn the_base_starts_anew_before_it_would_overflow() {
        let mut cleared = false;
        assert_eq!(next_base(1, 500, || cleared = true), 501);
        assert!(!cleared);
        assert_eq!(next_base(u32::MAX - MAX_PLACES as u32, 1, || cleared = true), 1);
        assert!(cleared);
        let mut dense = Dense::new(4).unwrap();
        dense.base = u32::MAX - MAX_PLACES as u32;
        dense.start(0).unwrap();
        assert_eq!(dense.place(2, 0), 0);
        dense.start(0).unwrap();
        assert_eq!((dense.base, dense.place(1, 0), dense.place(2, 1)), (1, 0, 1));
    }
}
