//! Progress of one stage, told a few times a second at most.

use std::time::{Duration, Instant};

use tiergraph_core::Progress;

const PERIOD: Duration = Duration::from_millis(200);

/// A counter of what a stage has done, which reports it now and then.
pub(crate) struct Ticker<'p> {
    progress: &'p dyn Progress,
    stage: &'static str,
    unit: &'static str,
    done: u64,
    total: u64,
    told: Instant,
}

impl<'p> Ticker<'p> {
    pub(crate) fn new(
        progress: &'p dyn Progress,
        stage: &'static str,
        unit: &'static str,
        total: u64,
    ) -> Self {
        progress.update(stage, 0, total, unit);
        Self { progress, stage, unit, done: 0, total, told: Instant::now() }
    }

    pub(crate) fn add(&mut self, done: u64) {
        self.done += done;
        if self.told.elapsed() >= PERIOD {
            self.told = Instant::now();
            self.progress.update(self.stage, self.done, self.total, self.unit);
        }
    }
}

impl Drop for Ticker<'_> {
    fn drop(&mut self) {
        self.progress.update(self.stage, self.done, self.total, self.unit);
    }
}
