//! Lists that grow on huge pages: a page at a time, without a move of what is there.

use bytemuck::Zeroable;
use tiergraph_core::Result;

use crate::{Array, HUGE_PAGE_BYTES, prefetch};

/// A list of elements that are read at random, in segments of a huge page.
///
/// ```
/// let mut list = tiergraph_mem::Segments::<u32>::default();
/// for i in 0..1_000_000 {
///     if list.room() == 0 {
///         list.grow()?;
///     }
///     list.push(i);
/// }
/// assert_eq!((list.len(), list.get(654_321)), (1_000_000, 654_321));
/// # Ok::<(), tiergraph_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Segments<T> {
    segments: Vec<Array<T>>,
    len: usize,
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Self { segments: Vec::new(), len: 0 }
    }
}

impl<T: Zeroable + Copy> Segments<T> {
    /// Elements of a segment.
    pub const SEGMENT: usize = HUGE_PAGE_BYTES / size_of::<T>();
    /// Bytes of a segment.
    pub const SEGMENT_BYTES: u64 = HUGE_PAGE_BYTES as u64;

    /// The number of elements, those that were skipped included.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many elements may be added before it has to grow.
    #[inline]
    pub fn room(&self) -> usize {
        self.segments.len() * Self::SEGMENT - self.len
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.segments.len() as u64 * Self::SEGMENT_BYTES
    }

    /// Makes room for one more segment.
    ///
    /// # Errors
    /// A budget error where the system has no memory to give.
    pub fn grow(&mut self) -> Result<()> {
        self.segments.push(Array::zeroed(Self::SEGMENT)?);
        Ok(())
    }

    /// The element at a place.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn get(&self, at: usize) -> T {
        self.segments[at / Self::SEGMENT][at % Self::SEGMENT]
    }

    /// Replaces the element at a place.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn set(&mut self, at: usize, value: T) {
        self.segments[at / Self::SEGMENT][at % Self::SEGMENT] = value;
    }

    /// Asks for an element before it is needed.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        if let Some(segment) = self.segments.get(at / Self::SEGMENT) {
            prefetch(segment, at % Self::SEGMENT);
        }
    }

    /// Adds an element.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub fn push(&mut self, value: T) {
        self.set(self.len, value);
        self.len += 1;
    }

    /// Adds elements side by side, and says where the first is. Where the last segment has too little room for
    /// them, the rest of it is skipped: the caller has made sure that [`room`](Self::room) is enough for both.
    ///
    /// # Panics
    /// If there is no room, or they are more than a segment.
    #[inline]
    pub fn push_all(&mut self, values: &[T]) -> usize {
        let left = Self::SEGMENT - self.len % Self::SEGMENT;
        if values.len() > left {
            self.len += left;
        }
        let start = self.len;
        self.segments[start / Self::SEGMENT][start % Self::SEGMENT..][..values.len()]
            .copy_from_slice(values);
        self.len += values.len();
        start
    }

    /// Elements that lie side by side.
    ///
    /// # Panics
    /// If they are not in one segment.
    #[inline]
    pub fn slice(&self, start: usize, len: usize) -> &[T] {
        if len == 0 {
            return &[];
        }
        &self.segments[start / Self::SEGMENT][start % Self::SEGMENT..][..len]
    }

    /// The elements, a segment at a time, each of which is freed when the next is asked for.
    pub fn into_parts(self) -> impl Iterator<Item = Array<T>> {
        self.segments.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_side_by_side_are_never_in_two_segments() {
        let mut text = Segments::<u8>::default();
        let mut starts = Vec::new();
        let word = [7u8; 700_000];
        for _ in 0..10 {
            while text.room() < 2 * word.len() {
                text.grow().unwrap();
            }
            starts.push(text.push_all(&word));
        }
        assert!(starts.iter().all(|&start| text.slice(start, word.len()) == word));
        assert_eq!(starts[2], Segments::<u8>::SEGMENT);
        assert_eq!(text.push_all(&[]), text.len());
        assert!(text.slice(text.len(), 0).is_empty());
    }
}
