//! The choice of the order in which vertices are stored.

use tiergraph_core::Result;
use tiergraph_format::manifest::Order;
use tiergraph_mem::Budget;

use super::sample::Sample;
use crate::build::array::Array;
use crate::build::options::OrderChoice;

/// Degrees from here on are sorted by comparison: at most one vertex in so many arcs has one.
const LARGE_DEGREE: u64 = 1 << 16;
/// The user's order is kept when its gaps are smaller than this share of the degree order's.
const KEEP_BELOW: f64 = 0.9;

/// An order of vertices, and why it was chosen.
pub(crate) struct Ordering {
    /// The place of each vertex of the user's order; `None` where both orders are the same.
    pub(crate) ranks: Option<Array<u32>>,
    pub(crate) order: Order,
    pub(crate) why: String,
}

/// Chooses the order of vertices by `choice`, which may ask to compare orders on the `sample`.
pub(crate) fn decide(
    choice: OrderChoice,
    vertices: usize,
    degree: impl Fn(usize) -> u64,
    sample: Sample,
    budget: &Budget,
) -> Result<Ordering> {
    let keep = |why: String| Ok(Ordering { ranks: None, order: Order::None, why });
    if choice == OrderChoice::None {
        return keep("asked for".into());
    }
    let ranks = by_degree(vertices, degree, budget)?;
    let by_degree = |ranks, why| Ok(Ordering { ranks: Some(ranks), order: Order::Degree, why });
    if choice == OrderChoice::Degree {
        return by_degree(ranks, "asked for".into());
    }
    let Some((user, degree)) = sample.compare(&ranks) else {
        return keep("no sampled vertex has two neighbours".into());
    };
    let why = format!(
        "neighbours of sampled vertices are 2^{user:.2} apart in the user's order and \
         2^{degree:.2} in the order of degrees"
    );
    if user < KEEP_BELOW * degree { keep(why) } else { by_degree(ranks, why) }
}

/// The places of vertices by descending degree, ties in the user's order: a counting sort.
fn by_degree(
    vertices: usize,
    degree: impl Fn(usize) -> u64,
    budget: &Budget,
) -> Result<Array<u32>> {
    let mut ranks = Array::zeroed(vertices, budget, "the order of vertices")?;
    let mut large: Vec<(u64, u32)> = Vec::new();
    let mut starts = vec![0u32; LARGE_DEGREE as usize];
    for vertex in 0..vertices {
        match degree(vertex) {
            d if d >= LARGE_DEGREE => large.push((u64::MAX - d, vertex as u32)),
            d => starts[d as usize] += 1,
        }
    }
    large.sort_unstable();
    for (rank, (_, vertex)) in large.iter().enumerate() {
        ranks[*vertex as usize] = rank as u32;
    }
    let mut next = large.len() as u32;
    for start in starts.iter_mut().rev() {
        (*start, next) = (next, next + *start);
    }
    for vertex in 0..vertices {
        let d = degree(vertex);
        if d < LARGE_DEGREE {
            let rank = &mut starts[d as usize];
            ranks[vertex] = *rank;
            *rank += 1;
        }
    }
    Ok(ranks)
}

/// The user's vertex at each place: the inverse of `ranks`.
pub(crate) fn inverse(ranks: &Array<u32>, budget: &Budget) -> Result<Array<u32>> {
    let mut order = Array::zeroed(ranks.len(), budget, "the order of vertices")?;
    for (vertex, &rank) in ranks.iter().enumerate() {
        order[rank as usize] = vertex as u32;
    }
    Ok(order)
}

/// Permutes `values` of the user's vertices to the order that `ranks` gives.
pub(crate) fn permuted(
    values: Array<u32>,
    vertices: usize,
    ranks: Option<&Array<u32>>,
    budget: &Budget,
) -> Result<Array<u32>> {
    let Some(ranks) = ranks else {
        return if values.len() == vertices {
            Ok(values)
        } else {
            shortened(values, vertices, budget)
        };
    };
    let mut new = Array::zeroed(vertices, budget, "the degrees")?;
    for (&rank, &value) in ranks.iter().zip(values.iter()) {
        new[rank as usize] = value;
    }
    Ok(new)
}

fn shortened(values: Array<u32>, vertices: usize, budget: &Budget) -> Result<Array<u32>> {
    let mut new = Array::zeroed(vertices, budget, "the degrees")?;
    new.copy_from_slice(&values[..vertices]);
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_descend_and_ties_keep_the_users_order() {
        let degrees = [3u64, 0, 70_000, 3, 1 << 33, 1, 70_000, 3, 65_535];
        let budget = Budget::new(1 << 20);
        let ranks = by_degree(degrees.len(), |v| degrees[v], &budget).unwrap();
        let order = inverse(&ranks, &budget).unwrap();
        assert_eq!(order[..], [4, 2, 6, 8, 0, 3, 7, 5, 1]);
    }

    #[test]
    fn an_order_with_locality_is_kept_and_a_random_one_is_not() {
        let budget = Budget::new(1 << 24);
        let n = 1 << 12;
        for local in [true, false] {
            let mut sample = Sample::new(1 << 12);
            let (mut src, mut dst, mut degrees) = (Vec::new(), Vec::new(), vec![0u64; n]);
            for vertex in 0..n as u32 {
                for i in 1..=2 + (vertex.wrapping_mul(0x9E37_79B1) >> 29) {
                    let far = vertex.wrapping_add(i).wrapping_mul(0x9E37_79B1) >> 20;
                    // Far ends gather at few vertices.
                    let end = if local { vertex + i } else { (far * far) >> 12 } % n as u32;
                    src.push(vertex);
                    dst.push(end);
                    degrees[vertex as usize] += 1;
                    degrees[end as usize] += 1;
                }
            }
            sample.extend(&src, &dst);
            let degree = |v: usize| degrees[v];
            let ordering = decide(OrderChoice::Auto, n, degree, sample, &budget).unwrap();
            let expected = if local { Order::None } else { Order::Degree };
            assert_eq!(ordering.order, expected, "{}", ordering.why);
        }
    }
}
