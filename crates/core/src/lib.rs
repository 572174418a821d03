//! What every tiergraph crate speaks: errors, units, cancellation, progress, traces, loops on
//! threads.
#![forbid(unsafe_code)]

pub mod cancel;
pub mod error;
mod parallel;
pub mod progress;
pub mod trace;
pub mod units;

pub use cancel::Cancel;
pub use error::{Error, ErrorKind, Result};
pub use parallel::parallel;
pub use progress::{Progress, Silent};
pub use units::ByteSize;
