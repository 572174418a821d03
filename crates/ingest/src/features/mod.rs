//! Features, labels and splits: what is stored with a graph's vertices.
//!
//! | | from | stored as |
//! |---|---|---|
//! | features | a [`RowSource`]: `.npy`, batches of a caller, a generator | `features/NAME.rows`, in the graph's order of vertices |
//! | labels, splits | the bytes of a `.npy` file | the same file, in the user's order |
//!
//! Rows come in the user's order: row i belongs to the vertex with the i-th smallest id. Nothing is
//! held but a batch of rows, and what moves them to the graph's order within the memory budget
//! (module `scatter`). [`Attachments`] go into a graph with the build that makes it; [`add`] puts them
//! into one that is there, [`relay`] moves rows that a graph has, and [`checksum`] writes checksums of
//! rows for graphs that have none.

mod arrays;
mod attach;
mod checksum;
mod classes;
mod npy;
mod place;
mod relay;
mod rows;
mod scatter;
mod store;
mod stored;
mod target;

pub use crate::npy::header_of;
pub use arrays::NewArray;
pub(crate) use attach::order_of;
pub use attach::{Attachment, Attachments, add};
pub use checksum::checksum;
pub use classes::{ClassModel, Classes, SEPARATION};
pub use npy::NpyRows;
pub(crate) use place::{OrderFile, Places};
pub use relay::{RowOrder, relay};
pub use rows::{MemoryRows, RowSource, Shape};
pub(crate) use scatter::Scatter;
pub use store::{NewFeatures, NotFinite};
pub(crate) use target::Target;
