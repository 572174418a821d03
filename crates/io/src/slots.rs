//! What is in flight, by slot: the slot's number is the tag that goes down to the layer below.

use std::collections::VecDeque;

use crate::{Read, ReadEngine};

/// A table of at most `capacity` entries with numbers that are used again.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        Self { entries: (0..capacity).map(|_| None).collect(), free: (0..capacity).rev().collect() }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn used(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Puts `entry` into a free slot; gives it back when there is none.
    pub(crate) fn insert(&mut self, entry: T) -> Result<u64, T> {
        let Some(slot) = self.free.pop() else { return Err(entry) };
        self.entries[slot as usize] = Some(entry);
        Ok(u64::from(slot))
    }

    pub(crate) fn get_mut(&mut self, slot: u64) -> Option<&mut T> {
        self.entries.get_mut(slot as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, slot: u64) -> Option<T> {
        let entry = self.entries.get_mut(slot as usize)?.take()?;
        self.free.push(slot as u32);
        Some(entry)
    }

    /// Takes every entry out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.free = (0..self.entries.len() as u32).rev().collect();
        self.entries.iter_mut().filter_map(Option::take)
    }
}

/// Hands up to `room` of `reads`, no more than there are free slots, to `inner`, each with its slot's
/// number for a tag; the slots hold what `entry` makes of them.
pub(crate) fn submit_numbered<T>(
    inner: &mut impl ReadEngine,
    slots: &mut Slots<T>,
    reads: &mut VecDeque<Read>,
    room: usize,
    entry: impl Fn(&Read) -> T,
) {
    let room = room.min(reads.len());
    let mut below: VecDeque<Read> = VecDeque::with_capacity(room);
    let mut tags = Vec::with_capacity(room);
    for read in reads.drain(..room) {
        let tag = read.tag;
        let Ok(slot) = slots.insert(entry(&read)) else { continue };
        below.push_back(Read { tag: slot, ..read });
        tags.push(tag);
    }
    inner.submit(&mut below);
    // What it had no room for goes back to the front, in order.
    while let (Some(read), Some(tag)) = (below.pop_back(), tags.pop()) {
        slots.remove(read.tag);
        reads.push_front(Read { tag, ..read });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiergraph_mem::AlignedBuf;

    use super::*;
    use crate::engine::Null;
    use crate::{FileSet, Wait};

    #[test]
    fn reads_that_the_engine_below_has_no_room_for_come_back_as_they_were() {
        let mut files = FileSet::new();
        let file = files.open("/dev/null".as_ref()).unwrap();
        let read = |tag| {
            let to = AlignedBuf::zeroed(4096).unwrap().into();
            Read { file, offset: 0, len: 4096, to, at: 0, tag }
        };
        let (mut inner, mut slots) = (Null::new(Arc::new(files), 2), Slots::new(8));
        let mut reads: VecDeque<Read> = (70..75).map(read).collect();
        submit_numbered(&mut inner, &mut slots, &mut reads, 4, |read| read.tag);
        assert_eq!(reads.iter().map(|read| read.tag).collect::<Vec<_>>(), [72, 73, 74]);
        assert_eq!(slots.used(), 2);
        let mut done = Vec::new();
        inner.poll(&mut done, Wait::All).unwrap();
        let tags: Vec<u64> = done.iter().map(|done| slots.remove(done.tag).unwrap()).collect();
        assert_eq!(tags, [70, 71]);
    }

    #[test]
    fn a_slot_is_used_again_only_after_it_was_emptied() {
        let mut slots = Slots::new(2);
        let (a, b) = (slots.insert('a').unwrap(), slots.insert('b').unwrap());
        assert_ne!(a, b);
        assert_eq!(slots.insert('c'), Err('c'));
        assert_eq!(slots.remove(a), Some('a'));
        assert_eq!((slots.remove(a), slots.remove(99)), (None, None));
        assert_eq!(slots.insert('c'), Ok(a));
        assert_eq!(slots.drain().count(), 2);
        assert_eq!(slots.used(), 0);
    }
}
