//! Sums over tiles against the same sums in `f64`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod graph;

use graph::{Graph, arcs, graphs, mix, options, small_graphs};
use proptest::prelude::*;
use tiergraph_format::manifest::Weights;
use tiergraph_format::tiles::*;
use tiergraph_kernels::{Isa, Kernel, Slice, SymmetricState, SymmetricStrip};

/// Vertices of the graphs, and as many again so that every tile and strip has all its state.
const SIZE: usize = (1 << 18) + STRIP_ROWS;

/// Positive values, whose sums have no cancellation.
fn x() -> Vec<f32> {
    (0..SIZE as u64).map(|v| 0.5 + (mix(v) >> 40) as f32 / (1 << 24) as f32).collect()
}

/// Compares `y` with sums in `f64`, whose rounding is negligible beside that of `f32`.
fn compare(y: &[f64], expected: &[f64], arcs: usize, what: &str) {
    // A running `f32` sum of n values is off by at most n half-ulps of the result; one of a row has
    // at most 64 before it goes on in `f64`. A loop is added
    // and taken back.
    let tolerance = 6e-8 * (2.0 * arcs as f64 + 4.0).min(132.0);
    for (v, (&y, &expected)) in y.iter().zip(expected).enumerate() {
        let off = (y - expected).abs();
        assert!(off <= expected * tolerance, "{what}, vertex {v}: {y}, expected {expected}");
    }
}

fn check_rows(graph: &Graph) {
    let x = x();
    let mut expected = vec![0f64; SIZE];
    for arc in &graph.arcs {
        expected[arc.0 as usize] += f64::from(x[arc.1 as usize]);
    }
    let mut of_first = None;
    for isa in Isa::available() {
        let kernel = Kernel::new(graph.options, isa);
        let mut y = vec![0f64; SIZE];
        for segment in graph.segments() {
            let x = &x[segment.column_base as usize..][..graph.options.columns()];
            let y = &mut y[segment.row_base as usize..][..STRIP_ROWS];
            kernel.sum_rows(&segment, x, y).unwrap();
        }
        compare(&y, &expected, graph.arcs.len(), &format!("rows, {isa}"));
        assert_eq!(
            sums_in_order(graph, &kernel, &x),
            y,
            "sums in the order of slices, added to rows, {isa}"
        );
        assert_eq!(of_first.get_or_insert_with(|| y.clone()), &y, "the same sums, {isa}");
    }
}

/// The sums of rows, made from those of each segment's slices in their order.
fn sums_in_order(graph: &Graph, kernel: &Kernel, x: &[f32]) -> Vec<f64> {
    let mut y = vec![0f64; SIZE];
    for segment in graph.segments() {
        let x = &x[segment.column_base as usize..][..graph.options.columns()];
        let mut rows = Vec::new();
        let of_slice = |s: &Slice<'_>| rows.extend_from_slice(&s.rows[..usize::from(s.active[0])]);
        kernel.for_each(&segment, of_slice).unwrap();
        let mut sums = vec![0.0; rows.len()];
        kernel.sum_slice_rows(&segment, x, &mut sums).unwrap();
        for (row, sum) in rows.iter().zip(&sums) {
            y[segment.row_base as usize + *row as usize] += f64::from(*sum);
        }
        sums.push(0.0);
        assert!(kernel.sum_slice_rows(&segment, x, &mut sums).is_err(), "a row too many");
    }
    y
}

/// `graph` stores edges once: rows are not below columns.
fn check_both(graph: &Graph) {
    let x = x();
    let mut expected = vec![0f64; SIZE];
    for &(row, column, _) in &graph.arcs {
        let (row, column) = (row as usize, column as usize);
        expected[row] += f64::from(x[column]);
        if row != column {
            expected[column] += f64::from(x[row]);
        }
    }
    for isa in Isa::available() {
        let kernel = Kernel::new(graph.options, isa);
        let mut y = vec![0f64; SIZE];
        let mut segments: Vec<_> = graph.segments().collect();
        segments.sort_by_key(|segment| segment.column_base);
        for together in segments.chunk_by(|a, b| a.column_base == b.column_base) {
            let column = together[0].column_base as usize;
            let columns = column..column + graph.options.columns();
            let mut firsts: Vec<_> = together.iter().map(|s| s.row_base as usize).collect();
            firsts.sort_unstable();
            firsts.dedup();
            let mut strips = SymmetricStrip::batch(firsts.len()).unwrap();
            for (&first, strip) in firsts.iter().zip(&mut strips) {
                strip.begin(&x[first..first + STRIP_ROWS]);
            }
            let state = SymmetricState {
                x_columns: &x[columns.clone()],
                y_columns: &mut y[columns],
                strips: &mut strips,
            };
            let strip = |s: &Segment<'_>| firsts.binary_search(&(s.row_base as usize)).unwrap();
            kernel.sum_both(together.iter().map(|s| (s, strip(s))), state).unwrap();
            for (&first, strip) in firsts.iter().zip(&strips) {
                y[first..].iter_mut().zip(strip.sums(STRIP_ROWS)).for_each(|(y, sum)| *y += sum);
            }
        }
        compare(&y, &expected, graph.arcs.len(), &format!("both, {isa}"));
    }
}

/// The arcs as edges that are stored once.
fn once(options: TileOptions, rows: u32, arcs: Vec<graph::Arc>) -> Graph {
    let once = |(a, b, w): graph::Arc| (a.max(b), a.min(b), w);
    Graph::new(options, rows, arcs.into_iter().map(once).collect())
}

#[test]
fn small_graphs_sum() {
    let plain = |g: &Graph| g.options.weights == Weights::None;
    for graph in small_graphs().into_iter().filter(plain) {
        check_rows(&graph);
        check_both(&once(graph.options, 1024, graph.arcs));
    }
}

/// A row's arcs are so many that float32 would round each lane's sum away in part, whatever the lanes' length.
#[test]
fn parallel_arcs_sum() {
    for weights in [Weights::None, Weights::F32, Weights::F64] {
        for block_bytes in [4096, 1 << 14, 1 << 20] {
            let options = TileOptions { columns_log2: 10, min_gap: 0, weights, block_bytes };
            let arcs = (0..100_000u64).map(|i| (3, i % 3, 1.0)).collect();
            check_both(&once(options, 64, arcs));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rows_sum(graph in graphs()) {
        check_rows(&graph);
    }

    /// Narrow ids, so that many tiles meet the diagonal and many edges are loops.
    #[test]
    fn both_directions_sum(
        options in options(),
        units in 1..=2048u32,
        arcs in (1..=17u32).prop_flat_map(arcs),
        loops in prop::collection::vec(0..1u64 << 17, 0..40),
    ) {
        let loops = loops.into_iter().map(|v| (v, v, 1.0));
        check_both(&once(options, units * 32, arcs.into_iter().chain(loops).collect()));
    }
}

#[test]
#[should_panic(expected = "range end index 65536 out of range")]
fn short_state_is_refused() {
    let graph = &small_graphs()[1];
    let segment = graph.segments().next().unwrap();
    let x = vec![0.0; graph.options.columns()];
    let kernel = Kernel::new(graph.options, Isa::Portable);
    let _ = kernel.sum_rows(&segment, &x, &mut vec![0.0; STRIP_ROWS - 1]);
}
