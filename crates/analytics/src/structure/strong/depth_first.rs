//! One depth-first search over lists in memory, without recursion.

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, prefetch};

use crate::row_map::Lists;

/// A vertex whose list is being followed.
struct Step {
    vertex: u32,
    /// How many of its arcs were followed.
    followed: u32,
    /// When it was reached.
    index: u32,
}

/// Vertices whose component is known: greater than when any other was reached.
const FOUND: u32 = u32::MAX;

/// Labels the vertices that are `open` with one of their component. All that lists lead to are open.
///
/// # Errors
/// No memory; the run was cancelled.
pub(super) fn depth_first(
    graph: &Graph,
    lists: &Lists,
    labels: &mut [u32],
    is_open: impl Fn(u32) -> bool,
) -> Result<()> {
    const AHEAD: usize = 8;
    // For each vertex, the least index that it reaches on the path, or 0 before it is reached itself.
    let mut least = Array::<u32>::zeroed(labels.len())?;
    let (mut path, mut waiting) = (Vec::<Step>::new(), Vec::<u32>::new());
    let mut index = 0;
    for start in 0..labels.len() as u32 {
        if least[start as usize] != 0 || !is_open(start) {
            continue;
        }
        if start % (1 << 12) == 0 {
            graph.cancel().check("finish the search")?;
        }
        index += 1;
        least[start as usize] = index;
        path.push(Step { vertex: start, followed: 0, index });
        'path: while let Some(step) = path.last_mut() {
            let v = step.vertex as usize;
            let list = lists.of(step.vertex);
            while let Some(&to) = list.get(step.followed as usize) {
                if let Some(&later) = list.get(step.followed as usize + AHEAD) {
                    prefetch(&least, later as usize);
                }
                let other = least[to as usize];
                if other == 0 {
                    index += 1;
                    least[to as usize] = index;
                    // This arc is looked at again when what it leads to is done.
                    path.push(Step { vertex: to, followed: 0, index });
                    continue 'path;
                }
                least[v] = least[v].min(other);
                step.followed += 1;
            }
            let own = step.index;
            path.pop();
            if least[v] < own {
                waiting.push(v as u32);
                continue;
            }
            // All that wait and were reached after it are of its component.
            while let Some(w) = waiting.pop_if(|w| least[*w as usize] >= own) {
                (labels[w as usize], least[w as usize]) = (v as u32, FOUND);
            }
            (labels[v], least[v]) = (v as u32, FOUND);
        }
    }
    Ok(())
}
