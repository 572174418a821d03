//! Tells a trace how long each read was in flight.

use std::collections::VecDeque;
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_core::trace::{Trace, Track};

use crate::{Done, Memory, Read, ReadEngine, Wait};

/// An engine that records the reads of the engine that it wraps as spans of a trace.
#[derive(Debug)]
pub struct Traced<E> {
    inner: E,
    trace: Trace,
    worker: u32,
    /// Of each read in flight its tag, when it was taken, and its bytes.
    taken: Vec<(u64, Instant, usize)>,
}

impl<E: ReadEngine> Traced<E> {
    /// Wraps the idle engine of `worker`, whose reads in flight all have different tags.
    pub fn new(inner: E, trace: Trace, worker: u32) -> Self {
        Self { inner, trace, worker, taken: Vec::new() }
    }
}

impl<E: ReadEngine> ReadEngine for Traced<E> {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        let asked: Vec<_> = reads.iter().map(|read| (read.tag, read.len)).collect();
        self.inner.submit(reads);
        let (now, count) = (Instant::now(), asked.len() - reads.len());
        self.taken.extend(asked.into_iter().take(count).map(|(tag, len)| (tag, now, len)));
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let (before, polled) = (done.len(), Instant::now());
        let result = self.inner.poll(done, wait);
        let end = Instant::now();
        let track = match self.inner.writes_to() {
            Memory::Host => Track::Storage,
            Memory::Device => Track::Direct,
        };
        for read in &done[before..] {
            if let Some(at) = self.taken.iter().position(|&(tag, ..)| tag == read.tag) {
                let (_, taken, len) = self.taken.swap_remove(at);
                let begin = if self.inner.reads_when_polled() { polled } else { taken };
                self.trace.read(track, self.worker, begin..end, len as u64);
            }
        }
        result
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn writes_to(&self) -> Memory {
        self.inner.writes_to()
    }

    fn reads_when_polled(&self) -> bool {
        self.inner.reads_when_polled()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}
