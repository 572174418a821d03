//! Paths through a graph: how many lead through a vertex, how far others are, and where random ones go.

mod betweenness;
mod closeness;
mod walks;

pub(crate) use betweenness::OfSources;
pub use betweenness::betweenness;
pub use closeness::{Closeness, harmonic};
pub(crate) use closeness::{Estimate, check_registers, first_counters, options};
pub use walks::{Walks, walks};
