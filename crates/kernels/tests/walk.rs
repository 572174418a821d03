//! Every instruction set decodes exactly what the reference decoder does, and survives damage.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod graph;

use graph::{Graph, graphs, options, small_graphs};
use proptest::prelude::*;
use tiergraph_format::manifest::Weights;
use tiergraph_format::tiles::*;
use tiergraph_kernels::{Isa, Kernel, SymmetricState, SymmetricStrip};

/// Rows, columns and weights of a step.
type Step = (Vec<u32>, Vec<u32>, Vec<f64>);

fn reference(segment: &Segment<'_>, options: &TileOptions) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for_each_step(segment, options, |s| {
        steps.push((s.rows.to_vec(), s.columns.to_vec(), s.weights.to_vec()));
    })?;
    Some(steps)
}

fn decoded(segment: &Segment<'_>, kernel: &Kernel) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let size = kernel.options().weights.bytes();
    let columns_end = kernel.options().columns() as u32;
    kernel
        .for_each(segment, |slice| {
            assert_eq!(slice.columns.len(), slice.active.len());
            assert!(slice.rows.iter().all(|&r| r < STRIP_ROWS as u32));
            assert!(slice.columns.iter().flatten().all(|&c| c < columns_end));
            assert!(slice.active.is_sorted_by(|a, b| a >= b));
            let mut weights = slice.weights;
            for (columns, &active) in slice.columns.iter().zip(slice.active) {
                let active = usize::from(active);
                let (these, rest) = weights.split_at(active * size);
                weights = rest;
                let these = values(these, kernel.options().weights);
                steps.push((slice.rows[..active].to_vec(), columns[..active].to_vec(), these));
            }
            assert!(weights.is_empty());
        })
        .ok()?;
    Some(steps)
}

fn values(bytes: &[u8], weights: Weights) -> Vec<f64> {
    match weights {
        Weights::None => Vec::new(),
        Weights::F32 => {
            let words = bytes.as_chunks().0.iter();
            words.map(|w| f64::from(f32::from_le_bytes(*w))).collect()
        }
        Weights::F64 => bytes.as_chunks().0.iter().map(|w| f64::from_le_bytes(*w)).collect(),
    }
}

/// Equal also where damaged weights are not numbers.
fn same(a: &Option<Vec<Step>>, b: &Option<Vec<Step>>) -> bool {
    let bits = |s: &[f64]| s.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
    match (a, b) {
        (Some(a), Some(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.0 == b.0 && a.1 == b.1 && bits(&a.2) == bits(&b.2))
        }
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn check(graph: &Graph) {
    for segment in graph.segments() {
        let expected = reference(&segment, &graph.options);
        assert!(expected.is_some());
        for isa in Isa::available() {
            let got = decoded(&segment, &Kernel::new(graph.options, isa));
            assert!(same(&got, &expected), "{isa}, tile at {}", segment.column_base);
        }
    }
}

/// Decodes damaged bytes in every way; all must agree whether they add up, and on what they say.
fn survive(segment: &Segment<'_>, options: TileOptions) {
    // An allocation that ends with the slack: a read behind it would be outside.
    let bytes: Box<[u8]> = segment.bytes[..segment.len + SLACK].into();
    let segment = Segment { bytes: &bytes, ..*segment };
    let expected = reference(&segment, &options);
    let (x, mut y) = (vec![1f32; STRIP_ROWS], vec![0f64; STRIP_ROWS]);
    let mut strips = SymmetricStrip::batch(1).unwrap();
    let mut y_columns = vec![0f64; options.columns()];
    for isa in Isa::available() {
        let kernel = Kernel::new(options, isa);
        assert!(same(&decoded(&segment, &kernel), &expected), "{isa} {options:?}");
        let x_columns = &x[..options.columns()];
        assert_eq!(kernel.sum_rows(&segment, x_columns, &mut y).is_ok(), expected.is_some());
        let y_columns = &mut y_columns[..];
        let state = SymmetricState { x_columns, y_columns, strips: &mut strips };
        assert_eq!(kernel.sum_both([(&segment, 0)], state).is_ok(), expected.is_some());
    }
}

#[test]
fn small_graphs_decode_the_same() {
    small_graphs().iter().for_each(check);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_instruction_set_decodes_the_same(graph in graphs()) {
        check(&graph);
    }

    #[test]
    fn flipped_bits_do_no_harm(graph in graphs(), flips in prop::collection::vec(any::<u32>(), 24)) {
        for (i, segment) in graph.segments().enumerate().take(24) {
            let mut bytes = segment.bytes.to_vec();
            // In the first group's header, or anywhere; of several segments each another one.
            let flip = flips[i] as usize;
            let at = if flip.is_multiple_of(2) { flip / 16 % 16 } else { flip / 16 };
            let at = at % segment.len;
            bytes[at] ^= 1 << (flip / 2 % 8);
            let damaged = Segment { bytes: &bytes, ..segment };
            survive(&damaged, graph.options);
            survive(&Segment { len: segment.len / 2, ..segment }, graph.options);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn garbage_does_no_harm(
        options in options(),
        min_gap in prop_oneof![Just(0), Just(1), any::<u32>()],
        mut bytes in prop::collection::vec(any::<u8>(), SLACK..1500),
        bases: (u64, u64),
        rows: u32,
        small: bool,
        jagged: bool,
    ) {
        let len = bytes.len() - SLACK;
        if small {
            // Headers that look sound get further.
            bytes.iter_mut().for_each(|b| *b %= 5);
        }
        if jagged {
            // One slice of long rows that fill the segment and its slack.
            let longest = (len / 5) as u16;
            bytes[..2].fill(0);
            bytes[2] %= 33;
            bytes[3] = 0;
            bytes[4..6].copy_from_slice(&longest.to_le_bytes());
        }
        let segment = Segment { row_base: bases.0, rows, column_base: bases.1, bytes: &bytes, len };
        survive(&segment, TileOptions { min_gap, ..options });
    }
}

/// A segment that is shorter than it says, or without the slack, is refused.
#[test]
fn missing_bytes_are_refused() {
    for graph in small_graphs().iter().filter(|g| g.blocks.len() == 1) {
        let segment = graph.segments().next().unwrap();
        for isa in Isa::available() {
            let kernel = Kernel::new(graph.options, isa);
            let cut = Segment { bytes: &segment.bytes[..segment.len + SLACK - 1], ..segment };
            let e = kernel.for_each(&cut, |_| ()).unwrap_err();
            assert_eq!(
                e.to_string(),
                "cannot decode a tile: expected groups that fill their segment, got bytes that \
                 run out early\n\nhint: `tiergraph verify` lists all damage; rebuild the graph \
                 to repair it"
            );
            let short = Segment { len: segment.len - 1, ..segment };
            assert!(kernel.for_each(&short, |_| ()).is_err());
            let huge = Segment { len: usize::MAX, ..segment };
            assert!(kernel.for_each(&huge, |_| ()).is_err());
        }
    }
}
