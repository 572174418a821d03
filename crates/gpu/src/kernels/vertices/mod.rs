//! Kernels for the state of vertices: what algorithms do to it before, between and after passes.

mod forest;
mod levels;
mod ranks;
mod values;

pub use forest::ForestKernels;
pub use levels::{LevelKernel, Levels};
pub use ranks::{RankKernels, Ranks};
pub use values::{Columns, ValueKernels};

use super::Source;

const SUM_BLOCK: &str = include_str!("sum_block.cuh");

pub(super) fn sources() -> [Source; 4] {
    [forest::source(), levels::source(), ranks::source(), values::source()]
}
