//! Values of edges: what is stored beside a graph's rows for sampling.
//!
//! | | given as | stored as |
//! |---|---|---|
//! | columns (weights, times) | a number an edge, with the edges | `edges/DIRECTION.NAME.f32` or `.i64`, in the order of arcs |
//! | the edges' numbers | the order of the edges | `edges/DIRECTION.edges`: arc to edge |
//! | times of vertices | a number a vertex | `edges/DIRECTION.NAME.i64`: each arc has its neighbour's; and labels |
//! | features | rows, one an edge | `edges/NAME.rows`, in the order of the edges |
//!
//! The edges are given once more, in an order that says what edge 0, 1, 2 … is: they go where the
//! graph has their arcs (module `arcs`), whose numbers rows files count. Nothing is held but buffers.

mod add;
mod arcs;
mod column;
mod lookup;
mod times;

pub use add::{Column, EdgeAddition, NewColumn};
pub use times::NodeTimes;
