//! Which hardware a training job needs: Hyperion's model of throughput per cost (ICDE 2025, §III-C, §VI).
//!
//! A [`Job`] says what a batch takes: bytes from drives and from the host's memory, seconds of training, and
//! how many rows it would miss with more or less memory, as a few batches show. [`plan`] predicts the time of a
//! batch for each kind and number of drives and size of memory, the largest of what drives, the link and the
//! GPU take (equation 4), divides by the cost of five years (equation 5), and says which gives most for a
//! dollar, what limits it, and what a drive or some memory more would bring.
//! [`Run`] is the same of an algorithm whose iterations go over the whole graph.

#![forbid(unsafe_code)]

mod estimate;
mod job;
mod measured;
mod parts;
mod passes;
mod search;

pub use estimate::{Bottleneck, Estimate};
pub use job::Job;
pub use measured::Measured;
pub use parts::{Gpu, Machine, Parts};
pub use passes::{PassEstimate, Run};
pub use search::{MoreMemory, Plan, Question, plan};
