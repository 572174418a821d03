//! Times of vertices: stored as labels, and handed to the arcs that lead to them.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::edges::node_times_mark;
use tiergraph_format::features::{ArrayRole, Growing, NewFiles};
use tiergraph_format::flat::FlatWriter;
use tiergraph_mem::{Budget, Reservation};

use super::lookup::Lookup;
use crate::npy::header_of;

/// Times of vertices: stored as labels, and for each arc as the time of its neighbour, its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTimes {
    /// The name of the times.
    pub name: String,
    /// A time for each vertex, in the user's order.
    pub times: Vec<i64>,
}

/// Times of vertices in the graph's order, with their names.
pub(super) type ByVertex = Vec<(String, Vec<i64>)>;

/// Writes the times as labels; returns them in the graph's order, for the arcs. 8 bytes a vertex each.
pub(super) fn write_node_times(
    to: &mut dyn Growing,
    all: Vec<NodeTimes>,
    lookup: &Lookup,
    budget: &Budget,
) -> Result<(ByVertex, NewFiles, Reservation)> {
    let vertices = to.dir().manifest().vertices;
    let held = budget.reserve(8 * vertices * all.len() as u64, "the times of the vertices")?;
    let (mut by_vertex, mut new) = (Vec::new(), NewFiles::default());
    for NodeTimes { name, times } in all {
        if times.len() as u64 != vertices {
            return Err(Error::new(ErrorKind::Input, "store the times of vertices")
                .object(name)
                .expected(format!("a time for each of {vertices} vertices"))
                .got(times.len()));
        }
        let file = ArrayRole::Labels.file(&name);
        let mut writer = FlatWriter::create(&to.flat(&file)?)?;
        writer.extend(&header_of("<i8", &[vertices]))?;
        writer.extend(&times)?;
        new.files.insert(file, writer.finish()?);
        new.sources.insert(node_times_mark(&name), "vertices".into());
        by_vertex.push((name, lookup.by_vertex(times)));
    }
    Ok((by_vertex, new, held))
}
