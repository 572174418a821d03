//! What all tiergraph crates use: errors, units, cancellation, progress, traces, metrics, checksums, threads.
#![forbid(unsafe_code)]

pub mod cancel;
pub mod crc32c;
mod draws;
pub mod error;
pub mod metrics;
pub mod panics;
pub mod progress;
mod thread_pool;
pub mod threads;
pub mod trace;
pub mod units;

pub use cancel::Cancel;
pub use draws::{Draws, finalize, mix, unit};
pub use error::{Error, ErrorKind, Result};
pub use progress::{Progress, Silent};
pub use thread_pool::ThreadPool;
pub use units::ByteSize;
