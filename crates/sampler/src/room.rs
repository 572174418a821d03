//! How many batches may be under way in the memory that there is.

use crate::options::LoaderOptions;

/// Batches that the caller holds: the one that is trained on, and the one that it takes next.
pub(crate) const HELD: u64 = 2;

/// What batches take, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BatchBytes {
    /// The largest batch that was counted.
    pub(crate) usual: u64,
    /// The largest that may come.
    pub(crate) most: u64,
    /// What a thread's table and lists grow by.
    pub(crate) growth: u64,
    /// What a thread has of each batch of its window before that is reserved for.
    pub(crate) scratch: u64,
}

/// How many batches are prepared together, and how many beyond those may be begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnderWay {
    pub(crate) window: usize,
    pub(crate) prefetch: usize,
}

impl UnderWay {
    /// As few as there can be.
    pub(crate) const LEAST: Self = Self { window: 1, prefetch: 0 };

    pub(crate) fn asked(options: &LoaderOptions) -> Self {
        Self { window: options.window, prefetch: options.prefetch }
    }

    /// Bytes of so many batches, and of the `threads` that prepare them.
    ///
    /// The largest batch that may come must have room beside those that the caller holds: others
    /// wait until these are dropped.
    pub(crate) fn bytes(self, batch: BatchBytes, threads: usize) -> u64 {
        let under_way = (self.window + self.prefetch) as u64 + HELD;
        let batches = under_way.saturating_mul(batch.usual);
        let batches = batches.max((HELD + 1).saturating_mul(batch.most));
        batches.saturating_add(threads as u64 * self.thread_bytes(batch))
    }

    /// Bytes that one thread has for itself.
    pub(crate) fn thread_bytes(self, batch: BatchBytes) -> u64 {
        batch.growth.saturating_add((self.window as u64).saturating_mul(batch.scratch))
    }

    /// The most that fit `room`, no more than were asked for: fewer batches beyond a window first,
    /// as long as the next window can be prepared while one is trained on, then smaller windows.
    pub(crate) fn fitting(self, batch: BatchBytes, threads: usize, room: u64) -> Option<Self> {
        if self.bytes(batch, threads) <= room {
            return Some(self);
        }
        let mut window = self.window;
        loop {
            let bytes = |prefetch| Self { window, prefetch }.bytes(batch, threads);
            let beside = room.saturating_sub(bytes(0));
            let prefetch = (beside / batch.usual.max(1)).min(self.prefetch as u64) as usize;
            if bytes(0) <= room && (prefetch >= window.min(self.prefetch) || window == 1) {
                return Some(Self { window, prefetch: self.largest(prefetch, room, bytes) });
            }
            if window == 1 {
                return None;
            }
            window /= 2;
        }
    }

    /// From a number of batches that fit, the most that do: the largest batch's room is shared.
    fn largest(self, mut prefetch: usize, room: u64, bytes: impl Fn(usize) -> u64) -> usize {
        while prefetch < self.prefetch && bytes(prefetch + 1) <= room {
            prefetch += 1;
        }
        prefetch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: BatchBytes = BatchBytes { usual: 10, most: 15, growth: 1, scratch: 2 };

    #[test]
    fn what_does_not_fit_shrinks_and_never_below_one_batch_beside_those_held() {
        let asked = UnderWay { window: 4, prefetch: 8 };
        // 14 batches and two threads of 1 + 4 · 2 bytes.
        assert_eq!(asked.bytes(BATCH, 2), 14 * 10 + 18);
        assert_eq!(asked.fitting(BATCH, 2, 158), Some(asked));
        assert_eq!(asked.fitting(BATCH, 2, 157), Some(UnderWay { prefetch: 7, ..asked }));
        assert_eq!(asked.fitting(BATCH, 2, 118), Some(UnderWay { prefetch: 4, ..asked }));
        assert_eq!(asked.fitting(BATCH, 2, 117), Some(UnderWay { window: 2, prefetch: 6 }));
        assert_eq!(UnderWay::LEAST.bytes(BATCH, 2), 3 * 15 + 6);
        assert_eq!(
            asked.fitting(BATCH, 2, 51),
            Some(UnderWay { window: 1, prefetch: 1 }),
            "the room of the largest has four usual ones"
        );
        assert_eq!(asked.fitting(BATCH, 2, 50), None);
        for room in 51..200 {
            let fitting = asked.fitting(BATCH, 2, room).unwrap_or(UnderWay { window: 99, ..asked });
            assert!(fitting.bytes(BATCH, 2) <= room, "{room}: {fitting:?}");
        }
    }
}
