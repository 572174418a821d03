//! What a software controller does wrong on purpose, the same for the same seed.

use std::time::{Duration, Instant};

use tiergraph_core::Draws;

use crate::completion::Status;

/// Which faults happen, how often. None do by default.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// The seed; every queue draws from a sequence of its own.
    pub seed: u64,
    /// The share of commands that are never completed.
    pub dropped: f64,
    /// The share of commands that are completed twice.
    pub repeated: f64,
    /// The share of commands that fail with `status`, and move nothing.
    pub failed: f64,
    /// The status of commands that fail.
    pub status: Status,
    /// The share of commands that are completed late.
    pub late: f64,
    /// The longest that a late completion is held back.
    pub delay: Duration,
    /// Whether completions that are ready at a time are shuffled.
    pub shuffled: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            seed: 0,
            dropped: 0.0,
            repeated: 0.0,
            failed: 0.0,
            status: Status::UNRECOVERED_READ_ERROR,
            late: 0.0,
            delay: Duration::ZERO,
            shuffled: false,
        }
    }
}

/// What becomes of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fate {
    /// The status that it fails with, before it is done.
    pub failed: Option<Status>,
    /// How often it is completed.
    pub completions: usize,
    /// When it is completed.
    pub due: Option<Instant>,
}

/// The faults of one queue.
#[derive(Debug)]
pub(super) struct FaultDraws {
    faults: Faults,
    draws: Draws,
    any: bool,
}

impl FaultDraws {
    pub fn new(faults: Faults, queue: u16) -> Self {
        // A host has no use without its admin queue.
        let shares = faults.dropped + faults.repeated + faults.failed + faults.late;
        let any = queue != 0 && shares > 0.0;
        let seed = tiergraph_core::mix(faults.seed ^ u64::from(queue));
        Self { faults, draws: Draws::new(seed), any }
    }

    /// What becomes of the next command.
    pub fn next(&mut self) -> Fate {
        let (mut fate, faults) = (Fate { failed: None, completions: 1, due: None }, &self.faults);
        if !self.any {
            return fate;
        }
        if self.draws.happens(faults.failed) {
            fate.failed = Some(faults.status);
        }
        if self.draws.happens(faults.late) {
            let most = faults.delay.as_nanos() as u64;
            fate.due = Some(Instant::now() + Duration::from_nanos(self.draws.below(most.max(1))));
        }
        if self.draws.happens(faults.dropped) {
            fate.completions = 0;
        } else if self.draws.happens(faults.repeated) {
            fate.completions = 2;
        }
        fate
    }

    /// Shuffles what is ready at a time, if told so.
    pub fn shuffle<T>(&mut self, ready: &mut [T]) {
        if self.faults.shuffled {
            for last in (1..ready.len()).rev() {
                ready.swap(last, self.draws.below(last as u64 + 1) as usize);
            }
        }
    }
}
