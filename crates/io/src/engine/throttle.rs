//! Imitates a drive: completions are held back until a drive of the given bandwidth, operations a
//! second and latency would have had them.
//!
//! The drive serves one read after the other, each for max(length / bandwidth, 1 / iops), and
//! answers `latency` after that; the clones of a [`ModelledDrive`] are one drive. It only ever
//! slows down what is below. Figures made with it are a model's: the engine is named `modelled`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};

use crate::slots::{Slots, submit_numbered};
use crate::{Done, Memory, Read, ReadEngine, Wait};

/// A model of a drive: its bandwidth, operations a second and latency. Clones are one drive.
#[derive(Debug, Clone)]
pub struct ModelledDrive {
    bytes_per_second: f64,
    reads_per_second: f64,
    latency: Duration,
    idle_from: Arc<Mutex<Instant>>,
}

impl ModelledDrive {
    /// A drive of these figures; `f64::INFINITY` bytes or reads a second set no limit.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a drive that does less than one byte or read a second.
    pub fn new(bytes_per_second: f64, reads_per_second: f64, latency: Duration) -> Result<Self> {
        if !(bytes_per_second >= 1.0 && reads_per_second >= 1.0) {
            return Err(Error::new(ErrorKind::Input, "model a drive")
                .expected("at least `1` byte and `1` read a second")
                .got(format!("`{bytes_per_second}` bytes, `{reads_per_second}` reads")));
        }
        let idle_from = Arc::new(Mutex::new(Instant::now()));
        Ok(Self { bytes_per_second, reads_per_second, latency, idle_from })
    }

    /// When a read of `bytes` that is asked for at `now` is answered.
    fn answer_at(&self, bytes: usize, now: Instant) -> Instant {
        let service = (bytes as f64 / self.bytes_per_second).max(1.0 / self.reads_per_second);
        // A thread that panicked with the lock left a plain time behind.
        let mut idle_from = self.idle_from.lock().unwrap_or_else(PoisonError::into_inner);
        *idle_from = now.max(*idle_from) + Duration::from_secs_f64(service);
        *idle_from + self.latency
    }
}

/// An engine that holds back completions of the one that it wraps to a modelled drive's speed.
#[derive(Debug)]
pub struct Throttle<E> {
    inner: E,
    drive: ModelledDrive,
    slots: Slots<(u64, Instant)>,
    held: Vec<(Instant, Done)>,
}

impl<E: ReadEngine> Throttle<E> {
    /// Wraps an idle engine.
    pub fn new(inner: E, drive: ModelledDrive) -> Self {
        let slots = Slots::new(inner.capacity());
        Self { inner, drive, slots, held: Vec::new() }
    }

    /// Brings completions up from below.
    fn collect(&mut self, wait: Wait) -> Result<()> {
        let mut completions = Vec::new();
        let polled = self.inner.poll(&mut completions, wait);
        for below in completions {
            if let Some((tag, due)) = self.slots.remove(below.tag) {
                self.held.push((due, Done { tag, ..below }));
            }
        }
        polled
    }

    fn release(&mut self, done: &mut Vec<Done>) {
        let now = Instant::now();
        let due = self.held.extract_if(.., |(due, _)| *due <= now);
        done.extend(due.map(|(_, completion)| completion));
    }
}

impl<E: ReadEngine> ReadEngine for Throttle<E> {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        let room = self.capacity() - self.in_flight();
        let drive = &self.drive;
        let entry = |read: &Read| (read.tag, drive.answer_at(read.len, Instant::now()));
        submit_numbered(&mut self.inner, &mut self.slots, reads, room, entry);
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let before = done.len();
        loop {
            let idle = wait != Wait::No && self.held.is_empty();
            self.collect(if idle { Wait::One } else { Wait::No })?;
            self.release(done);
            if wait.is_over(done.len() > before, self.in_flight()) {
                return Ok(());
            }
            if let Some(due) = self.held.iter().map(|(due, _)| *due).min() {
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.used() + self.held.len()
    }

    fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    fn writes_to(&self) -> Memory {
        self.inner.writes_to()
    }

    fn name(&self) -> &'static str {
        "modelled"
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
    }
}
