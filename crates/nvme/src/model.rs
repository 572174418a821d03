//! The speed of a drive that is not there: what a software controller, or an engine that is held back,
//! imitates.
//!
//! The drive serves one read after the other, each for max(length / bandwidth, 1 / reads a second of its
//! size), and answers `latency` after that. Figures made with it are a model's, and say so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};

/// A model of a drive: its bandwidth, operations a second and latency. Clones are one drive.
#[derive(Debug, Clone)]
pub struct ModelledDrive {
    bytes_per_second: f64,
    /// By the least bytes for which it holds.
    reads_per_second: Arc<BTreeMap<usize, f64>>,
    latency: Duration,
    idle_from: Arc<Mutex<Instant>>,
}

impl ModelledDrive {
    /// A drive of these figures; `f64::INFINITY` bytes or reads a second set no limit.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a drive that does less than one byte or read a second.
    pub fn new(bytes_per_second: f64, reads_per_second: f64, latency: Duration) -> Result<Self> {
        Self::by_size(bytes_per_second, BTreeMap::from([(0, reads_per_second)]), latency)
    }

    /// A drive whose reads a second depend on their bytes: each figure holds from so many on, and the first
    /// one below, too.
    ///
    /// # Errors
    /// As [`new`](Self::new); no figure of reads a second.
    pub fn by_size(
        bytes_per_second: f64,
        reads_per_second: BTreeMap<usize, f64>,
        latency: Duration,
    ) -> Result<Self> {
        let least = reads_per_second.values().copied().fold(f64::NAN, f64::min);
        if !(bytes_per_second >= 1.0 && least >= 1.0) {
            return Err(Error::new(ErrorKind::Input, "model a drive")
                .expected("at least `1` byte and `1` read a second")
                .got(format!("`{bytes_per_second}` bytes, `{least}` reads")));
        }
        let reads_per_second = Arc::new(reads_per_second);
        let idle_from = Arc::new(Mutex::new(Instant::now()));
        Ok(Self { bytes_per_second, reads_per_second, latency, idle_from })
    }

    /// A further drive of the same figures, which serves reads of its own.
    pub fn another(&self) -> Self {
        Self { idle_from: Arc::new(Mutex::new(Instant::now())), ..self.clone() }
    }

    /// When a read of `bytes` that is asked for at `now` is answered.
    pub fn answer_at(&self, bytes: usize, now: Instant) -> Instant {
        let rates = &self.reads_per_second;
        let of_size = rates.range(..=bytes).next_back().or_else(|| rates.first_key_value());
        let reads = of_size.map_or(f64::INFINITY, |(_, &reads)| reads);
        let service = (bytes as f64 / self.bytes_per_second).max(1.0 / reads);
        // A thread that panicked with the lock left a plain time behind.
        let mut idle_from = self.idle_from.lock().unwrap_or_else(PoisonError::into_inner);
        *idle_from = now.max(*idle_from) + Duration::from_secs_f64(service);
        *idle_from + self.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_serves_one_read_after_the_other_and_answers_after_its_latency() {
        let seconds = Duration::from_secs;
        let drive = ModelledDrive::new(4096.0, 0.5 + 0.5, seconds(7)).unwrap();
        let now = Instant::now() + seconds(100);
        let answers = |drive: &ModelledDrive, reads: &[(usize, u64)]| -> Vec<u64> {
            let answer = |&(bytes, at)| drive.answer_at(bytes, now + seconds(at)) - now;
            reads.iter().map(|read| answer(read).as_secs()).collect()
        };
        // By its bandwidth, by its reads a second, and after it was idle.
        assert_eq!(
            answers(&drive, &[(2 * 4096, 0), (4096, 0), (100, 1), (4 * 4096, 50)]),
            [9, 10, 11, 61]
        );
        assert_eq!(answers(&drive.clone(), &[(4096, 50)]), [62], "a clone is the same drive");
        assert_eq!(answers(&drive.another(), &[(4096, 50)]), [58], "and this is another");
    }
}
