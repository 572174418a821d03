//! Strongly connected components.
//!
//! Where all lists of out-neighbours fit the memory, one depth-first search over them finds every component
//! ([`depth_first`]; Pearce, IPL 116, 2016). Where they do not, passes over tiles take components off until
//! the arcs that are left fit: all vertices that a vertex of many arcs reaches, and that reach it, are one
//! (Fleischer, Hendrickson and Pınar, IPDPS 2000), and a vertex without arcs in or out within its part is one
//! by itself (McLendon et al., JPDC 65, 2005). Directed graphs of the real world have one component that is
//! most of the graph, so that a round is enough for most. 45 bytes a vertex, or 20 and the lists; an undirected graph's components are those of
//! [`wcc`](crate::wcc()).

mod depth_first;
mod reach;

use tiergraph_core::{Progress, Result};
use tiergraph_graph::{Direction, Graph};
use tiergraph_mem::{Array, MemoryPlan, vec_from_fn};

use crate::components::wcc;
use crate::labels::canonical_labels;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};
use depth_first::depth_first;
use reach::Parts;

/// Labels every vertex, in the user's order, with the first position in its strongly connected component.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn scc(graph: &Graph, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    if !graph.manifest().directed {
        let (labels, report) = wcc(graph, progress)?;
        return Ok((labels, RunReport { algorithm: "scc", ..report }));
    }
    let n = graph.vertices();
    let rows_memory = RowMap::memory(graph, Side::Out)?;
    let has_arcs = graph.tiles().is_stored() || graph.raw(Direction::In).is_stored();
    let parts = if has_arcs { reach::bytes(n) } else { rows_memory.bytes() };
    // What the search takes is free again when its result is put in the user's order.
    let search = (n as u64 * 20 + parts).max(graph.ids().of_positions_bytes());
    let plan = MemoryPlan::default().and("the search for components", search);
    let _state = graph.memory().reserve_all(&plan)?;
    let mut labels = Array::from_fn(graph.thread_pool(), n, |v| v as u32)?;
    let mut run;
    if !has_arcs || RowMap::fits(graph, Side::Out)? {
        let degrees = ListDegrees::read(graph, Side::Out)?;
        let mut rows = RowMap::new(graph, &degrees)?;
        run = Run::start(graph, "scc", 0, progress).with_passes_of(rows.round_bytes());
        let Some(lists) = rows.whole()? else {
            return Err(graph.missing_layout("find the components, outside memory, of", "tiles"));
        };
        run.iteration("lists", 0.0);
        depth_first(graph, lists, &mut labels, |_| true)?;
        run.iteration("search", 0.0);
    } else {
        let mut parts = Parts::new(graph)?;
        graph.memory().plan_residency();
        run = Run::start(graph, "scc", 0, progress);
        parts.find(&mut run, &mut labels)?;
    }
    let report = run.finish(true)?;
    // The first vertex of a component stands for it.
    let mut first = Array::from_fn(graph.thread_pool(), n, |_| u32::MAX)?;
    for v in 0..n {
        let first = &mut first[labels[v] as usize];
        *first = (*first).min(v as u32);
    }
    let labels = vec_from_fn(graph.thread_pool(), n, |v| first[labels[v] as usize])?;
    Ok((canonical_labels(graph, |v| labels[v])?, report))
}
