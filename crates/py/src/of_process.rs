//! Values that belong to the process that made them.
//!
//! A forked child has its parent's memory and files, but none of its threads: a value that it used, or
//! dropped, would wait for threads that do not exist.

use tiergraph_core::{Error, ErrorKind, Result};

/// A value that is used and dropped by the process that made it, and left alone by forked children.
pub(crate) struct OfProcess<T> {
    /// `None` only while it is dropped.
    value: Option<T>,
    process: u32,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    /// The value; an error in a forked child of the process that made it.
    pub(crate) fn here(&self) -> Result<&T> {
        match &self.value {
            Some(value) if self.process == std::process::id() => Ok(value),
            _ => Err(Error::new(ErrorKind::Input, "use what a parent process opened")
                .expected(format!("process {}", self.process))
                .got(std::process::id())
                .hint("open it again in this process")),
        }
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
