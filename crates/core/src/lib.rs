//! What every tiergraph crate speaks: errors, units, cancellation, progress, traces.
#![forbid(unsafe_code)]

pub mod cancel;
pub mod error;
pub mod panics;
pub mod progress;
pub mod threads;
pub mod trace;
pub mod units;

pub use cancel::Cancel;
pub use error::{Error, ErrorKind, Result};
pub use progress::{Progress, Silent};
pub use units::ByteSize;
