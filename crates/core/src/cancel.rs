//! Cancellation: a flag that the caller sets (Ctrl-C) and every long loop looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, ErrorKind, Result};

/// A flag that asks a run to stop: one thread sets it, the run's loops check it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Sets the flag: every loop that checks it stops at its next block.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails with [`ErrorKind::Interrupted`] if the flag is set; `op` names the operation in the error.
    pub fn check(&self, op: &str) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Interrupted, op).got("interrupted"));
        }
        Ok(())
    }
}
