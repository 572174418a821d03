//! The number of batches that may be in flight in the memory that there is.

use crate::options::LoaderOptions;

/// The number of batches that the caller holds: the one it trains on, and the one that it takes next.
pub(crate) const HELD: u64 = 2;

/// Bytes that a batch takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BatchBytes {
    /// Bytes of the largest batch that was counted.
    pub(crate) usual: u64,
    /// Bytes of the largest batch that may come.
    pub(crate) most: u64,
    /// Bytes by which a thread's table and lists grow.
    pub(crate) growth: u64,
    /// Bytes that a thread has of each batch of its window before it reserves that batch.
    pub(crate) scratch: u64,
}

/// The numbers of batches that are prepared together, that may be begun beyond those, and of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub(crate) window: usize,
    pub(crate) prefetch: usize,
    pub(crate) threads: usize,
}

impl InFlight {
    pub(crate) fn asked(options: &LoaderOptions) -> Self {
        Self { window: options.window, prefetch: options.prefetch, threads: options.threads }
    }

    /// The fewest that there can be: one batch and one thread.
    pub(crate) fn least() -> Self {
        Self { window: 1, prefetch: 0, threads: 1 }
    }

    /// Bytes of the batches in flight, and of the threads that prepare them.
    pub(crate) fn bytes(self, batch: BatchBytes) -> u64 {
        let in_flight = (self.window + self.prefetch) as u64 + HELD;
        let batches = in_flight.saturating_mul(batch.usual);
        self.least_bytes(batch).max(batches.saturating_add(self.of_threads(batch)))
    }

    /// Bytes without which a batch might never be ready: of the largest that may come, beside those
    /// that the caller holds, and of the threads. Others wait until the caller drops some.
    fn least_bytes(self, batch: BatchBytes) -> u64 {
        (HELD + 1).saturating_mul(batch.most).saturating_add(self.of_threads(batch))
    }

    /// Bytes that threads have for themselves, with windows of batches that wait.
    fn of_threads(self, batch: BatchBytes) -> u64 {
        let thread =
            batch.growth.saturating_add((self.window as u64).saturating_mul(batch.scratch));
        self.threads as u64 * thread
    }

    /// As much as can be in flight in `room`: all that was asked for, or what keeps most of a window
    /// together; `None` if no batch fits. Batches that are begun wait for memory; a window that does not
    /// fit is prepared by one thread, because what another had of the next one would be missing here.
    pub(crate) fn fitting(self, batch: BatchBytes, room: u64) -> Option<Self> {
        let windows = std::iter::successors(Some(self.window), |&window| Some(window / 2));
        windows.take_while(|&window| window > 0).find_map(|window| {
            let [all, one] = [self.threads, 1].map(|threads| Self { window, threads, ..self });
            let fits = |way: &Self| way.least_bytes(batch) <= room;
            let together = Some(all).filter(|all| all.together(batch, room) == window);
            together.filter(fits).or(Some(one).filter(fits))
        })
    }

    /// The number of batches of a window that have room at once, beside those that the caller holds:
    /// these share the reads of their rows.
    pub(crate) fn together(self, batch: BatchBytes, room: u64) -> usize {
        let batches = room.saturating_sub(self.of_threads(batch)) / batch.usual.max(1);
        (batches.saturating_sub(HELD) as usize).clamp(1, self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: BatchBytes = BatchBytes { usual: 10, most: 15, growth: 1, scratch: 2 };

    #[test]
    fn threads_and_windows_shrink_where_they_have_no_room_and_batches_wait() {
        let asked = InFlight { window: 4, prefetch: 8, threads: 2 };
        // 14 batches and two threads of 1 + 4 · 2 bytes.
        assert_eq!(asked.bytes(BATCH), 14 * 10 + 18);
        assert_eq!(InFlight::least().bytes(BATCH), 3 * 15 + 3);
        for (room, window, threads, together) in [
            (158, 4, 2, 4),
            (78, 4, 2, 4),
            (77, 4, 1, 4),
            (62, 4, 1, 3),
            (54, 4, 1, 2),
            (53, 2, 1, 2),
            (49, 1, 1, 1),
            (48, 1, 1, 1),
        ] {
            let fitting = asked.fitting(BATCH, room);
            assert_eq!(fitting, Some(InFlight { window, threads, prefetch: 8 }), "{room}");
            assert_eq!(fitting.map(|way| way.together(BATCH, room)), Some(together), "{room}");
        }
        assert_eq!(asked.fitting(BATCH, 47), None);
    }
}
