//! Progress of long jobs, and the trait of its receivers.

/// A receiver of a long job's progress. Worker threads call it, a few times a second at most.
pub trait Progress: Send + Sync {
    /// `done` of `total` units (`unit`: `edges`, `bytes`, `iterations`) of `stage` are finished;
    /// a `total` of 0 means that it is not known.
    fn update(&self, stage: &str, done: u64, total: u64, unit: &str);
}

/// A receiver that shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _stage: &str, _done: u64, _total: u64, _unit: &str) {}
}
