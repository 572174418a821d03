//! Cancellation: a flag that the caller sets (Ctrl-C) and every long loop looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, ErrorKind, Result};

/// A flag shared between whoever may stop a run and the loops that run it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks every loop that holds this flag to stop at its next block.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An [`ErrorKind::Interrupted`] error once somebody asked to stop.
    pub fn check(&self, op: &str) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Interrupted, op).got("interrupted"));
        }
        Ok(())
    }
}
