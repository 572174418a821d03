//! A set of vertices that all threads add to: a bit for each.

use std::sync::atomic::{AtomicU64, Ordering};

/// A bit for each vertex.
pub(crate) struct Flags(Vec<AtomicU64>);

impl Flags {
    /// Bytes of the flags of so many vertices.
    pub(crate) fn bytes(vertices: usize) -> u64 {
        vertices.div_ceil(64) as u64 * 8
    }

    pub(crate) fn none(vertices: usize) -> Self {
        Self((0..vertices.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn all(vertices: usize) -> Self {
        Self((0..vertices.div_ceil(64)).map(|_| AtomicU64::new(u64::MAX)).collect())
    }

    #[inline(always)]
    pub(crate) fn has(&self, v: u32) -> bool {
        self.0[(v >> 6) as usize].load(Ordering::Relaxed) >> (v & 63) & 1 != 0
    }

    #[inline(always)]
    pub(crate) fn set(&self, v: u32) {
        self.0[(v >> 6) as usize].fetch_or(1 << (v & 63), Ordering::Relaxed);
    }

    /// Whether any vertex is in the set.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Adds the vertices of another set of as many.
    pub(crate) fn add(&self, other: &Self) {
        for (own, other) in self.0.iter().zip(&other.0) {
            own.fetch_or(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The bits of 64 vertices each.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.0
    }

    pub(crate) fn words_mut(&mut self) -> &mut [AtomicU64] {
        &mut self.0
    }
}
